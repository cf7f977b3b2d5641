"""Every family, attention and other choice of a model, enumerated from the registry, can be described."""

from math import prod
from typing import Any

import pytest
from pydantic import ValidationError
from setting_choices import Choice, assemble, choices

from dragoman.models.description.describe import Description, describe_model
from dragoman.models.description.footprint import Footprint
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.parts import count_parameters
from dragoman.text.tokenizers import VocabularySizes

SIZE, LENGTH = 12, 3
SMALL = {"layers": 1, "heads": 2, "feedforward": 8, "window": 2, "limit": 8, "count": 3}
# Additional settings that a level needs, if the usual ones are refused with it.
BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("positions", "fraction"): {"target_positions": {"kind": "none"}},
    ("join", "add"): {"target_positions": {"kind": "none"}},
    ("join", "concatenate"): {"target_positions": {"kind": "none"}},
    ("stacked", "false"): {
        "decoder": {"kind": "bytenet", "layers": 1, "stacked": False, "cross_attention": {"kind": "soft"}}
    },
    ("connections", "residual"): {
        side: {"kind": "recurrent", "layers": 2, "connections": {"kind": "residual"}} for side in ("encoder", "decoder")
    },
    ("frozen", "true"): {"tie_projection": False, "embeddings": {"source": "never-opened.vec", "frozen": True}},
}


def levels() -> dict[str, tuple[Choice, str]]:
    """Each level of each choice, once for each family and side, or for each kind of attention that has it."""
    found: dict[str, tuple[Choice, str]] = {}
    for choice in choices(ModelConfig):
        inside = [kind for _, kind in choice.conditions]
        above = [choice.path[0], *inside] if len(inside) < 2 else inside[1:]
        for level in choice.levels:
            if (choice.path[-1], level) == ("target_positions", "fraction"):
                continue  # never: a decoder does not know the length of its text
            if choice.path == ("decoder", "cross_attention") and level == "null" != choice.default:
                continue  # never: a translator's decoder would have no access to the source
            found.setdefault("-".join([*above, choice.path[-1], level]), (choice, level))
    return found


LEVELS = levels()


def configured(choice: Choice, level: str) -> ModelConfig:
    """A small model with this level, and the usual ones otherwise."""
    fixed = {**dict(choice.conditions), choice.path: level}
    settings, _ = assemble(ModelConfig, lambda each: fixed.get(each.path), SMALL)
    settings = {**settings, "preset": None, "width": 8, "dropout": 0.0}
    try:
        return ModelConfig.model_validate(settings)
    except ValidationError:
        return ModelConfig.model_validate({**settings, **BESIDE[choice.path[-1], level]})


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip memory, which has separate tests for every family."""
    monkeypatch.setattr(
        "dragoman.models.description.describe.measure_footprint",
        lambda *_, **__: Footprint(16, (1.0,), (1,), (1,), (1,)),
    )


def check_sums(found: Description) -> None:
    """The parameters of each part are its own and those of its parts, except for those tied to others."""
    assert sum(part.parameters for part in found.parts if part.depth == 0) == found.parameters
    for place, part in enumerate(found.parts):
        inner = []
        for other in found.parts[place + 1 :]:
            if other.depth <= part.depth:
                break
            inner += [other.parameters] if other.depth == part.depth + 1 else []
        before = [shape for other in found.parts if other.name == part.tied for _, shape in other.shapes]
        own = part.repeats * sum(prod(shape) for _, shape in part.shapes if shape not in before)
        assert part.parameters == sum(inner) + own, part.name


def test_the_sums_of_all_parts() -> None:
    settings = {
        "width": 8,
        "encoder": {"layers": 3, "heads": 2, "experts": {"count": 3}, "attention": {"scorer": {"kind": "general"}}},
        "decoder": {"kind": "recurrent", "layers": 2, "cell": "lstm", "bridge": "both"},
        "tie_projection": False,
    }
    config = ModelConfig.model_validate({"preset": None, **settings})
    found = describe_model(config, VocabularySizes(SIZE, SIZE), LENGTH, depth=20)
    check_sums(found)
    assert {1, 3, 9} <= {part.repeats for part in found.parts}  # three layers with three experts


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (number % 3 > 0)) for number, name in enumerate(LEVELS)]
)
def test_every_choice_can_be_described(name: str) -> None:
    config = configured(*LEVELS[name])
    found = describe_model(config, VocabularySizes(SIZE, SIZE), LENGTH, depth=20)
    check_sums(found)
    assert found.parameters == count_parameters(config.build(SIZE, SIZE))
    assert found.operations.per_target_token > 0
    assert found.operations.training > found.operations.per_source_token + found.operations.per_target_token
