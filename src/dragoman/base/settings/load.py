"""Loads settings from a YAML file and the command line and validates them. Each error message contains the key."""

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import fill_kinds, known_settings, locate
from dragoman.base.settings.synonyms import find_synonyms
from dragoman.base.settings.yaml import Document, dump_yaml, parse_scalar, parse_yaml

C = TypeVar("C")
Key = tuple[str | int, ...]
COMMAND_LINE = "from the command line"
PYTHON = "from Python"
_VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Override(NamedTuple):
    """A value that overrides a setting of a recipe. origin: source of the value, for error messages."""

    key: Key
    value: Any
    origin: str


Source = str | Path | Mapping[str, Any] | BaseModel | None
"""Settings: the path of a YAML file, nested values as in YAML, a config, or None for no settings."""

Overrides = Mapping[str, Any] | Sequence[str | Override]
"""Values by dotted key, as in `{"train.max_steps": 1000}`, or strings such as `train.max_steps=1000` with YAML values.
"""


def load_settings(source: Source, overrides: Overrides, config: type[C]) -> C:
    """Load settings, apply the overrides, and validate the result as `config`.

    Each override replaces everything at its key. `${NAME}` is replaced by an environment variable; write `$${NAME}` for
    the literal characters. `~/` at the beginning of a value is the home directory. If the source is a config, only the
    fields that were set explicitly are used, so that defaults can depend on the overrides.
    Raises ConfigError for a missing file, invalid YAML, a duplicate or unknown key, an unset environment variable, or
    an invalid value.
    """
    settings, origin = merge_settings(source, overrides)
    return _validate(settings, config, origin)


def merge_settings(source: Source, overrides: Overrides) -> tuple[Any, Callable[[Key], str]]:
    """Return the settings of a source with the overrides applied, and a function that returns the origin of a key.

    Raises ConfigError for a missing file, invalid YAML, and an invalid override.
    """
    document = read_document(source)
    origins = {key: f"{source}, line {line}" for key, line in document.lines.items()}
    settings, override_list = document.content, all_overrides(overrides)
    for key, value, override_origin in override_list:
        for stale in [other for other in origins if other[: len(key)] == key]:
            del origins[stale]
        origins[key] = override_origin
        _set_value(settings, key, value, override_origin)
    if source is None:
        default_origin = override_list[0].origin if override_list else COMMAND_LINE
    else:
        default_origin = str(source) if isinstance(source, str | Path) else PYTHON

    def origin(key: Key) -> str:
        for end in range(len(key), 0, -1):
            if key[:end] in origins:
                return origins[key[:end]]
        return default_origin

    return settings, origin


def all_overrides(*groups: Overrides) -> list[Override]:
    """Return the overrides of all groups, in order. Raises ConfigError for an invalid override."""
    result: list[Override] = []
    for group in groups:
        if isinstance(group, Mapping):
            result += [Override(_parse_key(name, name), _deep_copy(value), PYTHON) for name, value in group.items()]
        else:
            result += [_parse_override(each) if isinstance(each, str) else each for each in group]
    return result


def parse_settings(mapping: Mapping[str, Any], config: type[C], origin: str) -> C:
    """Validate `mapping` as `config`: a pydantic class, or any type that TypeAdapter accepts, such as a union.

    origin: source of the settings, for error messages. Raises ConfigError with a list of all errors.
    """
    return _validate(mapping, config, lambda key: origin)


def dump_settings(config: BaseModel, *, explicit: bool = False) -> str:
    """Return a config as YAML, from which `load_settings` restores an equal config.

    explicit: leave out defaults. Those of a config whose preset or size is chosen by a run would contradict the choice.
    """
    return dump_yaml(_escape_variables(config.model_dump(mode="json", exclude_unset=explicit)))


def _escape_variables(settings: Any) -> Any:
    return _map_text(settings, lambda text, key: _VARIABLE.sub(r"$\g<0>", text))


