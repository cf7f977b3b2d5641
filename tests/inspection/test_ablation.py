"""Heads of whole models: switched off against zeros in W_O, importance against finite differences, and messages."""

import json
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from analysed_models import (
    HEADS,
    PARSERS,
    SOURCE,
    TARGET,
    language_model,
    node_predictor,
    predictor,
    small_graph,
    translator,
)
from closeness import assert_close
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import write_tiny_model
from torch import nn

from dragoman import Predictor, Translator, inspect
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.ablation import ablate_heads
from dragoman.inspection.heads import HEAD_KINDS, Head, attention_layers, heads_of, heads_off
from dragoman.inspection.importance import head_entropies, head_gradients, head_importance
from dragoman.nn.attention.heads import masking_heads

WITH_HEADS = ("transformer", "recurrent", "convolutional", "linear")
GIVEN = SubjectSettings(target=TARGET)
TEXTS: dict[str, Any] = {
    "classification": SOURCE,
    "regression": SOURCE,
    "tagging": SOURCE,
    "span": ("who runs ?", SOURCE),
    "masked_language_model": "a <mask> runs .",
}


MODELS: dict[str, tuple[Callable[[], SupportsInspect], Any, SubjectSettings]] = {
    **{family: (partial(translator, family), SOURCE, GIVEN) for family in WITH_HEADS},
    "language model": (language_model, SOURCE, NO_SETTINGS),
    **{head: (partial(predictor, "transformer", head), TEXTS[head], NO_SETTINGS) for head in HEADS},
    **{head: (partial(predictor, "transformer", head), SOURCE, NO_SETTINGS) for head in PARSERS},
    "causal encoder": (partial(predictor, "causal"), SOURCE, NO_SETTINGS),
    "graph": (node_predictor, "b", SubjectSettings(graph=small_graph())),
}


@given(st.sampled_from(HEAD_KINDS), st.integers(1, 99), st.integers(1, 99))
def test_the_name_of_a_head_is_read_as_the_same_head(kind: str, layer: int, number: int) -> None:
    head = Head(kind, layer, number)
    assert Head.parse(str(head)) == head


@pytest.mark.parametrize(
    "name", ["", "decoder:1:1", "decoder.cross_attention:1", "decoder.cross_attention:0:1", "a:b:c:d"]
)
def test_other_names_of_heads_are_rejected(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a head: write its kind, layer and number, such as"):
        Head.parse(name)


@pytest.mark.parametrize("name", MODELS)
def test_a_head_of_a_model_switched_off_equals_zeros_in_its_columns_of_the_output_matrix(name: str) -> None:
    build, text, settings = MODELS[name]
    subject = build().subject(text, settings)
    whole = subject.values()
    for head in heads_of(subject.model):
        attention = attention_layers(subject.model)[head.kind, head.layer]
        with heads_off(subject.model, [head]):
            values = subject.values()
        output = getattr(attention, "output", None)
        if not isinstance(output, nn.Linear):
            continue  # without W_O; see test_head_masks.py
        columns = output.weight.size(1) // attention.heads
        kept = output.weight.detach().clone()
        with torch.no_grad():
            output.weight[:, (head.number - 1) * columns : head.number * columns] = 0
        try:
            assert_close(values, subject.values())
        finally:
            with torch.no_grad():
                output.weight.copy_(kept)
        assert not np.allclose(values, whole, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_switched_off_changes_nothing(name: str) -> None:
    build, text, settings = MODELS[name]
    ablation = ablate_heads(build(), text, [], settings)
    assert ablation.change == 0
    assert np.array_equal(ablation.before, ablation.after)
    assert ablation.predicted_before == ablation.predicted_after


def test_the_search_without_heads_uses_all_heads_again_afterwards() -> None:
    model = translator()
    before = model.translate([SOURCE])
    ablation = ablate_heads(model, SOURCE, heads_of(model.model))
    assert ablation.predicted_before == before[0] != ablation.predicted_after
    assert model.translate([SOURCE]) == before
    assert ablation.terms[-1] == "</s>"
    assert len(ablation.terms) == len(ablation.before)


def test_the_effect_on_a_given_translation_is_the_difference_of_its_scores() -> None:
    model, head = translator(), "decoder.cross_attention:2:1"
    ablation = ablate_heads(model, SOURCE, [head, head], SubjectSettings(target=TARGET))
    (score,) = model.score([SOURCE], [TARGET])
    with heads_off(model.model, [head]):
        (without,) = model.score([SOURCE], [TARGET])
    assert ablation.heads == (Head("decoder.cross_attention", 2, 1),)
    assert_close(ablation.change, without.log_probability - score.log_probability)
    assert_close(ablation.before.sum(), score.log_probability)


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_of_a_head_equals_finite_differences(name: str) -> None:
    build, text, settings = MODELS[name]
    subject = build().subject(text, settings)
    subject.model.double()
    try:
        layers = attention_layers(subject.model)
        for head, gradient in head_gradients(subject).items():
            attention, losses = layers[head.kind, head.layer], []
            for step in (1e-6, -1e-6):
                mask = torch.ones(attention.heads, dtype=torch.double)
                mask[head.number - 1] += step
                with masking_heads({attention: mask}):
                    losses.append(-subject.values().sum())
            assert gradient == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-3, abs=1e-6)
    finally:
        subject.model.float()


def test_the_importance_is_the_mean_over_texts_and_the_drop_that_of_the_ablation() -> None:
    model = language_model()
    texts = [SOURCE, "two dogs sleep ."]
    both, first, second = (head_importance(model, each) for each in (texts, texts[:1], texts[1:]))
    for together, one, other in zip(both, first, second, strict=True):
        assert together.head == one.head
        for field in ("gradient", "drop", "entropy"):
            values = [getattr(each, field) for each in (together, one, other)]
            assert_close(values[0], (values[1] + values[2]) / 2)
        assert_close(one.drop, -ablate_heads(model, SOURCE, [one.head]).change)
        assert one.gradient >= 0


def test_the_entropy_of_a_head_is_that_of_its_rows() -> None:
    model = translator()
    subject = model.subject(SOURCE, GIVEN)
    entropies = head_entropies(subject)
    for attention_map in inspect(model, SOURCE, target=TARGET).maps:
        for number, weights in enumerate(attention_map.weights.astype(float), 1):
            expected = np.mean([-sum(p * log(p) for p in row if p) for row in weights])
            assert_close(entropies[Head(attention_map.kind, attention_map.layer, number)], expected)


def test_equal_weights_have_the_logarithm_of_their_number_as_entropy() -> None:
    model = translator("mean of embeddings")  # all keys of the source are equal
    subject = model.subject(SOURCE, GIVEN)
    entropy = head_entropies(subject)[Head("decoder.cross_attention", 1, 1)]
    assert_close(entropy, log(len(subject.source_ids) + 1))


def test_weights_that_are_not_a_distribution_have_no_entropy() -> None:
    subject = translator("linear, rotary").subject(SOURCE, GIVEN)
    assert np.isnan(head_entropies(subject)[Head("encoder.self_attention", 1, 1)])
    assert not np.isnan(head_entropies(subject)[Head("decoder.cross_attention", 1, 1)])


@pytest.mark.parametrize("family", ["recurrent without attention", "bytenet"])
def test_a_model_without_attention_has_no_heads(family: str) -> None:
    with pytest.raises(
        ConfigError, match="this model has no attention heads. encoder.self_attention: the encoder does not"
    ):
        ablate_heads(translator(family), SOURCE, ["decoder.cross_attention:1:1"])


def test_a_hierarchical_encoder_has_only_the_heads_that_pool() -> None:
    with pytest.raises(ConfigError, match="with one head each, .*: `dragoman inspect` shows the weights"):
        head_importance(predictor("hierarchical"), ["a dog runs . two men sleep ."])


def test_a_predictor_without_attention_has_no_heads() -> None:
    with pytest.raises(
        ConfigError, match=r"^this model has no attention heads. encoder.self_attention: the encoder does not have"
    ):
        head_importance(predictor("recurrent"), [SOURCE])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "decoder.cross_attention:3:1",
            "there is no head decoder.cross_attention:3:1: this model has enc.* layers 1 to 2",
        ),
        ("decoder.cross_attention:1:3", "there is no head decoder.cross_attention:1:3: this layer has heads 1 to 2"),
    ],
)
def test_heads_that_do_not_exist_are_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ablate_heads(translator(), SOURCE, [name], GIVEN)


