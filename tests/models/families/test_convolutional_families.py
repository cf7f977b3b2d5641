"""Convolutional and simple families in the whole program: settings, caches, attention, memory, model folders."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from searching import searched
from tiny_model import SOURCES, tiny_config, write_tiny_model

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import pad
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.translator import Translator
from dragoman.models.description.footprint import evaluate_polynomial, measure_footprint
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq

SIZE = 20
CONVOLUTIONAL = {"kind": "convolutional", "layers": 2}
BYTENET = {"kind": "bytenet", "layers": 2}
ATTENDS = {**BYTENET, "stacked": False, "cross_attention": {}}
FAMILIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (CONVOLUTIONAL, CONVOLUTIONAL),
    (BYTENET, BYTENET),
    (BYTENET, ATTENDS),
    ({"kind": "mean"}, CONVOLUTIONAL),
    ({"kind": "sum"}, BYTENET),
]
EACH = pytest.mark.parametrize(("encoder", "decoder"), FAMILIES)


def built(encoder: dict[str, Any], decoder: dict[str, Any], width: int = 8) -> Seq2Seq:
    torch.manual_seed(1)
    given = {"preset": None, "width": width, "encoder": encoder, "decoder": decoder}
    return ModelConfig.model_validate(given).build(SIZE, SIZE).eval()


@EACH
def test_a_loaded_model_folder_translates_equally(
    tmp_path: Path, encoder: dict[str, Any], decoder: dict[str, Any]
) -> None:
    model = write_tiny_model(tmp_path / "model", config=tiny_config(encoder=encoder, decoder=decoder))
    translator = Translator.load(tmp_path / "model", "cpu")
    tokens, keep = pad([[5, 6, 2]])
    expected = model.eval()(tokens, keep, tokens).logits()
    assert torch.equal(translator.engine.model(tokens, keep, tokens).logits(), expected)  # type: ignore[attr-defined]
    together = translator.translate(SOURCES, beam=2)
    assert together == [translator.translate([each], beam=2)[0] for each in SOURCES]


@EACH
@torch.no_grad()
def test_a_sentence_far_longer_than_any_before(encoder: dict[str, Any], decoder: dict[str, Any]) -> None:
    model = built(encoder, decoder)
    tokens = torch.randint(4, SIZE, (1, 1500))
    output = model(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens)
    assert bool(output.logits().isfinite().all())


@EACH
@torch.no_grad()
def test_the_cache_does_not_grow_with_the_text(encoder: dict[str, Any], decoder: dict[str, Any]) -> None:
    model = built(encoder, decoder)
    tokens, keep = pad([[5, 6, 2]])
    _, state = model.decoder.step(torch.ones(1, 40, dtype=torch.int64), model.decoder.start(model.encode(tokens, keep)))
    reach = [2, 2] if decoder["kind"] == "convolutional" else [2, 4]
    assert [tuple(past.shape) for past in state.cache] == [
        (1, each, 8 if decoder["kind"] == "convolutional" else 4) for each in reach
    ]


def test_memory_is_measured() -> None:
    for encoder, decoder in (*FAMILIES, ({"layers": 1, "heads": 2, "experts": {"count": 4}}, CONVOLUTIONAL)):
        footprint = measure_footprint(built(encoder, decoder), 64, training=True)
        assert evaluate_polynomial(footprint.training, 64) > evaluate_polynomial(footprint.training, 32) > 0


@torch.no_grad()
def test_attention_is_returned_if_there_is_one() -> None:
    (tokens, keep), inputs = pad([[5, 6, 7, 2], [8, 2]]), torch.randint(4, SIZE, (2, 5))
    for encoder, decoder in FAMILIES:
        model = built(encoder, decoder)
        memory = model.encode(tokens, keep)
        output, _ = model.decoder.step(inputs, model.decoder.start(memory, attention=True))
        if decoder is BYTENET:
            assert output.attention is None
            with pytest.raises(ConfigError, match="no attention over the source"):
                searched(model.decoder, memory, SearchConfig(coverage_penalty=0.5))
            continue
        assert output.attention is not None
        torch.testing.assert_close(output.attention.sum(2), torch.ones(2, 5))
        assert not output.attention[1, :, 2:].any()
        plain, _ = model.decoder.step(inputs, model.decoder.start(memory))
        assert plain.attention is None
        torch.testing.assert_close(plain.hidden, output.hidden)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"decoder": {**ATTENDS, "cross_attention": None}},
            "decoder: with stacked=false and cross_attention=null",
        ),
        ({"decoder": {**CONVOLUTIONAL, "heads": 3}}, "decoder: a width of 8 is not divisible by 3 heads"),
        (
            {"decoder": {**ATTENDS, "cross_attention": {"combine": "concatenate", "value_width": 3}}},
            "the layer.s width is",
        ),
        ({"encoder": {**BYTENET, "dilations": []}}, "at least 1 item"),
        ({"encoder": {**BYTENET, "dilations": [0]}}, "greater than or equal to 1"),
        ({"encoder": {**CONVOLUTIONAL, "kernel": 0}}, "greater than or equal to 1"),
        ({"encoder": {"heads": 2, "experts": {"count": 2, "active": 3}}}, "encoder: experts.active = 3 exceeds"),
        ({"encoder": {"kind": "mean", "layers": 2}}, "Extra inputs"),
        ({"decoder": {"kind": "mean"}}, "does not match any"),
        ({"encoder": CONVOLUTIONAL, "positions": {"kind": "rotary"}}, "which a convolutional encoder does not have"),
    ],
)
def test_incompatible_settings_are_refused_early(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate({"preset": None, "width": 8, **given})


def test_defaults_build_models() -> None:
    for kind in ("convolutional", "bytenet"):
        given = {"encoder": {"kind": kind}, "decoder": {"kind": kind}}
        config = ModelConfig.model_validate(given)
        assert config.width == 256
        with torch.device("meta"):
            config.build(SIZE, SIZE)
        assert ModelConfig.model_validate(config.model_dump(mode="json")) == config
