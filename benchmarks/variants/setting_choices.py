"""Enumerate the choices that a config class offers: union kinds, literals, booleans and optional groups.

Tests and benchmarks use these choices to cover the space of model variants.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dragoman.base.settings.config import is_group, kinds, union_members, union_members_by_field

Path = tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A field with several possible values, called levels.

    path: names of the nested fields, outermost first. levels: one label per level, such as a kind, `true` or `null`.
    default: the label of the default level. conditions: (path, level) pairs of the enclosing choices under which the
    field exists. omitted: levels that are excluded because their groups have required settings, such as a file name.
    """

    path: Path
    levels: tuple[str, ...]
    default: str
    conditions: tuple[tuple[Path, str], ...] = ()
    omitted: tuple[str, ...] = ()


Level = tuple[Path, str]
"""The path of a choice and one of its levels."""
Numbers = Mapping[str, Sequence[Any]]
"""Values to try for fields with an open range, such as sizes, by field name. The default value is first."""


def choices(config: type[BaseModel], numbers: Numbers | None = None) -> list[Choice]:
    """Return all choices of `config`, outer choices before inner choices.

    A field that occurs in several kinds is returned once per kind. numbers: fields with an open range to include as
    choices.
    """
    return list(_choices(config, (), (), numbers or {}))


def assemble(
    config: type[BaseModel],
    pick: Callable[[Choice], str | None],
    values: Mapping[str, Any] | None = None,
    numbers: Numbers | None = None,
) -> tuple[dict[str, Any], dict[Path, str]]:
    """Build settings by calling `pick` for each choice that exists under the levels picked so far.

    If `pick` returns None, the field is omitted and keeps its default. values: values of other fields by name, used
    in every group that has the field. numbers: as for `choices`. Returns the settings and the level of each choice.
    """
    assembly = _Assembly(pick, values or {}, numbers or {})
    return assembly.settings(config, (), ()), assembly.picked


def levels(config: BaseModel, choices: Iterable[Choice]) -> dict[Choice, str]:
    """Return the level of `config` at each choice that exists in it.

    choices: the choices to look up; outer choices must precede inner choices.
    """
    level_by_choice: dict[Choice, str] = {}
    level_by_path: dict[Path, str] = {}
    for choice in choices:
        if all(level_by_path.get(path) == level for path, level in choice.conditions):
            value: Any = config
            for name in choice.path:
                value = getattr(value, name)
            level_by_path[choice.path] = level_by_choice[choice] = _label(value)
    return level_by_choice


def compatible(first: tuple[Choice, str], second: tuple[Choice, str]) -> dict[Path, str] | None:
    """Return the levels required in a config with both choices, or None if the choices exclude each other."""
    required: dict[Path, str] = {}
    for choice, choice_level in (first, second):
        for path, level in (*choice.conditions, (choice.path, choice_level)):
            if required.setdefault(path, level) != level:
                return None
    return required


def _choices(group: type[BaseModel], path: Path, conditions: tuple[Level, ...], numbers: Numbers) -> Iterator[Choice]:
    for name in group.model_fields:
        field_path = (*path, name)
        choice = _choice(group, field_path, conditions, numbers)
        if choice is not None:
            yield choice
        for label, member in _groups(group)[name].items():
            inner_conditions = (*conditions, (field_path, label)) if choice is not None else conditions
            if not _has_required_fields(member):
                yield from _choices(member, field_path, inner_conditions, numbers)


def _choice(group: type[BaseModel], path: Path, conditions: tuple[Level, ...], numbers: Numbers) -> Choice | None:
    """Return the choice at the last field of `path`, a field of `group`, or None if it has fewer than two levels."""
    if path[-1] == "kind":
        return None
    labels, default, omitted = _field_levels(group)[path[-1]]
    if not labels and path[-1] in numbers:
        labels = tuple(_label(value) for value in numbers[path[-1]])
        default = labels[0]
    return Choice(path, labels, default, conditions, omitted) if len(labels) > 1 or omitted else None


@cache
def _field_levels(group: type[BaseModel]) -> dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """Return `levels`, `default` and `omitted` (see `Choice`) of each field."""
    return {name: _labels(info, _groups(group)[name]) for name, info in group.model_fields.items()}


def _labels(info: FieldInfo, groups: dict[str, type[BaseModel]]) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    is_optional = NoneType in get_args(info.annotation)
    # avoid get_default without a factory, because it makes a deep copy
    default = info.default if info.default_factory is None else info.get_default(call_default_factory=True)
    if groups:
        labels = [label for label, member in groups.items() if not _has_required_fields(member)]
        omitted = tuple(label for label in groups if label not in labels)
        labels = ["null", *labels] if is_optional else labels
    else:
        labels, omitted = [_label(value) for value in _values(info.annotation)], ()
        # null means "derived from other settings", so it is a separate level only if it is the default
        labels = ["null", *labels] if labels and is_optional and default is None else labels
    return tuple(labels), _label(default), omitted


@dataclass(frozen=True)
class _Assembly:
    """The arguments of `assemble`, and the level of each choice that has been picked."""

    pick: Callable[[Choice], str | None]
    values: Mapping[str, Any]
    numbers: Numbers
    picked: dict[Path, str] = field(default_factory=dict)

    def settings(self, group: type[BaseModel], path: Path, conditions: tuple[Level, ...]) -> dict[str, Any]:
        """Return the settings of a group. conditions: as in `Choice`."""
        settings: dict[str, Any] = {}
        for name, info in group.model_fields.items():
            field_path = (*path, name)
            choice, groups = _choice(group, field_path, conditions, self.numbers), _groups(group)[name]
            level = None if choice is None else self.pick(choice)
            if choice is not None and level is not None:
                self.picked[field_path] = level
            label = level or (choice.default if choice is not None else next(iter(groups), None))
            if label in groups:
                inner_conditions = (*conditions, (field_path, label)) if choice is not None else conditions
                inner = self.settings(groups[label], field_path, inner_conditions)
                if kinds(groups[label]):
                    inner = {"kind": label, **inner}
                if level is not None or set(inner) - {"kind"}:
                    settings[name] = inner
            elif level is not None:
                settings[name] = None if level == "null" else _value(info.annotation, level, self.numbers.get(name, ()))
            elif choice is None and not groups and name in self.values:
                settings[name] = self.values[name]
        return settings


@cache
def _groups(config: type[BaseModel]) -> dict[str, dict[str, type[BaseModel]]]:
    """Return the possible config classes of each field by kind. A class without a kind has the label `set`."""
    return {
        name: {label: member for member in members if is_group(member) for label in kinds(member) or ("set",)}
        for name, members in union_members_by_field(config).items()
    }


@cache
def _has_required_fields(group: type[BaseModel]) -> bool:
    return any(field.is_required() for field in group.model_fields.values())


def _values(annotation: Any) -> list[Any]:
    values: list[Any] = []
    for member in union_members(annotation):
        if member is bool:
            values += [True, False]
        elif get_origin(member) is Literal:
            values += get_args(member)
    return values


def _value(annotation: Any, label: str, numbers: Sequence[Any]) -> Any:
    return next(value for value in (*_values(annotation), *numbers) if _label(value) == label)


def _label(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, BaseModel):
        return str(getattr(value, "kind", "set"))
    return str(value)
