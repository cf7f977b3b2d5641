"""A safe YAML parser for settings, which rejects duplicate keys, records line numbers, and parses `no` as a string."""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from dragoman.base.errors import ConfigError

Key = tuple[str | int, ...]
_MAX_NODES = 100_000  # aliases can expand a small file to any size
_MAX_DEPTH = 50
_PATTERNS = {
    # The core schema of YAML 1.2. PyYAML implements YAML 1.1, in which `no` is false, 1e-9 text, 12:30 750, and 010 8.
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(0|[1-9][0-9_]*)", list("-+0123456789")),
    "float": (
        r"[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+|\.inf|\.Inf)|\.nan",
        list("-+0123456789."),
    ),
    "merge": (r"<<", ["<"]),
}


@dataclass(frozen=True)
class Document:
    """A parsed document. content: dicts, lists and scalars. lines: one-based line number of each key."""

    content: Any
    lines: dict[Key, int]


# The parser of libyaml is many times as fast, but some builds of PyYAML lack it. Its emitter would escape emoji.
_Parser: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc, valid-type]
    pass


class _Dumper(yaml.SafeDumper):
    def represent_str(self, text: str) -> yaml.ScalarNode:
        # Without quotes, line separators such as U+0085 would be parsed as spaces.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


_Loader.yaml_implicit_resolvers = {}
_Dumper.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in _PATTERNS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def parse_yaml(text: str, name: str) -> Document:
    """Parse the text of a file that contains a mapping or is empty. Raises ConfigError if it is invalid.

    name: name of the file, for messages.
    """
    content, lines = _parse(text, name)
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{name} must contain settings in the form key: value, not {type(content).__name__}")
    return Document(content, lines)


def parse_scalar(text: str, name: str) -> Any:
    """Parse a single value. Raises ConfigError if it is invalid. name: name of the value, for messages."""
    return _parse(text, name)[0]


def dump_yaml(content: Any) -> str:
    """Return block-style YAML with keys in their given order, from which `parse_yaml` restores equal content."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _parse(text: str, name: str) -> tuple[Any, dict[Key, int]]:
    lines: dict[Key, int] = {}
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, lines
            _record_lines(node, (), 0, lines=lines, name=name, count=[0])
            return loader.construct_document(node), lines
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {min(mark.line, text.count(chr(10))) + 1}" if mark else ""
        if mark and _is_indented_with_tab(text, mark.line):
            raise ConfigError(f"{name}{line} is indented with a tab, which YAML does not allow: use spaces") from None
        raise ConfigError(f"{name}{line} is not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not valid YAML: {error}") from None


def _is_indented_with_tab(text: str, line: int) -> bool:
    """Return whether the indentation of a line contains a tab. line: zero-based line number."""
    lines = text.split("\n")
    return line < len(lines) and "\t" in lines[line][: len(lines[line]) - len(lines[line].lstrip())]


def _record_lines(node: yaml.Node, key: Key, depth: int, *, lines: dict[Key, int], name: str, count: list[int]) -> None:
    """Record the line numbers of all keys below a node in `lines`. count: number of visited nodes, which is updated.

    Raises ConfigError for duplicate keys, keys that are not text, and documents with too many levels or values.
    """
    count[0] += 1
    if depth > _MAX_DEPTH or count[0] > _MAX_NODES:
        raise ConfigError(f"{name} has more than {_MAX_DEPTH} levels or {_MAX_NODES} values")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*key, index)] = item.start_mark.line + 1
            _record_lines(item, (*key, index), depth + 1, lines=lines, name=name, count=count)
    elif isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                _record_lines(value, key, depth + 1, lines={}, name=name, count=count)
                continue
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                raise ConfigError(f"{name}, line {line}: the name of a setting must be text: put it in quotes")
            inner_key = (*key, str(key_node.value))
            if inner_key in lines:
                full_name = ".".join(map(str, inner_key))
                raise ConfigError(
                    f"{name}, line {line}: {full_name} was already set in line {lines[inner_key]}: keep one of them"
                )
            if value.tag == "tag:yaml.org,2002:null" and not value.value:
                full_name = ".".join(map(str, inner_key))
                advice = "write a space after the colon" if ":" in str(inner_key[-1]) else "write null for no value"
                raise ConfigError(f"{name}, line {line}: {full_name} has no value: {advice}")
            lines[inner_key] = line
            _record_lines(value, inner_key, depth + 1, lines=lines, name=name, count=count)
