"""Messages of Ruby on Rails (.yml): the strings below the source language are translated, and its key becomes the
target language."""

import re
from collections.abc import Callable

import yaml

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.markdown.front_matter.values import yaml_encodings
from dragoman.addons.documents.formats.messages.values import Change, MessageValue, parse_values
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError
from dragoman.text.languages.codes import is_language_code, is_same_language

MAX_LENGTH = 1_000_000
"""The maximum number of characters of a file. Parsing as many takes half a minute."""

_STRING = "tag:yaml.org,2002:str"
_MARK = "\ue000"
_SYMBOL = re.compile(rf"[:{_MARK}]\w+")
_FLOW_SYMBOL = re.compile(r"(?<=[\[, \t]):(?=\w)")
"""A symbol, as in `[:year, :month]`, which Ruby's YAML allows and PyYAML does not."""


def parse_rails(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file. Raises DataError for invalid YAML, and for YAML whose first key is not the source language."""
    if len(text) > MAX_LENGTH:
        raise DataError(f"the document has {len(text):,} characters, but at most {MAX_LENGTH:,} are read: divide it")
    try:
        root = yaml.compose(_FLOW_SYMBOL.sub(_MARK, text), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise DataError(f"the document{line}: invalid YAML: {getattr(error, 'problem', None) or error}") from None
    except (RecursionError, ValueError):
        raise DataError("the document: its YAML is nested too deeply, or invalid") from None
    values, changes = list[MessageValue](), list[Change]()
    for key, value in _locales(root):
        if languages.source is not None and not is_same_language(key.value, languages.source):
            continue
        values += _values(text, value)
        if languages.target is not None:
            changes.append(Change(key.start_mark.index, key.end_mark.index, languages.target.replace("_", "-")))
    if not changes and not values:
        raise DataError(
            f"the document has no messages of Rails in the language {languages.source or 'of a code'}: these are below "
            "a first key such as `en:`"
        )
    return parse_values(text, sorted(values, key=lambda value: value.begin), languages, changes)


def _locales(root: "yaml.Node | None") -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    """Return the languages at the top of a file with their messages."""
    if not isinstance(root, yaml.MappingNode):
        return []
    return [
        (key, value)
        for key, value in root.value
        if isinstance(key, yaml.ScalarNode) and isinstance(value, yaml.MappingNode) and is_language_code(key.value)
    ]


def _values(text: str, root: yaml.Node) -> list[MessageValue]:
    """Return the strings within a node. Those of aliases are where their anchors are."""
    found: list[MessageValue] = []
    waiting, seen = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.ScalarNode) and node.tag == _STRING and _SYMBOL.fullmatch(node.value) is None:
            begin, end = node.start_mark.index, node.end_mark.index
            if (raw := text[begin:end]) and not raw.startswith(("&", "!")):
                found.append(MessageValue(begin, end, node.value.replace(_MARK, ":"), _writer(raw)))
    return found


def _writer(raw: str) -> Callable[[str], str]:
    """Return a function that writes a string in the style of a scalar, if YAML then reads the same string."""

    def write(string: str) -> str:
        options = list(yaml_encodings(raw)(string))
        return next((each for each in options if _read(each) == string), options[-1])

    return write


def _read(written: str) -> object:
    try:
        return yaml.safe_load(f"a: {written}")["a"]
    except (yaml.YAMLError, TypeError, ValueError):
        return None
