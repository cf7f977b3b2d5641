"""The decoder after each layer, gradient × input against finite differences, and rollout against its formula."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from analysed_models import SOURCE, TARGET, language_model, predictor, translator
from closeness import assert_close
from tiny_model import write_tiny_model
from torch import Tensor, nn

from dragoman import inspect
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.lens import decoder_lens
from dragoman.inspection.next_tokens import next_tokens_at_each_position
from dragoman.inspection.relevance import token_relevance
from dragoman.inspection.rollout import attention_rollout

GIVEN = SubjectSettings(target=TARGET)
LAYERED = ("transformer", "post-norm", "convolutional", "bytenet")
DECODERS: dict[str, tuple[Callable[[], SupportsInspect], SubjectSettings]] = {
    **{
        family: (partial(translator, family), GIVEN)
        for family in (*LAYERED, "recurrent", "recurrent without attention")
    },
    "language model": (language_model, NO_SETTINGS),
}


@pytest.mark.parametrize("name", [*LAYERED, "language model"])
def test_the_prediction_after_the_last_layer_is_that_of_the_model(name: str) -> None:
    build, settings = DECODERS[name]
    lens = decoder_lens(build(), SOURCE, settings, count=3)
    positions = next_tokens_at_each_position(build(), SOURCE, settings, count=3)
    assert [each.name for each in lens.layers] == ["embeddings", "layer 1", "layer 2"]
    for found, expected in zip(lens.layers[-1].positions, positions, strict=True):
        assert found.as_json() == expected.as_json()
    for layer in lens.layers:
        assert [each.actual for each in layer.positions] == [each.actual for each in positions]
    assert lens.layers[0].positions[0].probabilities[0] != lens.layers[2].positions[0].probabilities[0]


def test_the_prediction_after_a_layer_is_that_of_a_model_that_ends_there() -> None:
    model = translator()
    lens = decoder_lens(model, SOURCE, GIVEN, count=1000)
    decoder = model.model.decoder
    layers = decoder.layers
    decoder.layers = nn.ModuleList(layers[:1])
    try:
        shorter = next_tokens_at_each_position(model, SOURCE, GIVEN, count=1000)
    finally:
        decoder.layers = layers
    for found, expected in zip(lens.layers[1].positions, shorter, strict=True):
        assert found.ids[:5] == expected.ids[:5]
        assert_close(found.probabilities, expected.probabilities, size=1.0)


def test_a_decoder_whose_layers_have_no_prediction_says_so() -> None:
    with pytest.raises(ConfigError, match="this decoder has no prediction after each layer, because no layer"):
        decoder_lens(translator("recurrent"), SOURCE)
    with pytest.raises(ConfigError, match="so that no token follows a prefix"):
        decoder_lens(predictor(), SOURCE)


@pytest.mark.parametrize("name", DECODERS)
def test_the_relevance_of_a_token_is_the_derivative_along_its_vector(name: str) -> None:
    build, settings = DECODERS[name]
    loaded = build()
    model = loaded.model.double()
    try:
        found = token_relevance(loaded, SOURCE, settings)
        subject = loaded.subject(SOURCE, settings)
        has_source = bool(found.source)
        assert found.of_all.shape == (len(found.terms), len(found.source) + len(found.read))
        places = [(0, 0), (0, len(found.source) - 1)] if has_source else []
        places += [(int(has_source), 0), (int(has_source), 2)]
        for call, position in places:
            values = [_scaled(model, subject, call, position, 1 + step) for step in (1e-6, -1e-6)]
            expected = (values[0] - values[1]) / 2e-6
            actual = (found.of_source if has_source and call == 0 else found.of_read)[:, position]
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    finally:
        model.float()
    assert not np.triu(found.of_read, 1).any()  # no token depends on those that follow
    assert np.abs(found.of_read).max() > 1e-3


def _scaled(model: Any, subject: Any, call: int, position: int, factor: float) -> Any:
    """The terms if the vector of one token in one call of the embedding is multiplied by a factor."""
    calls: list[int] = []

    def scale(module: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        calls.append(1)
        if len(calls) - 1 != call:
            return vectors
        factors = torch.ones(vectors.size(1), 1, dtype=vectors.dtype)
        factors[position] = factor
        return vectors * factors

    tables = {id(each.tokens): each.tokens for each in model.modules() if hasattr(each, "starts_with_end")}
    handles = [table.register_forward_hook(scale) for table in tables.values()]
    try:
        return subject.values()
    finally:
        for handle in handles:
            handle.remove()


def test_relevance_in_two_threads_is_that_in_one() -> None:
    model, texts = translator(), [SOURCE, "two dogs sleep ."] * 4
    expected = [token_relevance(model, text, GIVEN).of_all for text in texts]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda text: token_relevance(model, text, GIVEN).of_all, texts))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


def test_a_predictor_shows_the_relevance_of_words_in_its_inspection() -> None:
    with pytest.raises(ConfigError, match="the relevance of words for a label is part of its inspection"):
        token_relevance(predictor(), SOURCE)


def test_the_rollout_of_an_encoder_is_that_of_the_paper() -> None:
    for model, maps in (
        (predictor(), inspect(predictor(), SOURCE).maps),
        (translator(), inspect(translator(), SOURCE, target=TARGET).maps),
    ):
        settings = GIVEN if model is translator() else NO_SETTINGS
        expected = np.eye(len(maps[0].queries))
        for each in maps:
            if each.kind == "encoder.self_attention":
                attention = each.weights.astype(float).mean(0) + np.eye(len(each.queries))
                expected = (attention / attention.sum(1, keepdims=True)) @ expected
        found = attention_rollout(model, SOURCE, settings)[0]
        assert (found.side, found.queries) == ("encoder", maps[0].queries)
        assert_close(found.values, expected, size=1.0)
        assert found.values.sum(1) == pytest.approx(1, abs=1e-6)


def test_the_rollout_of_a_language_model_reads_no_following_token() -> None:
    (found,) = attention_rollout(language_model(), SOURCE)
    assert found.side == "decoder"
    assert not np.triu(found.values, 1).any()
    assert len(found.layers) == 2
    assert found.values.sum(1) == pytest.approx(1, abs=1e-6)


def test_the_rollout_of_a_decoder_follows_all_paths() -> None:
    """Every path from a state after the last layer to an input is followed alone; its weights are multiplied."""
    model = translator()
    maps = {
        (each.kind, each.layer): each.weights.astype(float).mean(0)
        for each in inspect(model, SOURCE, target=TARGET).maps
    }
    found = attention_rollout(model, SOURCE, GIVEN)
    assert [each.side for each in found] == ["encoder", "decoder"]
    decoder, size = found[1], len(found[0].keys)

    def of_source(state: int, layer: int) -> dict[int, float]:
        if not layer:
            return {state: 1.0}
        steps = {key: 0.5 * weight for key, weight in enumerate(maps["encoder.self_attention", layer][state])}
        steps[state] += 0.5
        return _joined((weight, of_source(key, layer - 1)) for key, weight in steps.items())

    def of_inputs(state: int, layer: int) -> dict[int, float]:
        if not layer:
            return {size + state: 1.0}
        cross = maps["decoder.cross_attention", layer][state]
        own = {key: 0.25 * weight for key, weight in enumerate(maps["decoder.self_attention", layer][state])}
        own[state] += 0.25
        parts = [(weight, of_inputs(key, layer - 1)) for key, weight in own.items() if weight]
        return _joined([*parts, *((0.5 * weight, of_source(key, 2)) for key, weight in enumerate(cross))])

    for row in (0, 2):
        expected = of_inputs(row, 2)
        assert_close(decoder.values[row], [expected.get(column, 0.0) for column in range(len(decoder.keys))], size=1.0)


def _joined(parts: Any) -> dict[int, float]:
    total: dict[int, float] = {}
    for weight, inputs in parts:
        for key, value in inputs.items():
            total[key] = total.get(key, 0.0) + weight * value
    return total


def test_without_weights_of_self_attention_there_is_no_rollout() -> None:
    for family in ("recurrent", "bytenet with attention"):
        with pytest.raises(ConfigError, match="which the layers of this model do not have"):
            attention_rollout(translator(family), SOURCE, GIVEN)
    assert [each.side for each in attention_rollout(translator("ssru"), SOURCE, GIVEN)] == ["encoder"]
    assert [each.side for each in attention_rollout(translator("mean of embeddings"), SOURCE, GIVEN)] == ["decoder"]
    with pytest.raises(ConfigError, match="needs weights that sum to 1, but those of encoder.layers.0.self_attention"):
        attention_rollout(translator("linear, rotary"), SOURCE, GIVEN)


def test_the_commands_print_and_write_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dragoman.figures.canvas.RESOLUTION", 30)  # not tested, and faster
    write_tiny_model(tmp_path / "model")
    model = [str(tmp_path / "model"), SOURCE, "--target", TARGET, "--device", "cpu"]
    for verb, names in (
        ("lens", ["lens", "predictions"]),
        ("relevance", ["relevance"]),
        ("rollout", ["rollout.decoder", "rollout.encoder"]),
    ):
        assert main(["inspect", verb, *model, "--out", str(tmp_path / verb)]) == 0
        text = capsys.readouterr().out
        assert len(text.splitlines()) >= len(TARGET.split())
        files = sorted(each.name for each in (tmp_path / verb).iterdir())
        assert files == sorted(f"{name}.{suffix}" for name in names for suffix in ("csv", "json", "png", "svg"))
        assert main(["inspect", verb, *model, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main(["inspect", "lens", *model, "--out", str(tmp_path / "lens")]) == 2
    assert "already exists" in capsys.readouterr().err
