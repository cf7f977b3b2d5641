"""Generates the reference of all settings from the config classes, with one section per group."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dragoman.base.settings.config import is_group, item_type, kinds, union_members
from dragoman.base.settings.yaml import dump_yaml

_TYPE_NAMES = {"int": "whole number", "float": "number", "bool": "true or false", "str": "text", "Path": "path"}
_BELOW, _MISSING = "see below", object()
NAME = "NAME"
"""The placeholder for the name of a group in a mapping."""
_BOUND_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
"""Comparison operators by the attributes of annotated_types in which pydantic stores bounds."""


@dataclass(frozen=True)
class Setting:
    """A setting. key: dotted name. type, default: as text; the default of a required setting is None."""

    key: str
    type: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Section:
    """A group of settings. path: its dotted name; empty for the top level. kind: its kind, if it belongs to a union."""

    path: str
    kind: str | None
    summary: str
    settings: tuple[Setting, ...]

    @property
    def title(self) -> str:
        """The path, followed by the kind if the group belongs to a union."""
        return (self.path or "the top level") + (f", kind: {self.kind}" if self.kind else "")


def sections(config: type[BaseModel]) -> list[Section]:
    """Return the groups of `config` in the order of its fields, each followed by its subgroups."""
    return list(_sections(config, "", None, None))


def select(all_sections: Sequence[Section], path: str) -> list[Section]:
    """Return the sections for `path`.

    For a group, these are the sections of the group and its subgroups; for a single setting, its section with only this
    setting. For an unknown path, the list is empty.
    """
    groups = [section for section in all_sections if f"{section.path}.".startswith(f"{path}.")]
    if groups:
        return groups
    rows = [(section, tuple(row for row in section.settings if row.key == path)) for section in all_sections]
    return [Section(section.path, section.kind, section.summary, matches) for section, matches in rows if matches]


def markdown(selected: Sequence[Section]) -> str:
    """Format sections as Markdown, each with a heading and a table."""
    parts = []
    for section in selected:
        heading = f"## `{section.path}`" if section.path else "## The top level"
        rows = ["| key | type | default | description |", "| --- | --- | --- | --- |"]
        for row in section.settings:
            default = {None: "must be given", _BELOW: _BELOW}.get(row.default, f"`{row.default}`")
            cells = (f"`{row.key}`", row.type, default, row.description)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts += [heading + (f" with `kind: {section.kind}`" if section.kind else ""), section.summary, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def plain(selected: Sequence[Section]) -> str:
    """Format sections as plain text for a terminal."""
    parts = []
    for section in selected:
        lines = [section.title, f"  {section.summary}"]
        for row in section.settings:
            default = {None: "must be given", _BELOW: _BELOW}.get(row.default, f"default {row.default}")
            lines += ["", f"  {row.key}", f"      {row.type.replace('`', '')}; {default}", f"      {row.description}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _sections(group: type[BaseModel], path: str, kind: str | None, default: Any) -> Iterator[Section]:
    """Yield the sections of `group` and its subgroups. default: default value of the field that contains the group."""
    inner: list[Section] = []
    settings = []
    for name, field in group.model_fields.items():
        key = f"{path}.{name}" if path else name
        value = getattr(default, name) if isinstance(default, group) else _default(field)
        groups = [member for member in union_members(field.annotation) if is_group(member)]
        named = _named_groups(field)
        for member in named:
            tag = kinds(member)[0] if len(named) > 1 and kinds(member) else None
            inner += _sections(member, f"{key}.{NAME}", tag, _MISSING)
        if groups:
            for member in groups:
                tag = kinds(member)[0] if len(groups) > 1 and kinds(member) else None
                inner += _sections(member, key, tag, value)
            type_text, default_text = _format_group(field, groups, value)
            settings.append(Setting(key, type_text, default_text, _first_paragraph(field.description)))
        elif name != "kind":
            settings.append(
                Setting(key, _format_type(field), _format_default(value), _first_paragraph(field.description))
            )
        elif kind is not None:
            settings.insert(0, Setting(key, f"`{kind}`", kind, "Selects this kind of the group."))
    yield Section(path, kind, _first_paragraph(inspect.getdoc(group)), tuple(settings))
    yield from inner


def _named_groups(field: FieldInfo) -> list[type[BaseModel]]:
    """Return the groups that can be values of a mapping with arbitrary names. `"listed": False` leaves them out."""
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    mappings = [member for member in union_members(field.annotation) if get_origin(member) is dict]
    if not mappings or extra.get("listed") is False:
        return []
    return [member for member in union_members(item_type(mappings[0])) if is_group(member)]


def _default(field: FieldInfo) -> Any:
    return _MISSING if field.is_required() else field.get_default(call_default_factory=True)


def _format_group(field: FieldInfo, groups: Sequence[type[BaseModel]], value: Any) -> tuple[str, str | None]:
    """Return the type and the default, as text, of a setting that is a group."""
    tags = [tag for member in groups for tag in kinds(member)] if len(groups) > 1 else []
    text = "group" + (f" of kind {_format_choices(tags)}" if tags else "")
    if any(item_type(member) in groups for member in union_members(field.annotation)):
        text += ", or a list of such groups"
    if value is _MISSING:
        return text, None
    if value is None:
        return f"{text}, or null", "null"
    return text, f"kind: {value.kind}" if tags else _BELOW


def _format_type(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {_format_scalar(getattr(bound, name))}"
        for bound in field.metadata
        for name, sign in _BOUND_SIGNS.items()
        if hasattr(bound, name)
    ]
    names = list(dict.fromkeys(_format_annotation(member) for member in union_members(field.annotation)))
    optional = type(None) in get_args(field.annotation)
    return " or ".join(names) + (f" {' and '.join(bounds)}" if bounds else "") + (", or null" if optional else "")


def _format_annotation(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _format_annotation(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return _format_choices([_format_scalar(value) for value in get_args(annotation)])
    if get_origin(annotation) is dict:
        groups = [member for member in union_members(item_type(annotation)) if is_group(member)]
        choices = _format_choices([tag for member in groups for tag in kinds(member)]) if groups else ""
        return f"groups by name, each of kind {choices}" if choices else "mapping"
    if get_origin(annotation) in (list, tuple, set, frozenset):
        return f"list (items: {_format_annotation(get_args(annotation)[0])})"
    if is_group(annotation) and kinds(annotation):
        return _format_choices(kinds(annotation))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(_format_annotation(member) for member in union_members(annotation))
    name = getattr(annotation, "__name__", str(annotation))
    return _TYPE_NAMES.get(name, name)


def _format_choices(choices: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(f"`{choice}`" for choice in choices[:-1]), f"`{choices[-1]}`"]))


def _format_default(value: Any) -> str | None:
    if value is _MISSING:
        return None
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_scalar, value))}]"
    return _format_scalar(value if value is None or isinstance(value, int | float | str) else str(value))


@lru_cache(maxsize=None, typed=True)
def _format_scalar(value: Any) -> str:
    """Format a value as in YAML."""
    if isinstance(value, float):
        return f"{value:g}"
    return dump_yaml(value if value is None or isinstance(value, int | str) else str(value)).split("\n")[0]


def _first_paragraph(text: str | None) -> str:
    """Return the first paragraph as a single line."""
    return " ".join((text or "").split("\n\n")[0].split())
