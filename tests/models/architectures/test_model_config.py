"""The model's settings: presets, overrides, errors that name their key, and initial values."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.models.kinds.encoder_decoder import PRESETS, ModelConfig
from dragoman.models.parts import count_parameters
from dragoman.nn.positions.rotary import RotaryConfig


@pytest.mark.parametrize(
    ("preset", "width", "layers", "heads", "feedforward", "dropout"),
    [("tiny", 192, 4, 4, 256, 0.3), ("base", 512, 6, 8, 2048, 0.1), ("big", 1024, 6, 16, 4096, 0.3)],
)
def test_presets_of_the_papers(
    preset: str, width: int, layers: int, heads: int, feedforward: int, dropout: float
) -> None:
    config = ModelConfig(preset=preset)
    assert config.width == width
    for stack in (config.encoder, config.decoder):
        assert (stack.layers, stack.heads, stack.feedforward) == (layers, heads, feedforward)
    rates = config.dropout
    assert (rates.embedding, rates.residual, rates.attention, rates.feedforward) == (dropout, dropout, 0, 0)


def changes(config: ModelConfig) -> dict[str, Any]:
    """Differences from the tiny preset."""
    plain, given = ModelConfig(preset="tiny").model_dump(), config.model_dump()
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, dict):
            found |= {f"{key}.{name}": inner for name, inner in value.items() if inner != (plain[key] or {}).get(name)}
        elif value != plain[key]:
            found[key] = value
    return found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"width": 64}, {"width": 64}),
        ({"encoder": {"layers": 2}}, {"encoder.layers": 2}),
        ({"decoder": {"heads": 8, "norm": "post"}}, {"decoder.heads": 8, "decoder.norm": "post"}),
        ({"dropout": {"attention": 0.2}}, {"dropout.attention": 0.2}),
        ({"dropout": {"residual": 0.4}}, {"dropout.residual": 0.4}),
        ({"dropout": 0.4}, {"dropout.embedding": 0.4, "dropout.residual": 0.4}),
        ({"dropout": 0}, {"dropout.embedding": 0, "dropout.residual": 0}),
        ({"tie_projection": False}, {"tie_projection": False}),
        ({"positions": {"base": 500}}, {"positions.base": 500}),
        ({"positions": None}, {"positions": None}),
    ],
)
def test_keys_override_a_preset_one_by_one(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert changes(ModelConfig.model_validate({"preset": "tiny", **given})) == expected


@pytest.mark.parametrize("preset", ["tiny", "small"])
@pytest.mark.parametrize(
    "given",
    [
        {"encoder": {"kind": "recurrent"}},
        {"decoder": {"kind": "convolutional"}},
        {"width": 100},  # 25 per head, and rotary positions rotate pairs of numbers
        {"decoder": {"attention": {"key_width": 15}}},
    ],
)
def test_a_presets_positions_apply_where_they_are_supported(preset: str, given: dict[str, Any]) -> None:
    assert ModelConfig(preset=preset).positions == RotaryConfig()
    assert ModelConfig.model_validate({"preset": preset, **given}).positions is None
    with pytest.raises(ValidationError, match="rotary"):
        ModelConfig.model_validate({"preset": preset, "positions": {"kind": "rotary"}, **given})


@pytest.mark.parametrize(
    ("pairs", "preset"), [(1, "tiny"), (100_000, "tiny"), (100_001, "small"), (1_000_000, "small"), (1_000_001, "base")]
)
def test_auto_depends_on_the_corpus_and_keeps_explicit_settings(pairs: int, preset: str) -> None:
    assert ModelConfig().resolve(pairs) == ModelConfig(preset=preset)
    given: dict[str, Any] = {"width": 64, "encoder": {"layers": 2}, "dropout": {"attention": 0.2}}
    resolved = ModelConfig.model_validate(given).resolve(pairs)
    assert resolved == ModelConfig.model_validate({"preset": preset, **given})
    assert (resolved.width, resolved.encoder.layers, resolved.dropout.attention) == (64, 2, 0.2)
    assert resolved.decoder.layers == PRESETS[preset]["decoder"]["layers"]


def test_a_named_preset_is_not_changed_by_the_corpus() -> None:
    config = ModelConfig(preset="big")
    assert config.resolve(10) is config


def test_a_dumped_config_reads_back_as_itself() -> None:
    config = ModelConfig.model_validate({"preset": "tiny", "dropout": {"embedding": 0.0}, "decoder": {"layers": 1}})
    assert ModelConfig.model_validate(config.model_dump()) == config


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_heads_that_do_not_divide_the_width_are_named(side: str) -> None:
    with pytest.raises(ValidationError, match=f"{side}: a width of 192 is not divisible by 5 heads"):
        ModelConfig.model_validate({"preset": "tiny", side: {"heads": 5}})


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValidationError,
        match="unknown preset 'huge': expected one of tiny, small, tiny-fast, small-fast, base, big, rnn",
    ):
        ModelConfig(preset="huge")


def test_tied_embeddings_need_one_vocabulary() -> None:
    with pytest.raises(ConfigError, match="model.tie_embeddings .* 30 .* 40"):
        ModelConfig(preset="tiny").build(30, 40)
    model = ModelConfig(preset="tiny", tie_embeddings=False).build(30, 40)  # type: ignore[call-arg]
    assert len(model.encoder.embedding.tokens.weight) == 30
    assert len(model.decoder.projection.weight) == 40


@pytest.mark.parametrize(("embeddings", "projection", "tables"), [(True, True, 1), (True, False, 2), (False, False, 3)])
def test_tied_tables_are_one_parameter(embeddings: bool, projection: bool, tables: int) -> None:
    config = ModelConfig.model_validate({"preset": "tiny", "tie_embeddings": embeddings, "tie_projection": projection})
    small, large = (count_parameters(config.build(size, size)) for size in (30, 31))
    assert large - small == tables * 192


def test_initial_values() -> None:
    torch.manual_seed(1)
    model = ModelConfig(preset="tiny").build(2000, 2000)
    table = model.encoder.embedding.tokens.weight
    assert abs(float(table.detach().mean())) < 1e-3
    assert float(table.detach().std()) == pytest.approx(192**-0.5, rel=0.01)
    for stack in (model.encoder.layers, model.decoder.layers):
        for module in stack.modules():
            if isinstance(module, nn.Linear):
                bound = (6 / (module.in_features + module.out_features)) ** 0.5
                assert float(module.weight.detach().abs().max()) == pytest.approx(bound, rel=0.01)
                assert float(module.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.02)
                assert not module.bias.any()
            if isinstance(module, nn.LayerNorm):
                assert bool((module.weight == 1).all()) and not module.bias.any()


def test_auto_needs_a_compatible_preset() -> None:
    """300 is not divisible by the classes' default of 8 heads, but by tiny's 4; 301 by neither."""
    config = ModelConfig.model_validate({"width": 300})
    assert config.resolve(1000).width == 300
    with pytest.raises(ConfigError, match="auto selects base for 5,000,000 pairs.*is not divisible by"):
        config.resolve(5_000_000)
    with pytest.raises(ValidationError, match="is not divisible by"):
        ModelConfig.model_validate({"width": 301})