def flatten(tree: Any, path: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted keys."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {
        key: value for name, inner in tree.items() for key, value in flatten(inner, f"{path}.{name}".strip(".")).items()
    }


def _validate(settings: Any, config: type[C], origin: Callable[[Key], str]) -> C:
    expanded = _map_text(settings, lambda text, key: _expand_home(_expand_variables(text, key, origin), key, origin))
    try:
        return TypeAdapter(config).validate_python(fill_kinds(config, expanded))
    except ValidationError as error:
        lines = list(dict.fromkeys(_describe(detail, config, origin) for detail in error.errors()))
        raise invalid_settings(lines) from None


def invalid_settings(lines: Sequence[str]) -> ConfigError:
    """Return the error for several invalid settings. lines: one message per setting."""
    return ConfigError(lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} settings are invalid:", *lines]))


def _describe(detail: Any, config: Any, origin: Callable[[Key], str]) -> str:
    """Format one of pydantic's errors as a single line."""
    location = locate(config, detail["loc"])
    name = ".".join(map(str, location.key))
    where = origin(location.key)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return describe_unknown(location.key, detail["input"], where, location.siblings, known_settings(config))
    if kind == "missing":
        return f"the setting {name} is missing ({where})"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        choices = context.get("expected_tags") or ", ".join(location.tags)
        tag = context.get("tag")
        key = (*location.key, "kind")
        if tag is None:
            return f"the setting {'.'.join(map(str, key))} is missing ({origin(key)}): expected one of {choices}"
        return f"{'.'.join(map(str, key))}: unknown kind '{tag}' ({origin(key)}): expected one of {choices}"
    return describe_value(name, detail, where)


def describe_unknown(key: Key, value: Any, where: str, siblings: Sequence[str], all_names: Sequence[str]) -> str:
    """Return the message for a setting that does not exist, with the most likely setting.

    value: value of the setting. If it is a group with a single setting, as after `optimizer.lr=1`, and other toolkits
    have a setting of that name, the message is about that setting, unless the name of the group is misspelt. where:
    origin of the setting. siblings: names of the settings in the same group. all_names: dotted names.
    """
    inner = key
    while isinstance(value, dict) and len(value) == 1:
        ((name, value),) = value.items()
        inner = (*inner, name)
    similar = difflib.get_close_matches(str(key[-1]), siblings, n=1)
    is_misspelt = ".".join(map(str, (*key[:-1], *similar, *inner[len(key) :]))) in all_names
    if inner != key and not is_misspelt and find_synonyms(".".join(map(str, inner)), all_names):
        key, siblings = inner, ()
    return f"unknown setting {'.'.join(map(str, key))} ({where}){_suggest(key, siblings, all_names)}"


def describe_value(name: str, detail: Any, where: str) -> str:
    """Return the message for an invalid value. detail: one of pydantic's errors; where: origin of the setting."""
    kind, context = detail["type"], detail.get("ctx", {})
    message = str(context["error"]) if kind in ("value_error", "assertion_error") else detail["msg"]
    message = re.sub(r"^Input should be ", "should be ", message)
    value = detail["input"]
    is_shown = isinstance(value, str | int | float | None) and message.startswith("should be")
    suffix = f", not {value!r}" if is_shown else ""
    return f"{name}: {message}{suffix} ({where})" if name else f"{message}{suffix} ({where})"


def _suggest(key: Key, siblings: Sequence[str], all_names: Sequence[str]) -> str:
    """Suggest the most similar valid key, first among the siblings of `key`, then among all keys."""
    *parents, last = map(str, key)
    if ".".join([*parents, last]) in all_names:
        group = ".".join(parents)
        return (
            f": it belongs to another kind of {group}. The settings of this kind are {', '.join(siblings)}. "
            f"'{group}={{kind: …}}' on the command line replaces the whole group"
        )
    if ":" in last:
        return f": write a space after the colon, as in '{'.'.join(parents)}={{{last.replace(':', ': ', 1)}}}'"
    synonyms = find_synonyms(".".join([*parents, last]), all_names)
    own = [name for synonym in synonyms if (name := synonym.rpartition(".")[2]) in siblings]
    if own or synonyms:
        return f"; did you mean {' or '.join(['.'.join([*parents, own[0]])] if own else synonyms)}?"
    similar = difflib.get_close_matches(last, siblings, n=1)
    if similar:
        return f"; did you mean {'.'.join([*parents, similar[0]])}?"
    same_name = [name for name in all_names if name.rpartition(".")[2] == last]
    similar = same_name[:1] or difflib.get_close_matches(".".join(map(str, key)), all_names, n=1, cutoff=0.7)
    if similar:
        return f"; did you mean {similar[0]}?"
    return f": expected one of {', '.join(siblings)}" if siblings else ""