def test_choices_of_another_kind_of_model_are_rejected() -> None:
    with pytest.raises(ConfigError, match="--target can only be used with a translation model"):
        language_model().subject(SOURCE, SubjectSettings(target=TARGET))
    with pytest.raises(ConfigError, match="--word can only be used with a model that predicts labels"):
        translator().subject(SOURCE, SubjectSettings(word=1))
    with pytest.raises(DataError, match="the text is blank"):
        translator().subject(" ")
    with pytest.raises(ConfigError, match="pass a list of at least one text"):
        head_importance(translator(), SOURCE)


def test_the_native_engine_of_a_predictor_does_not_hide_heads(tmp_path: Path) -> None:
    one = predictor()
    native = Predictor(one.model, one.tokenizer, one.head, engine="auto")
    head = "encoder.self_attention:1:1"
    assert_close(ablate_heads(native, SOURCE, [head]).after, ablate_heads(one, SOURCE, [head]).after)


@pytest.mark.slow
def test_the_preferred_engine_of_a_translator_does_not_hide_heads(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "model")
    head = "decoder.self_attention:1:1"
    found = [
        ablate_heads(Translator.load(tmp_path / "model", "cpu", engine), SOURCE, [head]) for engine in ("auto", "torch")
    ]
    assert np.array_equal(found[0].after, found[1].after)
    ensemble = Translator.load([tmp_path / "model", tmp_path / "model"], "cpu")
    with pytest.raises(ConfigError, match="an ensemble has no heads of its own: inspect one of its models"):
        ablate_heads(ensemble, SOURCE, [head])


def test_the_command_lists_heads_and_switches_them_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    model = [str(tmp_path / "model"), SOURCE, "--target", TARGET, "--device", "cpu"]
    assert main(["inspect", "heads", *model]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 3 * 2
    off = ["--off", "encoder.self_attention:1:1", "--off", "decoder.cross_attention:1:2"]
    assert main(["inspect", "heads", *model, *off]) == 0
    assert "off     encoder.self_attention:1:1 decoder.cross_attention:1:2" in capsys.readouterr().out
    assert main(["inspect", "heads", *model, *off, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    loaded = Translator.load(tmp_path / "model", "cpu", "torch")
    assert printed == ablate_heads(loaded, SOURCE, off[1::2], SubjectSettings(target=TARGET)).as_json()
    assert main(["inspect", "heads", *model, "--off", "encoder"]) == 2
    assert "'encoder' is not a head" in capsys.readouterr().err
