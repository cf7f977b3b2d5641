"""YAML for settings: safe, without duplicate keys, with line numbers, and with `no` read as a string, not as false."""

import re
from dataclasses import dataclass
from typing import Any

import yaml

from dragoman.base.errors import ConfigError

Key = tuple[str | int, ...]
_MAX_NODES = 100_000  # aliases can make a small file expand without end
_MAX_DEPTH = 50
_PATTERNS = {
    # YAML 1.2's core schema; 1.1, PyYAML's, reads `no` as false, 1e-9 as text, 12:30 as 750 and 010 as 8.
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
    """A parsed document. content: dicts, lists and scalars; lines: line number, from 1, of each key path."""

    content: Any
    lines: dict[Key, int]


# libyaml's parser is many times as fast, but some builds of PyYAML lack it. Its emitter would escape emoji.
_Parser: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Parser):  # type: ignore[misc, valid-type]
    pass


class _Dumper(yaml.SafeDumper):
    def represent_str(self, text: str) -> yaml.ScalarNode:
        # Without quotes, line ends such as U+0085 would be read back as blanks.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


_Loader.yaml_implicit_resolvers = {}
_Dumper.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in _PATTERNS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def parse_yaml(text: str, name: str) -> Document:
    """Parse a file whose top level is a mapping, or which is empty. Raises ConfigError if it is invalid."""
    content, lines = _parse(text, name)
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise ConfigError(f"{name} must contain settings as key: value, not {type(content).__name__}")
    return Document(content, lines)


def parse_scalar(text: str, name: str) -> Any:
    """Parse a single value. Raises ConfigError if it is invalid."""
    return _parse(text, name)[0]


def dump_yaml(content: Any) -> str:
    """Dump block-style YAML in the given order, from which `parse_yaml` restores equal content."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def _parse(text: str, name: str) -> tuple[Any, dict[Key, int]]:
    lines: dict[Key, int] = {}
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, lines
            _walk(node, (), 0, lines, name, [0])
            return loader.construct_document(node), lines
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {min(mark.line, text.count(chr(10))) + 1}" if mark else ""
        raise ConfigError(f"{name}{line} is not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not valid YAML: {error}") from None


def _walk(node: yaml.Node, key: Key, depth: int, lines: dict[Key, int], name: str, seen: list[int]) -> None:
    """Record line numbers. Raises ConfigError for duplicate keys, keys that are not text, and endless documents."""
    seen[0] += 1
    if depth > _MAX_DEPTH or seen[0] > _MAX_NODES:
        raise ConfigError(f"{name}: more than {_MAX_DEPTH} levels or {_MAX_NODES} values")
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*key, index)] = item.start_mark.line + 1
            _walk(item, (*key, index), depth + 1, lines, name, seen)
    elif isinstance(node, yaml.MappingNode):
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                _walk(value, key, depth + 1, {}, name, seen)
                continue
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                raise ConfigError(f"{name}, line {line}: a setting's name must be text; put it in quotes")
            here = (*key, str(key_node.value))
            if here in lines:
                full = ".".join(map(str, here))
                raise ConfigError(
                    f"{name}, line {line}: {full} was already set in line {lines[here]}; keep one of them"
                )
            lines[here] = line
            _walk(value, here, depth + 1, lines, name, seen)
