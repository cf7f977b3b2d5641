"""JSON files of messages: string values are translated; keys, other values and the layout are kept byte for byte.

Known conventions: i18next, Vue, React-Intl (extracted messages), Flutter (.arb), Chrome extensions, Angular.
"""

import json
import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import regex

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.messages.message import PLACEHOLDERS, Message
from dragoman.addons.documents.languages import Languages
from dragoman.base.errors import DataError
from dragoman.base.log import info, warn
from dragoman.text.languages.codes import is_language_code, is_same_language
from dragoman.text.words import is_unspaced

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]')
_CODE = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+|[^\s/]*[/\\][^\s]*[/\\.][^\s]*|\S+\.[A-Za-z0-9]{1,5}|\S*[_=#@$:]\S+")
"""A value without blanks that is an identifier, a path, a file name, an address or the like, and no message."""

_KEPT = regex.compile(PLACEHOLDERS, regex.V1)
_PATH = re.compile(r"(?:[\w~.-]*[/\\])+[\w.-]+\.[A-Za-z0-9]{1,5}|[\w-]+\.[a-z0-9]{2,5}")
"""A path or the name of a file, in any script."""

_NAMED_FILE = re.compile(r"[^\x00-\x7f][\w-]*[A-Za-z][\w-]*\.[a-z0-9]{2,5}")
"""The name of a file after a text in another script, in a language without spaces."""

_LABELLED = re.compile(
    r"[A-Z][A-Za-z]*(?:-[A-Za-z]+)*:(?=\x00|[0-9]|\Z).*|[A-Z][a-z]+(?:/[A-Z][a-z]+){1,5}[.:!?]?", re.DOTALL
)
"""Text for readers without blanks: `Total:5`, `Yes/No/Cancel`. Placeholders are written as NUL characters."""


_LONGEST_CODE = 200
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_LETTER = re.compile(r"\\u(?!00[0-7])")
"""Letters that are not ASCII are escaped in files in which some are, and none is not."""

_LOCALES = ("@@locale", "locale", "language", "lang")
"""Keys at the top of a file whose value is the language of its messages."""

_MESSAGE_KEYS = {
    "message": frozenset(("message", "description", "placeholders", "hash")),
    "defaultMessage": frozenset(("id", "defaultMessage", "description", "file", "start", "end", "key")),
}
"""The key of the text in an object that describes a message, and the keys that such an object may have."""


class _Value(NamedTuple):
    """A string value: text[begin:end] with its quotes.

    key: the name of the value, empty in a list; depth: the number of objects and lists around it; is_metadata: whether
    it is within a value that describes messages; siblings: the keys of its own object.
    """

    begin: int
    end: int
    key: str
    depth: int
    is_metadata: bool
    siblings: Set[str]


def parse_json(text: str, languages: Languages) -> ParsedDocument[str]:
    """Parse a file of messages. Warns of messages whose plural forms or cases cannot be separated.

    Raises DataError for invalid JSON, with its line and column.
    """
    _check(text)
    values = [(value, json.loads(text[value.begin : value.end])) for value in _values(text)]
    shown = [(value, string) for value, string in values if isinstance(string, str) and _is_shown(value, string)]
    direction = languages.new_direction
    messages = [(value, Message(string, direction=direction)) for value, string in shown if not _is_code(string)]
    _report_code(text, [(value, string) for value, string in shown if _is_code(string)])
    if opaque := [value for value, message in messages if message.is_opaque]:
        line = text.count("\n", 0, opaque[0].begin) + 1
        warn(
            f"{len(opaque):,} message(s) remain untranslated, because their plural forms or cases are invalid or too "
            f"many; the first is in line {line}"
        )
    locales = [value for value, string in values if _is_locale(value, string, languages)]
    ascii_only = text.isascii() and _ESCAPED_LETTER.search(text) is not None
    parts = [passage for _, message in messages for passage in message.passages]

    def written(texts: Sequence[str]) -> str:
        given, replaced = iter(texts), dict[int, tuple[int, str]]()
        for value, message in messages:
            new = message.write([next(given) for _ in message.passages])
            if new != message.text:
                escapes = ascii_only or _SURROGATE.search(new) is not None  # a lone surrogate can only be escaped
                replaced[value.begin] = value.end, json.dumps(new, ensure_ascii=escapes)
        if replaced:
            for value in locales:
                replaced[value.begin] = value.end, json.dumps(languages.target)
        pieces, at = [], 0
        for begin, (end, string) in sorted(replaced.items()):
            pieces += [text[at:begin], string]
            at = end
        return "".join([*pieces, text[at:]])

    return ParsedDocument(parts, written)


def _check(text: str) -> None:
    """Raise DataError for invalid JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        hint = " (JSON has no comments)" if text[error.pos :].startswith(("//", "/*")) else ""
        raise DataError(
            f"the document, line {error.lineno}, column {error.colno}: invalid JSON: {error.msg}{hint}"
        ) from None
    except RecursionError:
        raise DataError("the document: its JSON is nested too deeply") from None


def _values(text: str) -> list[_Value]:
    """Return the string values of valid JSON in order."""
    found: list[_Value] = []
    levels: list[_Level] = [_Level(False)]
    for token in _TOKEN.finditer(text):
        level, raw = levels[-1], token[0]
        if raw in "{[":
            levels.append(_Level(raw == "{", is_metadata=level.is_metadata or _is_metadata(level.key)))
        elif raw in "}]":
            levels.pop()
        elif raw == ",":
            level.expects_key = level.is_object
        elif raw == ":":
            level.expects_key = False
        elif level.expects_key:
            level.key = json.loads(raw)
            level.keys.add(level.key)
        else:
            is_metadata = level.is_metadata or _is_metadata(level.key)
            found.append(_Value(token.start(), token.end(), level.key, len(levels) - 1, is_metadata, level.keys))
    return found


class _Level:
    """An object or a list that is not closed yet. key: the current one; keys: all so far."""

    def __init__(self, is_object: bool, is_metadata: bool = False) -> None:
        self.is_object = self.expects_key = is_object
        self.is_metadata = is_metadata
        self.key = ""
        self.keys: set[str] = set()


def _is_metadata(key: str) -> bool:
    return key.startswith(("@", "$")) or key == "placeholders"


def _is_shown(value: _Value, string: str) -> bool:
    """Whether a string may be for users: not metadata or a language."""
    if value.is_metadata:
        return False
    for key, allowed in _MESSAGE_KEYS.items():
        if key in value.siblings and value.siblings <= allowed and value.key != key:
            return False
    return not (value.depth == 1 and value.key in _LOCALES and is_language_code(string))


def _is_code(string: str) -> bool:
    """Whether a string is an identifier, a path or an address, and not a text without blanks.

    Identifiers consist of ASCII letters, so that other letters outside placeholders and addresses are text.
    """
    word = string.strip()
    if len(string) > _LONGEST_CODE or _CODE.fullmatch(word) is None:
        return False
    rest = _KEPT.sub("\0", word)
    if _LABELLED.fullmatch(rest):
        return False
    if not any(letter.isalpha() and not letter.isascii() for letter in rest):
        return True
    return _PATH.fullmatch(word) is not None and not (_NAMED_FILE.fullmatch(word) and is_unspaced(word[0]))


def _report_code(text: str, code: Sequence[tuple[_Value, str]]) -> None:
    """Report how many strings are kept because they seem to be code, and the first of them."""
    words = [(value, string) for value, string in code if any(map(str.isalpha, _KEPT.sub("", string)))]
    if words:
        line = text.count("\n", 0, words[0][0].begin) + 1
        info(
            f"{len(words):,} value(s) without blanks are kept, because they seem to be identifiers or paths; "
            f"the first is {words[0][1]!r} in line {line}"
        )


def _is_locale(value: _Value, string: str, languages: Languages) -> bool:
    """Whether a string is the language of the file's messages, which changes when they are translated."""
    if value.depth != 1 or value.key not in _LOCALES or languages.target is None or not is_language_code(string):
        return False
    return languages.source is None or is_same_language(string, languages.source)
