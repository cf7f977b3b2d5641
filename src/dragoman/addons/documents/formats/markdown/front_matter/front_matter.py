"""`FrontMatter`: the data at the start of a Markdown document, whose titles and descriptions are translated."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from dragoman.addons.documents.formats.markdown.front_matter.values import FrontValue, toml_values, yaml_values
from dragoman.base.log import warn

MAX_LENGTH = 20_000
"""The maximum length of translated front matter in characters. Longer front matter remains unchanged."""

MAX_BRACKETS = 1000
"""The maximum number of opening brackets, because the time of the YAML parser grows with the square of their depth."""

_END = r"(?=[ \t]*(?:\r?\n|\Z))"
_FRONT_MATTER = re.compile(
    rf"(?P<opening>---[ \t]*\r?\n)(?P<yaml>(?:.*?\r?\n)??)(?:---|\.\.\.){_END}"
    rf"|(?P<plus>\+\+\+[ \t]*\r?\n)(?P<toml>(?:.*?\r?\n)??)\+\+\+{_END}"
    rf"|(?P<json>\{{[ \t]*\r?\n.*?\r?\n\}}){_END}",
    re.DOTALL,
)
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n)?")
_PLACEHOLDER = "placeholder {} of dragoman"
_READERS: dict[str, tuple[Callable[[str], Any], Callable[[str], list[FrontValue]]]] = {
    "yaml": (yaml.safe_load, yaml_values),
    "toml": (tomllib.loads, toml_values),
    "json": (json.loads, lambda data: yaml_values(data.replace("\t", " "))),  # JSON is YAML, except for tabs
}
_ERRORS = (yaml.YAMLError, ValueError, RecursionError)  # TOML's and JSON's errors are ValueErrors


@dataclass(frozen=True)
class FrontMatter:
    """Front matter.

    source: its text; begin: the position of its data in it; data: the data as text; load: parses data; values: the
    values to translate; tree: the parsed data with a placeholder for each of these values.
    """

    source: str
    begin: int = 0
    data: str = ""
    load: Callable[[str], Any] = json.loads
    values: Sequence[FrontValue] = ()
    tree: Any = None

    def write(self, texts: Sequence[str]) -> str:
        """Return the front matter with a text for each value.

        Quotes are added where the language of the data requires them. If the result does not contain the same data as
        before, except for these texts, the front matter remains unchanged, with a warning.
        """
        if all(text == value.text for text, value in zip(texts, self.values, strict=True)):
            return self.source
        expected = _with_texts(self.tree, texts)
        options = [list(value.encodings(text)) for value, text in zip(self.values, texts, strict=True)]
        for choice in (0, -1):
            data = _insert(self.data, self.values, [each[choice] for each in options])
            if _loaded(self.load, data) == expected:
                return self.source[: self.begin] + data + self.source[self.begin + len(self.data) :]
        warn("the front matter remains untranslated, because the translations could not be written in its format")
        return self.source


def find_front_matter(text: str) -> FrontMatter:
    """Return the front matter of a document, which is empty if the document has none.

    Front matter that is invalid, too long or contains aliases is returned without values, with a warning.
    """
    match = _FRONT_MATTER.match(text)
    if match is None:
        return FrontMatter("")
    kind = next(name for name in _READERS if match[name] is not None)
    load, find_values = _READERS[kind]
    source = text[: _rest_of_line(text, match.end())]
    data = match[kind]
    if len(data) > MAX_LENGTH:
        warn(f"the front matter has more than {MAX_LENGTH:,} characters, so it remains untranslated")
        return FrontMatter(source)
    try:
        if data.count("[") + data.count("{") > MAX_BRACKETS:
            raise RecursionError
        original = load(data)
        values = [value for value in find_values(data) if any(map(str.isalpha, value.text))]
    except _ERRORS as error:
        warn(f"the front matter remains untranslated, because it could not be read as {kind.upper()}: {_reason(error)}")
        return FrontMatter(source)
    if isinstance(original, str):  # text between two horizontal rules
        return FrontMatter("")
    front = FrontMatter(source, match.start(kind), data, load)
    return _with_values(front, original, values)


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if mark is None:
        return str(error).partition("\n")[0]
    return f"line {mark.line + 2}: {getattr(error, 'problem', None) or error}"


def _rest_of_line(text: str, begin: int) -> int:
    found = _REST_OF_LINE.match(text, begin)
    return begin if found is None else found.end()


def _with_values(front: FrontMatter, original: Any, values: list[FrontValue]) -> FrontMatter:
    """Return the front matter with those values that, if they are replaced, replace a value of the data."""
    placeholders = [_PLACEHOLDER.format(index) for index in range(len(values))]
    encoded = [list(value.encodings(each))[-1] for value, each in zip(values, placeholders, strict=True)]
    tree = _loaded(front.load, _insert(front.data, values, encoded))
    found = set(_strings(tree))
    values = [value for value, each in zip(values, placeholders, strict=True) if each in found]
    if len(values) < len(placeholders):
        return _with_values(front, original, values) if values else front
    if not values or _with_texts(tree, [value.text for value in values]) != original:
        return front
    return replace(front, values=values, tree=tree)


def _loaded(load: Callable[[str], Any], data: str) -> Any:
    """Return the data, or None if it is invalid."""
    try:
        return load(data)
    except _ERRORS:
        return None


def _insert(data: str, values: Sequence[FrontValue], texts: Sequence[str]) -> str:
    """Return the data with other texts in place of the values."""
    parts, position = [], 0
    for value, text in zip(values, texts, strict=True):
        parts += [data[position : value.begin], text]
        position = value.end
    return "".join([*parts, data[position:]])


def _strings(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from _strings(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _strings(value)


def _with_texts(tree: Any, texts: Sequence[str]) -> Any:
    """Return the data with the texts in place of the placeholders."""
    by_placeholder = {_PLACEHOLDER.format(index): text for index, text in enumerate(texts)}

    def with_texts(tree: Any) -> Any:
        if isinstance(tree, str):
            return by_placeholder.get(tree, tree)
        if isinstance(tree, Mapping):
            return {key: with_texts(value) for key, value in tree.items()}
        return [with_texts(value) for value in tree] if isinstance(tree, list) else tree

    return with_texts(tree)
