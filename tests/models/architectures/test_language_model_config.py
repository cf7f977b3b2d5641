"""A language model's settings: presets, refusals, and that every part of the model is used."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from dragoman.models.kinds.decoder_only import PRESETS, LanguageModelConfig
from dragoman.models.parts import count_parameters

SMALL = {"layers": 2, "heads": 2, "feedforward": 12}
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": SMALL,
    "window": {**SMALL, "attention": {"kind": "window", "window": 3}},
    "linear": {**SMALL, "attention": {"kind": "linear"}},
    "recurrent": {"kind": "recurrent", "cell": "lstm"},
    "feeding": {"kind": "recurrent", "wiring": {"kind": "luong", "input_feeding": True}},
    "convolutional": {"kind": "convolutional", "layers": 2},
    "bytenet": {"kind": "bytenet", "layers": 2},
}


def config(**settings: Any) -> LanguageModelConfig:
    return LanguageModelConfig.model_validate({"preset": None, "width": 8, **settings})


@pytest.mark.parametrize(("preset", "parameters"), [("base", 124_439_808), ("large", 354_823_168)])
def test_the_sizes_of_gpt_2(preset: str, parameters: int) -> None:
    """Radford et al. 2019, as counted in the published weights."""
    with torch.device("meta"):
        assert count_parameters(LanguageModelConfig(preset=preset).build(50_257)) == parameters


def test_the_size_of_gpt_1() -> None:
    """GPT-2's smallest shape with GPT-1's 512 positions and 40,478 entries; Radford et al. 2018 have 117 million.

    The last norm is the only difference from GPT-1: 2 · 768 parameters.
    """
    with torch.device("meta"):
        config = LanguageModelConfig.model_validate({"preset": "base", "positions": {"limit": 512}})
        assert count_parameters(config.build(40_478)) == 116_536_320 == 116_534_784 + 2 * 768


@pytest.mark.parametrize("family", FAMILIES)
def test_every_part_is_used(family: str) -> None:
    """No part waits for a source: it would never learn, and ranks would wait for its gradient."""
    torch.manual_seed(1)
    model = config(decoder=FAMILIES[family], dropout=0.0).build(20)
    model(torch.tensor([[1, 5, 9, 6]])).logits().square().sum().backward()
    assert [name for name, each in model.named_parameters() if each.grad is None] == []


@pytest.mark.parametrize(
    ("decoder", "name"),
    [
        ({**SMALL, "cross_attention": {}}, "cross_attention"),
        ({"kind": "convolutional", "cross_attention": {}}, "cross_attention"),
        ({"kind": "recurrent", "attention": {}}, "attention"),
        ({"kind": "recurrent", "bridge": "initial"}, "bridge"),
        ({"kind": "bytenet", "stacked": True}, "stacked"),
    ],
)
def test_settings_for_a_source_are_refused(decoder: dict[str, Any], name: str) -> None:
    with pytest.raises(ValidationError, match=f"decoder: {name} would connect the decoder to a source"):
        config(decoder=decoder)


def test_other_incompatible_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="decoder: a width of 8 is not divisible by 3 heads"):
        config(decoder={"heads": 3})
    with pytest.raises(ValidationError, match="choose another kind for positions"):
        config(decoder=SMALL, positions={"kind": "fraction"})
    with pytest.raises(
        ValidationError, match="unknown preset 'gpt': expected one of tiny, small, medium, base, large, lstm"
    ):
        LanguageModelConfig(preset="gpt")


def test_keys_override_a_preset_one_by_one() -> None:
    plain = LanguageModelConfig(preset="tiny")
    assert LanguageModelConfig.model_validate(plain.model_dump()) == plain
    changed = LanguageModelConfig.model_validate(
        {"preset": "tiny", "decoder": {"layers": 2}, "dropout": {"attention": 0.3}, "positions": {"base": 500}}
    )
    assert changed == plain.model_copy(
        update={
            "decoder": plain.decoder.model_copy(update={"layers": 2}),
            "dropout": plain.dropout.model_copy(update={"attention": 0.3}),
            "positions": changed.positions,
        }
    )
    other = LanguageModelConfig.model_validate({"preset": "tiny", "decoder": {"kind": "recurrent"}})
    assert (other.width, other.positions) == (128, None)


@pytest.mark.parametrize(
    ("tokens", "preset"),
    [(1, "tiny"), (10_000_000, "tiny"), (10_000_001, "small"), (10**9, "medium"), (10**12, "base")],
)
def test_auto_depends_on_the_text_and_keeps_explicit_settings(tokens: int, preset: str) -> None:
    given: dict[str, Any] = {"decoder": {"layers": 1}, "dropout": 0.0}
    found = LanguageModelConfig.model_validate(given).resolve(tokens)
    assert found == LanguageModelConfig.model_validate({"preset": preset, **given})
    assert (found.width, found.decoder.layers) == (PRESETS[preset]["width"], 1)
    # 300 is not divisible by the class's default of 8 heads, but by tiny's 4
    assert LanguageModelConfig.model_validate({"width": 300}).resolve(1).width == 300