def read_document(source: Source) -> Document:
    """Load settings without validation. Raises ConfigError for a missing file, invalid UTF-8 or invalid YAML."""
    if isinstance(source, BaseModel):
        return Document(_escape_variables(source.model_dump(mode="json", exclude_unset=True)), {})
    if source is None or isinstance(source, Mapping):
        return Document(_deep_copy(source or {}), {})
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ConfigError(f"cannot read the settings {path}: {error.strerror}") from None
    return parse_yaml(text, str(path))


def _parse_override(override: str) -> Override:
    name, equals, value = override.partition("=")
    key = _parse_key(name if equals else "", override)
    if not value.strip():
        raise ConfigError(f"'{override}' has no value: write {name}=VALUE without spaces, or {name}=null for no value")
    return Override(key, parse_scalar(value, f"the value of {name} ({COMMAND_LINE})"), COMMAND_LINE)


def _parse_key(name: str, override: str) -> Key:
    """Split a dotted name. override: the whole override, for messages. Raises ConfigError if the name is invalid."""
    key = tuple(int(part) if part.isdecimal() else part for part in name.strip().split("."))
    if "" in key:
        raise ConfigError(f"'{override}' is not an override: write key=value, as in train.max_steps=1000")
    return key


def _set_value(settings: Any, key: Key, value: Any, origin: str) -> None:
    """Set the value at `key`, creating groups as needed."""
    name = ".".join(map(str, key))
    for depth, part in enumerate(key):
        is_last = depth == len(key) - 1
        parent = ".".join(map(str, key[:depth]))
        if isinstance(settings, list):
            if not isinstance(part, int) or part >= len(settings):
                raise ConfigError(f"{name} ({origin}): {parent} is a list of length {len(settings)}; count from 0")
        elif isinstance(settings, dict):
            part = str(part)
            if not is_last and settings.get(part) is None:
                settings[part] = {}
        else:
            raise ConfigError(f"{name} ({origin}): {parent} is {settings!r}, not a group: set it to a group first")
        if is_last:
            settings[part] = value
        else:
            settings = settings[part]


def _expand_variables(text: str, key: Key, origin: Callable[[Key], str]) -> str:
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


def _expand_home(text: str, key: Key, origin: Callable[[Key], str]) -> str:
    """Replace `~/` at the beginning by the home directory, as a shell does, so that no folder is called `~`."""
    if not text.startswith("~/"):
        return text
    expanded = os.path.expanduser(text)
    if expanded == text:
        name = ".".join(map(str, key))
        raise ConfigError(f"{name}: the home directory of {text} is unknown ({origin(key)}): write the whole path")
    return expanded


def _deep_copy(tree: Any) -> Any:
    """Return a deep copy of nested dicts and lists."""
    return _map_text(tree, lambda text, key: text)


def _map_text(tree: Any, function: Callable[[str, Key], str], key: Key = ()) -> Any:
    """Apply `function` to every string and path in a tree of dicts and lists."""
    if isinstance(tree, str):
        return function(tree, key)
    if isinstance(tree, Path):
        return Path(function(str(tree), key))
    if isinstance(tree, Mapping):
        return {name: _map_text(value, function, (*key, name)) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_map_text(value, function, (*key, index)) for index, value in enumerate(tree)]
    return tree
