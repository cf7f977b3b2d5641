"""Enumerate the choices that a config class offers: union kinds, literals, booleans and optional groups.

Tests and benchmarks use this to cover the space of model variants.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dragoman.base.settings.config import is_group, kinds, members_of_fields, union_members

Path = tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A field that takes one of several levels.

    path: names of the nested fields, outermost first. levels: one label per level, such as a kind, `true` or `null`.
    usual: the label of the default. within: the (path, level) pairs of enclosing choices under which the field exists.
    needs: levels that are left out because their groups have required settings, such as a file name.
    """

    path: Path
    levels: tuple[str, ...]
    usual: str
    within: tuple[tuple[Path, str], ...] = ()
    needs: tuple[str, ...] = ()


Level = tuple[Path, str]
Numbers = Mapping[str, Sequence[Any]]
"""Values to try for fields with an open range, such as sizes, by field name; the default comes first."""


def choices(config: type[BaseModel], numbers: Numbers | None = None) -> list[Choice]:
    """Return all choices of `config`, outer choices before inner ones.

    A field that several kinds share is returned once per kind. numbers: open-ended fields to include as choices.
    """
    return list(_choices(config, (), (), numbers or {}))


def assemble(
    config: type[BaseModel],
    pick: Callable[[Choice], str | None],
    values: Mapping[str, Any] | None = None,
    numbers: Numbers | None = None,
) -> tuple[dict[str, Any], dict[Path, str]]:
    """Build settings by calling `pick` for a level at each choice that exists under the levels picked so far.

    If `pick` returns None, the field is omitted and keeps its default. values: values of other fields, by name, used
    wherever the field exists. numbers: as for `choices`. Returns the settings and the level picked at each choice.
    """
    chosen: dict[Path, str] = {}
    return _assembled(config, (), (), pick, values or {}, numbers or {}, chosen), chosen


def levels(config: BaseModel, found: Iterable[Choice]) -> dict[Choice, str]:
    """Return the level of `config` at each choice in `found` that exists in it."""
    present: dict[Choice, str] = {}
    at: dict[Path, str] = {}
    for choice in found:  # each before those inside it
        if all(at.get(path) == level for path, level in choice.within):
            value: Any = config
            for name in choice.path:
                value = getattr(value, name)
            at[choice.path] = present[choice] = _label(value)
    return present


def compatible(one: tuple[Choice, str], other: tuple[Choice, str]) -> dict[Path, str] | None:
    """Return the levels that a config with both choices must have, or None if no config can have both."""
    fixed: dict[Path, str] = {}
    for choice, level in (one, other):
        for path, wanted in (*choice.within, (choice.path, level)):
            if fixed.setdefault(path, wanted) != wanted:
                return None
    return fixed


def _choices(group: type[BaseModel], path: Path, within: tuple[Level, ...], numbers: Numbers) -> Iterator[Choice]:
    for name in group.model_fields:
        here = (*path, name)
        choice = _choice(group, here, within, numbers)
        if choice is not None:
            yield choice
        for label, member in _groups(group)[name].items():
            inside = (*within, (here, label)) if choice is not None else within
            if not _required(member):
                yield from _choices(member, here, inside, numbers)


def _choice(group: type[BaseModel], path: Path, within: tuple[Level, ...], numbers: Numbers) -> Choice | None:
    """Return the choice at the last field of `path`, a field of `group`, or None if it has fewer than two levels."""
    if path[-1] == "kind":
        return None
    labels, usual, missing = _offered(group)[path[-1]]
    if not labels and path[-1] in numbers:
        labels = tuple(_label(value) for value in numbers[path[-1]])
        usual = labels[0]
    return Choice(path, labels, usual, within, missing) if len(labels) > 1 or missing else None


@cache
def _offered(group: type[BaseModel]) -> dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """Return, per field, the labels of its levels, the default's label, and the labels left out (`Choice.needs`)."""
    return {name: _labels(field, _groups(group)[name]) for name, field in group.model_fields.items()}


def _labels(field: FieldInfo, groups: dict[str, type[BaseModel]]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    optional = NoneType in get_args(field.annotation)
    # get_default makes a deep copy, so use the default itself if there is no factory
    default = field.default if field.default_factory is None else field.get_default(call_default_factory=True)
    usual = _label(default)
    if groups:
        labels = [label for label, member in groups.items() if not _required(member)]
        missing = tuple(label for label in groups if label not in labels)
        labels = ["null", *labels] if optional else labels
    else:
        labels, missing = [_label(value) for value in _values(field.annotation)], ()
        # null means "derived from other settings", so it is a level of its own only if it is the default
        labels = ["null", *labels] if labels and optional and default is None else labels
    return tuple(labels), usual, missing


def _assembled(
    group: type[BaseModel],
    path: Path,
    within: tuple[Level, ...],
    pick: Callable[[Choice], str | None],
    values: Mapping[str, Any],
    numbers: Numbers,
    chosen: dict[Path, str],
) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, field in group.model_fields.items():
        here = (*path, name)
        choice, groups = _choice(group, here, within, numbers), _groups(group)[name]
        level = None if choice is None else pick(choice)
        if choice is not None and level is not None:
            chosen[here] = level
        label = level or (choice.usual if choice is not None else next(iter(groups), None))
        if label in groups:
            inside = (*within, (here, label)) if choice is not None else within
            inner = _assembled(groups[label], here, inside, pick, values, numbers, chosen)
            if kinds(groups[label]):
                inner = {"kind": label, **inner}
            if level is not None or set(inner) - {"kind"}:
                settings[name] = inner
        elif level is not None:
            settings[name] = None if level == "null" else _value(field.annotation, level, numbers.get(name, ()))
        elif choice is None and not groups and name in values:
            settings[name] = values[name]
    return settings


@cache
def _groups(config: type[BaseModel]) -> dict[str, dict[str, type[BaseModel]]]:
    """Return the config classes that each field may hold, by kind, or under `set` for a class without a kind."""
    return {
        name: {label: member for member in members if is_group(member) for label in kinds(member) or ("set",)}
        for name, members in members_of_fields(config).items()
    }


@cache
def _required(group: type[BaseModel]) -> bool:
    return any(field.is_required() for field in group.model_fields.values())


def _values(annotation: Any) -> list[Any]:
    found: list[Any] = []
    for member in union_members(annotation):
        if member is bool:
            found += [True, False]
        elif get_origin(member) is Literal:
            found += get_args(member)
    return found


def _value(annotation: Any, label: str, numbers: Sequence[Any]) -> Any:
    return next(value for value in (*_values(annotation), *numbers) if _label(value) == label)


def _label(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, BaseModel):
        return str(getattr(value, "kind", "set"))
    return str(value)
