"""Load settings from a YAML file and the command line and validate them; every error names its key."""

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import fill_kinds, known_settings, locate
from dragoman.base.settings.yaml import Document, dump_yaml, parse_scalar, parse_yaml

C = TypeVar("C")
Key = tuple[str | int, ...]
COMMAND_LINE = "from the command line"
PYTHON = "from Python"
_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Override(NamedTuple):
    """A value that overrides a recipe. origin: its source, for error messages."""

    key: Key
    value: Any
    origin: str


Source = str | Path | Mapping[str, Any] | BaseModel | None
"""Settings: a YAML file, nested values as in YAML, a config, or nothing."""

Overrides = Mapping[str, Any] | Sequence[str | Override]
"""Values by dotted keys, as in `{"train.max_steps": 1000}`, or strings, `train.max_steps=1000`, with YAML values."""


def load_settings(source: Source, overrides: Overrides, config: type[C]) -> C:
    """Load settings, apply overrides, each of which replaces everything at its key, and validate them as `config`.

    `${NAME}` is replaced by an environment variable; write `$${NAME}` for the literal characters. If the source is a
    config, only the fields that were set are used, so that defaults can depend on the overrides.
    Raises ConfigError for a missing file, invalid YAML, a duplicate or unknown key, an unset variable, a wrong value.
    """
    document = read_document(source)
    origins = {key: f"{source}, line {line}" for key, line in document.lines.items()}
    settings, given = document.content, all_overrides(overrides)
    for key, value, origin_of_value in given:
        for stale in [other for other in origins if other[: len(key)] == key]:
            del origins[stale]
        origins[key] = origin_of_value
        _put(settings, key, value, origin_of_value)
    if source is None:
        whole = given[0].origin if given else COMMAND_LINE
    else:
        whole = str(source) if isinstance(source, str | Path) else PYTHON

    def origin(key: Key) -> str:
        for end in range(len(key), 0, -1):
            if key[:end] in origins:
                return origins[key[:end]]
        return whole

    return _check(settings, config, origin)


def all_overrides(*groups: Overrides) -> list[Override]:
    """Return the overrides of all groups, in order. Raises ConfigError for an invalid override."""
    found: list[Override] = []
    for group in groups:
        if isinstance(group, Mapping):
            found += [Override(_key(name, name), _copied(value), PYTHON) for name, value in group.items()]
        else:
            found += [_split(each) if isinstance(each, str) else each for each in group]
    return found


def parse_settings(mapping: Mapping[str, Any], config: type[C], origin: str) -> C:
    """Validate `mapping` as `config`: a pydantic class, or anything that TypeAdapter accepts, such as a union.

    origin: source of the settings, for error messages. Raises ConfigError, which lists all errors.
    """
    return _check(mapping, config, lambda key: origin)


def dump_settings(config: BaseModel) -> str:
    """Dump as YAML from which `load_settings` restores an equal config."""
    return dump_yaml(_escaped(config.model_dump(mode="json")))


def _escaped(settings: Any) -> Any:
    return _map_text(settings, lambda text, key: _VARIABLE.sub(r"$\g<0>", text))


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted keys."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        key: value for name, inner in tree.items() for key, value in flatten(inner, f"{path}.{name}".strip(".")).items()
    }


def _check(settings: Any, config: type[C], origin: Callable[[Key], str]) -> C:
    expanded = _map_text(settings, lambda text, key: _expand(text, key, origin))
    try:
        return TypeAdapter(config).validate_python(fill_kinds(config, expanded))
    except ValidationError as error:
        found: dict[str, None] = dict.fromkeys(_describe(detail, config, origin) for detail in error.errors())
        lines = list(found)
        if len(lines) == 1:
            raise ConfigError(lines[0]) from None
        raise ConfigError("\n  ".join([f"{len(lines)} settings are wrong:", *lines])) from None


