"""Choices of a config class, compared with the enumeration of all configs of small classes."""

from functools import cache
from itertools import combinations, product
from typing import Annotated, Literal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from setting_choices import Choice, assemble, choices, compatible, levels

from dragoman.base.settings.config import Config


class Plain(Config):
    kind: Literal["plain"] = "plain"
    size: int = 3


class Rich(Config):
    kind: Literal["rich"] = "rich"
    mode: Literal["slow", "fast"] | None = None
    switch: bool = True


class Named(Config):
    kind: Literal["named"] = "named"
    path: str


class Inner(Config):
    bias: bool = False


class Whole(Config):
    part: Annotated[Plain | Rich | Named, Field(discriminator="kind")] = Plain()
    other: Annotated[Plain | Rich, Field(discriminator="kind")] | None = None
    extra: Inner | None = None
    rate: float = 0.5


NUMBERS = {"size": (3, 5), "missing": (1,)}
FOUND = choices(Whole, NUMBERS)


def named(choice: Choice) -> str:
    return "/".join([*(level for _, level in choice.conditions), ".".join(choice.path)])


@cache
def configs() -> list[dict[Choice, str]]:
    """Return the levels of every possible config, by assembling all picks."""
    every = {}
    for picks in product(*(choice.levels for choice in FOUND)):
        settings, chosen = assemble(Whole, dict(zip(FOUND, picks, strict=True)).get, {"rate": 0.25}, NUMBERS)
        every[tuple(chosen.items())] = settings
    validated = [Whole.model_validate(settings) for settings in every.values()]
    assert all(config.rate == 0.25 for config in validated)
    return [levels(config, FOUND) for config in {config.model_dump_json(): config for config in validated}.values()]


def test_each_field_is_found_with_its_levels() -> None:
    assert {named(choice): (choice.levels, choice.default, choice.omitted) for choice in FOUND} == {
        "part": (("plain", "rich"), "plain", ("named",)),
        "plain/part.size": (("3", "5"), "3", ()),
        "rich/part.mode": (("null", "slow", "fast"), "null", ()),
        "rich/part.switch": (("true", "false"), "true", ()),
        "other": (("null", "plain", "rich"), "null", ()),
        "plain/other.size": (("3", "5"), "3", ()),
        "rich/other.mode": (("null", "slow", "fast"), "null", ()),
        "rich/other.switch": (("true", "false"), "true", ()),
        "extra": (("null", "set"), "null", ()),
        "set/extra.bias": (("true", "false"), "false", ()),
    }


def test_without_numbers_sizes_are_no_choices() -> None:
    assert not [choice for choice in choices(Whole) if choice.path[-1] == "size"]


def test_all_configs_can_be_assembled() -> None:
    # part: 2 sizes or 3 modes × 2; other: that or null; extra: null or a switch
    assert len(configs()) == (2 + 6) * (1 + 2 + 6) * (1 + 2)


def test_two_levels_are_compatible_if_some_config_has_both() -> None:
    singles = [(choice, level) for choice in FOUND for level in choice.levels]
    for one, other in combinations(singles, 2):
        if one[0] != other[0]:
            together = any(each.get(one[0]) == one[1] and each.get(other[0]) == other[1] for each in configs())
            assert (compatible(one, other) is not None) == together, (named(one[0]), one[1], named(other[0]), other[1])


@given(st.data())
def test_a_config_has_the_levels_that_were_picked(data: st.DataObject) -> None:
    picked = {choice: data.draw(st.sampled_from(choice.levels), label=named(choice)) for choice in FOUND}
    settings, chosen = assemble(Whole, picked.get, numbers=NUMBERS)
    present = levels(Whole.model_validate(settings), FOUND)
    assert present == {choice: level for choice, level in picked.items() if choice in present}
    assert chosen == {choice.path: level for choice, level in present.items()}
    for one, other in combinations(present.items(), 2):
        fixed = compatible(one, other)
        assert fixed is not None
        assert fixed.items() <= chosen.items()


def test_levels_that_are_not_picked_are_left_out() -> None:
    assert assemble(Whole, lambda choice: None) == ({}, {})
    settings, chosen = assemble(Whole, lambda choice: "rich" if choice.path == ("other",) else None, {"rate": 1.0})
    assert settings == {"other": {"kind": "rich"}, "rate": 1.0}
    assert chosen == {("other",): "rich"}
