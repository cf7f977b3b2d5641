"""`Config`, the base class of all config classes, and functions that inspect their fields."""

import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Discriminator, model_validator
from pydantic.fields import FieldInfo

Key = tuple[str | int, ...]
ADDED_MEMBERS: dict[frozenset[Any], dict[str, Any]] = {}
"""Registered members (`settings.variants`) by kind, of each union, which is identified by its built-in members."""
LIST = "list"
"""Tag of a list in an error location if the setting may be a list or a single group. It is not part of the key."""


@dataclass(frozen=True)
class ErrorLocation:
    """The location of a pydantic error in the settings.

    key: the location as the user wrote it, without pydantic's union tags. siblings: the fields of the group that
    contains the last part of the key. tags: the values of `kind` if the location is a union.
    """

    key: Key
    siblings: tuple[str, ...]
    tags: tuple[str, ...]


def locate(config: Any, location: Key) -> ErrorLocation:
    """Resolve pydantic's error location along the annotations of `config`."""
    key: Key = ()
    siblings: tuple[str, ...] = ()
    candidates = union_members(config)
    for part in location:
        groups = [candidate for candidate in candidates if is_group(candidate)]
        tagged = [group for group in groups if part == group.__name__ or part in kinds(group)]
        if len(candidates) > 1 and tagged:
            candidates = tagged
            continue
        containers = [candidate for candidate in candidates if item_type(candidate) is not None]
        if part == LIST and groups and containers:
            candidates = containers
            continue
        if groups:
            siblings = tuple(dict.fromkeys(name for group in groups for name in group.model_fields))
            fields = [group.model_fields[str(part)] for group in groups if part in group.model_fields]
            key = (*key, part)
            candidates = [member for field in fields for member in union_members(field.annotation)]
        elif containers and (isinstance(part, int) or get_origin(containers[0]) is dict):
            siblings = ()
            key = (*key, part)
            candidates = [member for container in containers for member in union_members(item_type(container))]
        elif not candidates:
            key = (*key, part)
        # Any other part is the label of a union member that is not a group, such as `int`, and not part of the key.
    tags = tuple(tag for candidate in candidates for tag in kinds(candidate))
    return ErrorLocation(key, siblings, tags)


def known_settings(config: Any) -> list[str]:
    """Return the dotted names of all settings, including groups and the settings of all union members."""
    return list(dict.fromkeys(_setting_names(config, "", 0)))


def fill_kinds(config: Any, settings: Any, inherited: Mapping[str, str] | None = None) -> Any:
    """Add the default `kind` to groups that belong to a union and have no `kind`.

    The default is the kind of the field's default value. If that value is null, the field can define a kind with
    `json_schema_extra={"kind": …}`. The `default_kinds` of a class take precedence over both. They may also be those of
    nested groups, with dotted names. inherited: the default kinds from enclosing groups, which take precedence.
    """
    if not isinstance(settings, dict):
        return settings
    groups = [member for member in union_members(config) if is_group(member)]
    if len(groups) != 1:
        return settings
    filled = dict(settings)
    own = groups[0].default_kinds(settings) if hasattr(groups[0], "default_kinds") else {}
    defaults = {**own, **(inherited or {})}
    unions = union_members_by_field(groups[0])
    for name, value in settings.items():
        if name not in unions or not isinstance(value, dict):
            continue
        tag = defaults.get(name, _default_kind(groups[0].model_fields[name]))
        if len(unions[name]) > 1 and tag is not None:
            value = {"kind": tag, **value}
        matches = [member for member in unions[name] if value.get("kind") in (None, *kinds(member))]
        below = {key.removeprefix(f"{name}."): kind for key, kind in defaults.items() if key.startswith(f"{name}.")}
        filled[name] = fill_kinds(matches[0], value, below) if len(matches) == 1 else value
    return filled


@cache
def union_members_by_field(config_class: type[BaseModel]) -> dict[str, tuple[Any, ...]]:
    """Return the union members of every field of a config class, by field name."""
    return {name: tuple(union_members(field.annotation)) for name, field in config_class.model_fields.items()}


def _default_kind(field: FieldInfo) -> str | None:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    kind = getattr(field.default, "kind", None) or extra.get("kind")
    return kind if isinstance(kind, str) else None


def union_members(annotation: Any) -> list[Any]:
    """Return the members of a union, except None. Any other type is returned as a list of one."""
    if get_origin(annotation) is Annotated:
        return union_members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for part in get_args(annotation) if part is not type(None) for member in union_members(part)]
        return [*members, *ADDED_MEMBERS.get(frozenset(filter(is_group, members)), {}).values()]
    value = getattr(annotation, "__value__", None)  # a type alias defined by `type X = …`
    return [annotation] if value is None else union_members(value)


@cache
def is_group(annotation: Any) -> bool:
    """Return whether an annotation is a config class."""
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


@cache
def kinds(group: Any) -> tuple[str, ...]:
    """Return the values of `kind` that select this member of a union; an empty tuple for other types."""
    field = group.model_fields.get("kind") if is_group(group) else None
    return get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()


def item_type(annotation: Any) -> Any:
    """Return the type of the items of a list, tuple or set or of the values of a dict; None for other types."""
    if get_origin(annotation) in (list, tuple, dict, set, frozenset):
        arguments = get_args(annotation)
        return arguments[1] if get_origin(annotation) is dict else arguments[0]
    return None


def _setting_names(annotation: Any, prefix: str, depth: int) -> Iterator[str]:
    for member in union_members(annotation):
        if is_group(member) and depth < 10:
            for name, field in member.model_fields.items():
                yield f"{prefix}{name}"
                yield from _setting_names(field.annotation, f"{prefix}{name}.", depth + 1)


class Config(BaseModel):
    """An immutable, validated group of settings. The field `kind` discriminates between the members of a union."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _fill_kinds(cls, values: Any) -> Any:
        """Add missing kinds (see `fill_kinds`)."""
        return fill_kinds(cls, values)

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """Return the kinds, by field name, of the fields whose default kind depends on other settings of the group."""
        return {}


def by_form(group: type[BaseModel]) -> Discriminator:
    """Return a discriminator between one group and a list of groups, so that errors refer to the given form."""

    def form(value: Any) -> str:
        return LIST if isinstance(value, list | tuple) else group.__name__

    return Discriminator(form)