def _describe(detail: Any, config: Any, origin: Callable[[Key], str]) -> str:
    """Format one of pydantic's errors as a line."""
    location = locate(config, detail["loc"])
    name = ".".join(map(str, location.key))
    where = origin(location.key)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown setting {name} ({where}){_suggest(location.key, location.siblings, known_settings(config))}"
    if kind == "missing":
        return f"the setting {name} is missing ({where})"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        choices = context.get("expected_tags") or ", ".join(location.tags)
        tag = context.get("tag")
        key = (*location.key, "kind")
        name, where = ".".join(map(str, key)), origin(key)
        if tag is None:
            return f"the setting {name} is missing ({where}); choose one of {choices}"
        return f"{name}: there is no '{tag}' ({where}); choose one of {choices}"
    message = str(context["error"]) if kind in ("value_error", "assertion_error") else detail["msg"]
    message = re.sub(r"^Input should be ", "should be ", message)
    got = detail["input"]
    shown = f", not {got!r}" if isinstance(got, str | int | float | None) and message.startswith("should be") else ""
    return f"{name}: {message}{shown} ({where})" if name else f"{message}{shown} ({where})"


def _suggest(key: Key, siblings: Sequence[str], everything: Sequence[str]) -> str:
    """Suggest the nearest valid key, first among its siblings, then among all keys."""
    *parents, last = map(str, key)
    if ".".join([*parents, last]) in everything:
        group = ".".join(parents)
        return (
            f": it belongs to another kind of {group}; of this kind are {', '.join(siblings)}; "
            f"'{group}={{kind: …}}' on the command line replaces the whole group"
        )
    near = difflib.get_close_matches(last, siblings, n=1)
    if near:
        return f"; did you mean {'.'.join([*parents, near[0]])}?"
    elsewhere = [name for name in everything if name.rpartition(".")[2] == last]
    near = elsewhere[:1] or difflib.get_close_matches(".".join(map(str, key)), everything, n=1, cutoff=0.7)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; the settings here are {', '.join(siblings)}" if siblings else ""


def read_document(source: Source) -> Document:
    """Load settings without validation. Raises ConfigError for a missing file, invalid UTF-8 or invalid YAML."""
    if isinstance(source, BaseModel):
        return Document(_escaped(source.model_dump(mode="json", exclude_unset=True)), {})
    if source is None or isinstance(source, Mapping):
        return Document(_copied(source or {}), {})
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"cannot read the settings {path}: {error.strerror}") from None
    return parse_yaml(text, str(path))


def _split(override: str) -> Override:
    name, equals, value = override.partition("=")
    key = _key(name if equals else "", override)
    return Override(key, parse_scalar(value, f"the value of {name} ({COMMAND_LINE})"), COMMAND_LINE)


def _key(name: str, shown: str) -> Key:
    """Split a dotted name. shown: the override, for errors. Raises ConfigError if it is invalid."""
    key = tuple(int(part) if part.isdecimal() else part for part in name.strip().split("."))
    if "" in key:
        raise ConfigError(f"'{shown}' is not an override; write key=value, as in train.max_steps=1000")
    return key


def _put(settings: Any, key: Key, value: Any, origin: str) -> None:
    """Set the value at `key`, creating groups as needed."""
    name = ".".join(map(str, key))
    for depth, part in enumerate(key):
        last = depth == len(key) - 1
        above = ".".join(map(str, key[:depth]))
        if isinstance(settings, list):
            if not isinstance(part, int) or part >= len(settings):
                raise ConfigError(f"{name} ({origin}): {above} is a list of {len(settings)}, count from 0")
        elif isinstance(settings, dict):
            part = str(part)
            if not last and settings.get(part) is None:
                settings[part] = {}
        else:
            raise ConfigError(f"{name} ({origin}): {above} is {settings!r}, not a group; set it as a group first")
        if last:
            settings[part] = value
        else:
            settings = settings[part]


def _expand(text: str, key: Key, origin: Callable[[Key], str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]
        if match[2] not in os.environ:
            name = ".".join(map(str, key))
            raise ConfigError(
                f"{name} needs the environment variable {match[2]}, which is not set ({origin(key)}): "
                f"run export {match[2]}=… first"
            )
        return os.environ[match[2]]

    return _VARIABLE.sub(value, text)


def _copied(tree: Any) -> Any:
    """Return a deep copy of nested dicts and lists."""
    return _map_text(tree, lambda text, key: text)


def _map_text(tree: Any, function: Callable[[str, Key], str], key: Key = ()) -> Any:
    """Apply `function` to every string value in a tree of dicts and lists."""
    if isinstance(tree, str):
        return function(tree, key)
    if isinstance(tree, Mapping):
        return {name: _map_text(value, function, (*key, name)) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_map_text(value, function, (*key, index)) for index, value in enumerate(tree)]
    return tree
