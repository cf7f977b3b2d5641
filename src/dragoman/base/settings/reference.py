"""The reference of all settings, generated from the config classes: one section per group, one row per setting."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dragoman.base.settings.config import is_group, item_type, kinds, union_members
from dragoman.base.settings.yaml import dump_yaml

_WORDS = {"int": "whole number", "float": "number", "bool": "true or false", "str": "text", "Path": "path"}
_BELOW, _MISSING = "see below", object()
_SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}  # attributes of annotated_types, in which pydantic stores bounds


@dataclass(frozen=True)
class Setting:
    """A setting. key: dotted name; type and default: as text; the default is None for required settings."""

    key: str
    type: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Section:
    """A group of settings. path: its dotted name, empty at the top; kind: its kind, if it is a member of a union."""

    path: str
    kind: str | None
    summary: str
    settings: tuple[Setting, ...]

    @property
    def title(self) -> str:
        """The path, followed by the kind if there are several."""
        return (self.path or "the top level") + (f", kind: {self.kind}" if self.kind else "")


def sections(config: type[BaseModel]) -> list[Section]:
    """Return the groups of `config` in the order of its fields, each followed by its inner groups."""
    return list(_sections(config, "", None, None))


def select(everything: Sequence[Section], path: str) -> list[Section]:
    """Return the sections for `path`: a group with its inner groups, or a single setting; empty if it is neither."""
    inside = [each for each in everything if f"{each.path}.".startswith(f"{path}.")]
    if inside:
        return inside
    rows = [(each, tuple(row for row in each.settings if row.key == path)) for each in everything]
    return [Section(each.path, each.kind, each.summary, found) for each, found in rows if found]


def markdown(chosen: Sequence[Section]) -> str:
    """Format as Markdown, with a heading and a table per section."""
    parts = []
    for section in chosen:
        heading = f"## `{section.path}`" if section.path else "## The top level"
        rows = ["| key | type | default | description |", "| --- | --- | --- | --- |"]
        for row in section.settings:
            default = {None: "must be given", _BELOW: _BELOW}.get(row.default, f"`{row.default}`")
            cells = (f"`{row.key}`", row.type, default, row.description)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts += [heading + (f" with `kind: {section.kind}`" if section.kind else ""), section.summary, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def plain(chosen: Sequence[Section]) -> str:
    """Format for a terminal."""
    parts = []
    for section in chosen:
        lines = [section.title, f"  {section.summary}"]
        for row in section.settings:
            default = {None: "must be given", _BELOW: _BELOW}.get(row.default, f"default {row.default}")
            lines += ["", f"  {row.key}", f"      {row.type.replace('`', '')}; {default}", f"      {row.description}"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _sections(group: type[BaseModel], path: str, kind: str | None, default: Any) -> Iterator[Section]:
    """Yield the section of `group`, then those of its inner groups. default: the default of the outer field."""
    inner: list[Section] = []
    settings = []
    for name, field in group.model_fields.items():
        key = f"{path}.{name}" if path else name
        value = getattr(default, name) if isinstance(default, group) else _default(field)
        groups = [member for member in union_members(field.annotation) if is_group(member)]
        if groups:
            for member in groups:
                tag = kinds(member)[0] if len(groups) > 1 and kinds(member) else None
                inner += _sections(member, key, tag, value)
            settings.append(Setting(key, *_group(field, groups, value), _line(field.description)))
        elif name != "kind":
            settings.append(Setting(key, _type(field), _shown(value), _line(field.description)))
        elif kind is not None:
            settings.insert(0, Setting(key, f"`{kind}`", kind, "Selects this kind of the group."))
    yield Section(path, kind, _line(inspect.getdoc(group)), tuple(settings))
    yield from inner


def _default(field: FieldInfo) -> Any:
    return _MISSING if field.is_required() else field.get_default(call_default_factory=True)


def _group(field: FieldInfo, groups: Sequence[type[BaseModel]], value: Any) -> tuple[str, str | None]:
    """Return type and default of a setting that is a group."""
    tags = [tag for member in groups for tag in kinds(member)] if len(groups) > 1 else []
    words = "group" + (f" of kind {_either(tags)}" if tags else "")
    if any(item_type(member) in groups for member in union_members(field.annotation)):
        words += ", or a list of such groups"
    if value is _MISSING:
        return words, None
    if value is None:
        return f"{words}, or null", "null"
    return words, f"kind: {value.kind}" if tags else _BELOW


def _type(field: FieldInfo) -> str:
    signs = [
        f"{sign} {_scalar(getattr(bound, name))}"
        for bound in field.metadata
        for name, sign in _SIGNS.items()
        if hasattr(bound, name)
    ]
    words = list(dict.fromkeys(_word(member) for member in union_members(field.annotation)))
    optional = type(None) in get_args(field.annotation)
    return " or ".join(words) + (f" {' and '.join(signs)}" if signs else "") + (", or null" if optional else "")


def _word(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        return _word(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return _either([_scalar(value) for value in get_args(annotation)])
    if get_origin(annotation) in (list, tuple, set, frozenset):
        return f"list (items: {_word(get_args(annotation)[0])})"
    if get_origin(annotation) is Union:
        return " or ".join(_word(member) for member in union_members(annotation))
    name = getattr(annotation, "__name__", str(annotation))
    return _WORDS.get(name, name)


def _either(choices: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(f"`{choice}`" for choice in choices[:-1]), f"`{choices[-1]}`"]))


def _shown(value: Any) -> str | None:
    if value is _MISSING:
        return None
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """Format a value as in YAML."""
    if isinstance(value, float):
        return f"{value:g}"
    return dump_yaml(value if value is None or isinstance(value, int | str) else str(value)).split("\n")[0]


def _line(text: str | None) -> str:
    """Return the first paragraph as a single line."""
    return " ".join((text or "").split("\n\n")[0].split())
