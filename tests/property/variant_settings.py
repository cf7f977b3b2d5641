"""Small models that hold given levels, made from the registry: the choices that the settings themselves offer."""

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import combinations
from random import Random
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from dragoman.base.choices import Choice, Path, assemble, choices, compatible
from dragoman.base.errors import ConfigError
from dragoman.base.schema import is_group, union_members
from dragoman.models.build import ModelConfig, Seq2Seq

WIDTH, SIZE = 8, 12
# Sizes are no choices, so a few values of each are given here, the usual one first. They are small, because windows,
# distances and layers must matter in short texts. `test_every_setting_is_varied_or_known` names those forgotten.
VALUES: dict[str, tuple[Any, ...]] = {
    "layers": (1, 2),
    "heads": (2, 1),
    "feedforward": (8,),
    "key_width": (None, 6),
    "query_width": (None, 2),
    "value_width": (None, 6),
    "diversity": (0.0, 0.5),
    "window": (2, 3),
    "looks": (None, 2),
    "discount": (1.0, 0.5),
    "count": (4,),
    "active": (2, 1),
    "capacity": (1.25, None, 0.5),
    "hidden": (None, 6),
    "kernel": (3, 2),
    "dilations": ((1, 2), (3,)),
    "inner": (None, 3),
    "distance": (3, 1),
    "source": ("never-opened.vec",),  # so that embeddings can be frozen; building a model reads no file
}
NUMBERS = {name: values for name, values in VALUES.items() if len(values) > 1}
FIXED = {name: values[0] for name, values in VALUES.items() if len(values) == 1}
UNVARIED = {
    "preset": "gives values of the other settings",
    "width": "of the model, and of parts that have it by default; other widths of parts: tests of positions, scorers",
    "limit": "other limits: test_position_limits; the longest text here fits into the default of each scheme",
    "target": "as embeddings.source",
    "base": "a constant of a formula",
    "epsilon": "a constant of a formula",
    "momentum": "of training alone: test_normalisation",
    "balance": "of training alone: test_mixture",
    "entropy_weight": "of training alone: test_hard_attention",
    "baseline_weight": "of training alone: test_hard_attention",
    "embedding": "dropout, which all models here have in training",
    "residual": "as embedding",
    "attention": "dropout of attention weights: test_dropout; linear attention has none",
}
Settings = dict[str, Any]
Single = tuple[Choice, str]
Level = tuple[str, str]
"""A factor, and one of its levels."""


@cache
def registry() -> tuple[Choice, ...]:
    """Every choice of a model."""
    return tuple(choices(ModelConfig, NUMBERS))


def singles() -> list[Single]:
    """Every level of every choice."""
    return [(choice, level) for choice in registry() for level in choice.levels]


def label(single: Single) -> str:
    """For a test's id: the kinds above, and the level itself."""
    choice, level = single
    return "-".join([*(kind for _, kind in choice.within), ".".join(choice.path), level])


@cache
def factors() -> dict[Choice, str]:
    """What each choice decides: the same for a field that several kinds have, apart for each side and each union.

    So `scorer` is one factor of all kinds of self-attention in the encoder, and the attention over the source is one
    factor in all decoders, whatever they call it.
    """
    named: dict[Choice, str] = {}
    for choice in registry():
        above = [each for each in named if choice.within and (each.path, each.within) == _last(choice)]
        kinds = [level for level in choice.levels if level != "null"]
        inside = any((choice.path, choice.within) == _last(each) for each in registry() if each.within)
        own = "|".join(kinds) if above and inside and len(kinds) > 1 else choice.path[-1]
        named[choice] = f"{named[above[0]]}.{own}" if above else ".".join(choice.path)
    return named


def _last(choice: Choice) -> tuple[Path, tuple[tuple[Path, str], ...]]:
    return choice.within[-1][0], choice.within[:-1]


@cache
def pairs() -> dict[tuple[Level, Level], list[dict[Path, str]]]:
    """Every two levels of different factors that can be in one model, with what must be fixed for both, each way.

    Those that exist in the most models come first; otherwise the order says nothing, and is always the same.
    """
    found: dict[tuple[Level, Level], list[dict[Path, str]]] = defaultdict(list)
    named = factors()
    for one, other in combinations(registry(), 2):
        if named[one] == named[other] or one.path == other.path:
            continue
        for first in one.levels:
            for second in other.levels:
                fixed = compatible((one, first), (other, second))
                if fixed is not None:
                    found[(named[one], first), (named[other], second)].append(fixed)
    for hosts in found.values():
        hosts.sort(key=len)
    digests = {pair: (len(hosts[0]), zlib.crc32(repr(pair).encode())) for pair, hosts in found.items()}
    return {pair: found[pair] for pair in sorted(found, key=digests.__getitem__)}


def made(
    fixed: Mapping[Path, str], free: Callable[[Choice], str | None] = lambda choice: choice.usual
) -> tuple[Settings, dict[Choice, str]]:
    """Settings with the levels `fixed` and, of the other choices, those that `free` gives; and the levels asked for."""
    chosen: dict[Choice, str] = {}

    def pick(choice: Choice) -> str | None:
        level = fixed.get(choice.path, free(choice))
        if level is not None:
            chosen[choice] = level
        return level

    settings, _ = assemble(ModelConfig, pick, FIXED, NUMBERS)
    return {**settings, "preset": None, "width": WIDTH, "dropout": 0.1}, chosen


def holding(single: Single, tries: int = 60) -> Iterator[Settings]:
    """Settings that hold this level: the plainest, then with ever other levels of the remaining choices."""
    choice, level = single
    fixed = {**dict(choice.within), choice.path: level}
    yield made(fixed, lambda each: each.usual if each.path[-1] in NUMBERS else None)[0]
    random = Random(label(single))

    def drawn(each: Choice, share: float) -> str:
        return random.choice(each.levels) if random.random() < share else each.usual

    for trial in range(tries):
        yield made(fixed, partial(drawn, share=(0.1, 0.2, 0.4)[trial % 3]))[0]


class Quick(ModelConfig):
    """Built with values on the CPU: at this width four times as fast as without them, and it refuses the same."""

    @model_validator(mode="after")
    def _can_be_built(self) -> "Quick":
        one_layer = {"encoder": self.encoder.shallow(), "decoder": self.decoder.shallow()}
        try:
            Seq2Seq(self.model_copy(update=one_layer), SIZE, SIZE)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        return self


def refusal(settings: Settings) -> str | None:
    """What the config says against the settings, or None."""
    try:
        Quick.model_validate(settings)
    except ValidationError as error:
        return "; ".join(str(detail.get("ctx", {}).get("error", detail["msg"])) for detail in error.errors())
    return None


def leaves(config: type[BaseModel] = ModelConfig) -> set[str]:
    """The names of all settings that hold a value and no group."""
    found: set[str] = set()
    for name, field in config.model_fields.items():
        groups = [member for member in union_members(field.annotation) if is_group(member)]
        for group in groups:
            found |= leaves(group)
        if not groups:
            found.add(name)
    return found
