"""The values of front matter that are text for readers, with their positions, in YAML, JSON and TOML."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml

NAMES = frozenset(
    "title subtitle shorttitle longtitle linktitle navtitle pagetitle menutitle toctitle seotitle metatitle ogtitle "
    "sidebartitle sidebarlabel paginationlabel description shortdescription longdescription metadescription "
    "seodescription ogdescription summary excerpt abstract intro lead lede tagline slogan headline heading caption alt "
    "imagealt coveralt covercaption label details text".split()
)
"""The names of values that are text for readers, in lower case, without `_` and `-`."""

_STRING = "tag:yaml.org,2002:str"
_PAIR = re.compile(
    r"(?:^|[{,])[ \t]*(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*)*"
    r"(?:(?P<bare>[\w-]+)|[\"'](?P<quoted>[\w -]+)[\"'])"
    r"[ \t]*=[ \t]*(?P<value>\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"{3,5}|'''(?:[^']|'(?!''))*+'{3,5}"
    r"|\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')",
    re.MULTILINE | re.DOTALL,
)
_BLOCK_HEADER = re.compile(r"[|>][^\r\n]*\r?\n")


@dataclass(frozen=True)
class FrontValue:
    """A value. begin, end: its position in the front matter; text: its decoded text.

    encodings: returns ways to write a text in place of the value, best first. Not every way is valid for every text.
    """

    begin: int
    end: int
    text: str
    encodings: Callable[[str], Iterator[str]]


def is_name(name: str) -> bool:
    """Return whether values of this name are text for readers."""
    return name.lower().replace("_", "").replace("-", "") in NAMES


def yaml_values(source: str) -> list[FrontValue]:
    """Return the values of YAML or JSON in order. Raises yaml.YAMLError for invalid YAML and for aliases."""
    root = yaml.compose(source, Loader=yaml.SafeLoader)
    found: list[FrontValue] = []
    waiting: list[tuple[yaml.Node | None, str]] = [(root, "")]
    seen: set[int] = set()
    while waiting:
        node, name = waiting.pop()
        if node is None:
            continue
        if id(node) in seen:
            raise yaml.YAMLError("aliases are not supported")
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting += [(value, key.value if isinstance(key, yaml.ScalarNode) else "") for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(item, "") for item in node.value]
        elif isinstance(node, yaml.ScalarNode) and node.tag == _STRING and is_name(name):
            raw = source[node.start_mark.index : node.end_mark.index]
            if not raw.startswith(("&", "!")):
                found.append(FrontValue(node.start_mark.index, node.end_mark.index, node.value, yaml_encodings(raw)))
    return sorted(found, key=lambda value: value.begin)


def yaml_encodings(raw: str) -> Callable[[str], Iterator[str]]:
    """Return a function that writes texts in the style of a scalar."""

    def encodings(text: str) -> Iterator[str]:
        if raw.startswith(("|", ">")):
            yield _as_block(raw, text)
        elif not raw.startswith(('"', "'")) and _is_plain(text):
            yield text
        if not raw.startswith('"') and "\n" not in text:
            yield "'" + text.replace("'", "''") + "'"
        yield json.dumps(text, ensure_ascii=False) + ("\n" if raw.endswith("\n") else "")

    return encodings


def _is_plain(text: str) -> bool:
    """Return whether YAML reads a text without quotes as the same text, in both contexts of YAML."""
    try:
        return "\n" not in text and yaml.safe_load(f"a: {text}\nb: [{text}, {text}]") == {"a": text, "b": [text, text]}
    except yaml.YAMLError:
        return False


def _as_block(raw: str, text: str) -> str:
    """Return a text in the block style of a scalar, `|` or `>`."""
    header = _BLOCK_HEADER.match(raw)
    assert header is not None
    body = raw[header.end() :]
    indent = re.match(r"(?:[ \t]*\r?\n)*([ \t]*)", body)
    assert indent is not None
    line_end = "\r\n" if header[0].endswith("\r\n") else "\n"
    lines = text.rstrip("\n")
    if raw.startswith(">"):  # a line break within a paragraph is a space
        lines = re.sub(r"\n+", r"\g<0>\n", lines)
    written = line_end.join(indent[1] + line if line else "" for line in lines.split("\n"))
    return header[0] + written + body[len(body.rstrip()) :]


def toml_values(source: str) -> list[FrontValue]:
    """Return what could be values of TOML, in order. Some matches may be in comments or in other strings."""
    found = []
    for match in _PAIR.finditer(source):
        if is_name(match["bare"] or match["quoted"]):
            try:
                text = tomllib.loads(f"a = {match['value']}")["a"]
            except tomllib.TOMLDecodeError:
                continue
            found.append(FrontValue(*match.span("value"), text, _toml_encodings(match["value"])))
    return found


def _toml_encodings(raw: str) -> Callable[[str], Iterator[str]]:
    """Return a function that writes texts in the style of a string."""

    def encodings(text: str) -> Iterator[str]:
        if raw.startswith(('"""', "'''")):
            opening = raw[: len(raw) - len(raw[3:].lstrip("\r\n"))] if raw[3:4] in "\r\n" else raw[:3]
            escaped = text.replace("\\", "\\\\").replace('"""', '""\\"') if raw[0] == '"' else text
            yield opening + escaped + raw[:3]
        elif raw.startswith("'") and "'" not in text:
            yield f"'{text}'"
        yield json.dumps(text, ensure_ascii=False)

    return encodings
