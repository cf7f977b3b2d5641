"""An index of all settings as JSON, which finds most errors in settings without importing the config classes.

The config classes are defined next to their modules, so importing them imports torch, which takes most of the time
until an error can be reported. The index contains the names of all settings, the kinds of groups, and the types and
bounds of scalars. Errors that depend on several settings are found only by the config classes.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from dragoman.base.settings.config import Key, is_group, item_type, kinds, union_members
from dragoman.base.settings.load import (
    Overrides,
    Source,
    describe_unknown,
    describe_unknown_kind,
    describe_value,
    invalid_settings,
    merge_settings,
)

Index = Mapping[str, Any]
"""tasks: name of the config class by `task.kind`. groups: by name of a config class, its `kinds` and `fields`. A field
has the names of the classes of a single group (`groups`), of the groups in a list (`items`) and of the groups in a
mapping (`named`), and a type if its values are scalars (`scalar`; see `_scalar`).
"""

_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "str": str, "NoneType": None}
_BOUNDS = ("ge", "gt", "le", "lt")
_DEPTH = 10


def build_index(tasks: Mapping[str, type[BaseModel]]) -> Index:
    """Return the index of the config classes. tasks: config class of a run by `task.kind`."""
    groups: dict[str, Any] = {}
    for config in tasks.values():
        _add_group(config, groups)
    return {"tasks": {kind: _name(config) for kind, config in tasks.items()}, "groups": groups}


def _name(group: type[BaseModel]) -> str:
    return f"{group.__module__}.{group.__qualname__}"


def _add_group(group: type[BaseModel], groups: dict[str, Any]) -> None:
    if _name(group) in groups:
        return
    fields: dict[str, Any] = {}
    groups[_name(group)] = {"kinds": kinds(group), "fields": fields}
    converted = {
        name
        for validator in group.__pydantic_decorators__.field_validators.values()
        if validator.info.mode != "after"
        for name in validator.info.fields
    }
    for name, field in group.model_fields.items():
        members = union_members(field.annotation)
        own = [member for member in members if is_group(member)]
        contained: dict[bool, list[type[BaseModel]]] = {True: [], False: []}
        for member in members:
            groups_inside = [item for item in union_members(item_type(member)) if is_group(item)]
            contained[get_origin(member) is dict] += groups_inside
        inner = [*own, *contained[True], *contained[False]]
        for member in inner:
            _add_group(member, groups)
        fields[name] = {
            "groups": [_name(member) for member in own],
            "items": [_name(member) for member in contained[False]],
            "named": [_name(member) for member in contained[True]],
            "scalar": None if inner or name in converted else _scalar(field.annotation, field.metadata),
        }


def _scalar(annotation: Any, metadata: list[Any]) -> Any:
    """Return the types, choices and bounds of a scalar annotation, or None for any other annotation."""
    types, choices = [], []
    is_union = len(union_members(annotation)) > 1 or type(None) in get_args(annotation)
    for member in get_args(annotation) if is_union else [annotation]:
        if get_origin(member) is Literal:
            choices += list(get_args(member))
        elif getattr(member, "__name__", None) in _TYPES:
            types.append(member.__name__)
        else:
            return None
    bounds: dict[str, float] = {}
    for constraint in metadata:
        given = {name: getattr(constraint, name) for name in _BOUNDS if getattr(constraint, name, None) is not None}
        if not given:
            return None  # a constraint or a validator that the index does not contain
        bounds |= given
    return {"types": types, "choices": choices, "bounds": bounds}


def check_settings(index: Index, source: Source, overrides: Overrides) -> None:
    """Raise ConfigError for all errors in settings that the index can find, with the same messages as `load_settings`.

    Settings without errors may still be invalid. Settings that import modules, whose parts the index does not contain,
    are not checked.
    """
    settings, origin = merge_settings(source, overrides)
    task = settings.get("task")
    kind = task.get("kind", "translation") if isinstance(task, dict) else "translation"
    run = index["tasks"].get(kind) if isinstance(kind, str) else None
    if run is None or settings.get("imports"):
        return
    checker = _Checker(index["groups"], run, origin)
    lines = list(dict.fromkeys(checker.errors([run], settings, ())))
    if lines:
        raise invalid_settings(lines)


class _Checker:
    """Compares nested settings with the groups of an index."""

    def __init__(self, groups: Mapping[str, Any], run: str, origin: Callable[[Key], str]) -> None:
        self._groups, self._run, self._origin = groups, run, origin

    def errors(self, candidates: list[str], settings: Mapping[str, Any], key: Key) -> Iterator[str]:
        """Yield a message for each error in a group of settings. candidates: the classes that the group may have."""
        kind = settings.get("kind")
        if len(candidates) > 1 and isinstance(kind, str):
            choices = [tag for name in candidates for tag in self._groups[name]["kinds"]]
            if kind not in choices:
                listed = ", ".join(repr(choice) for choice in choices)
                yield describe_unknown_kind((*key, "kind"), kind, self._origin((*key, "kind")), listed)
                return
            candidates = [name for name in candidates if kind in self._groups[name]["kinds"]]
        fields = [self._groups[name]["fields"] for name in candidates]
        siblings = list(dict.fromkeys(name for each in fields for name in each))
        for name, value in settings.items():
            inner = (*key, name)
            matches = [each[name] for each in fields if name in each]
            if matches:
                yield from self._field_errors(matches, value, inner)
            else:
                names = list(self._names([self._run], "", 0))
                yield describe_unknown(inner, value, self._origin(inner), siblings, names)

    def _field_errors(self, fields: list[Any], value: Any, key: Key) -> Iterator[str]:
        groups, items, named = (
            list(dict.fromkeys(name for field in fields for name in field[part]))
            for part in ("groups", "items", "named")
        )
        inner: list[tuple[Key, Any, list[str]]]
        if not groups and not items and not named:
            yield from self._scalar_errors([field["scalar"] for field in fields], value, key)
            return
        if isinstance(value, dict) and named:
            inner = [((*key, name), item, named) for name, item in value.items()]
        elif isinstance(value, dict):
            inner = [(key, value, groups)] if groups else []
        elif isinstance(value, list):
            inner = [((*key, number), item, items) for number, item in enumerate(value)] if items else []
        else:
            inner = []
        for inner_key, group, candidates in inner:
            if isinstance(group, dict):
                yield from self.errors(candidates, group, inner_key)

    def _scalar_errors(self, scalars: list[Any], value: Any, key: Key) -> Iterator[str]:
        """Yield messages for a value that is valid for none of the scalar types. None stands for an unknown type."""
        if "${" in str(value) or None in scalars:
            return
        messages = [list(self._value_errors(scalar, value, key)) for scalar in scalars]
        if all(messages):
            yield from messages[0]

    def _value_errors(self, scalar: Any, value: Any, key: Key) -> Iterator[str]:
        members = [_TYPES[name] for name in scalar["types"]]
        members += [Literal[tuple(scalar["choices"])]] if scalar["choices"] else []
        annotation: Any = members[0]
        for member in members[1:]:
            annotation = annotation | member if annotation is not None else member | None
        try:
            TypeAdapter(Annotated[annotation, Field(**scalar["bounds"])]).validate_python(value)
        except ValidationError as error:
            for detail in error.errors():
                yield describe_value(".".join(map(str, key)), detail, self._origin(key))

    def _names(self, candidates: list[str], prefix: str, depth: int) -> Iterator[str]:
        """Yield the dotted names of all settings of the groups, like `config.known_settings`."""
        for candidate in candidates:
            for name, field in self._groups[candidate]["fields"].items():
                yield f"{prefix}{name}"
                if depth < _DEPTH:
                    yield from self._names(field["groups"], f"{prefix}{name}.", depth + 1)
