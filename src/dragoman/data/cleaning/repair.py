"""Repair of texts: control and invisible characters, and characters that other tools have left escaped."""

import html
import re
import unicodedata
from html.entities import html5
from typing import NamedTuple

from dragoman.text.words import is_unspaced

_C0, _NONCHARACTERS = "\x00-\x08\x0b-\x1f\x7f", "\ufdd0-\ufdef\ufffe\uffff"
_INVISIBLE = "\xad\u200b\u2060\ufeff\ufff9-\ufffc"
_ANY = re.compile(f"[{_C0}\x80-\x9f{_INVISIBLE}{_NONCHARACTERS}]")
_ANY_OR_NEWLINE = re.compile(f"[\n{_C0}\x80-\x9f{_INVISIBLE}{_NONCHARACTERS}]")
_NEVER_TEXT = re.compile(f"[\x00-\x07\x0e-\x1a\x7f-\x84\x86-\x9f{_NONCHARACTERS}]")
_BREAKS = "\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85"
"""Characters that separate lines, pages or fields."""

_C1 = re.compile("[\x80-\x9f]")
_TERMINAL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|_\x08|([^\n\x08])\x08(?=\1)")
"""Colours and other commands for terminals, and a character that is overstruck, as in bold text of manual pages."""

_MISREAD = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")

_MAX_STRAY, _MAX_FRACTION = 3, 0.1

_NAMES = {
    "\x00": "null",
    "\x07": "alert",
    "\x08": "backspace",
    "\n": "line feed",
    "\x0b": "line tabulation",
    "\x0c": "form feed",
    "\r": "carriage return",
    "\x1a": "substitute",
    "\x1b": "escape",
    "\x7f": "delete",
    "\x85": "next line",
}

_ESCAPE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|(?<!\S)@[-,./]@(?!\S)")
_SEPARATED = re.compile(r" ?(?<!\S)@([-,./])@(?!\S) ?")
_MOSES = {"&bar;": "|", "&bra;": "[", "&ket;": "]"}
"""Escapes of old Moses scripts that HTML does not have."""

_MAX_PASSES = 3


class Occurrence(NamedTuple):
    """A character or an escape in a text. name: such as `U+000C form feed`. position: index in the text."""

    name: str
    position: int


def is_binary(text: str) -> bool:
    """Return whether so much of a text consists of control characters that it is not text, such as UTF-16 or a PDF."""
    count = len(_NEVER_TEXT.findall(text))
    return count > _MAX_STRAY and count > _MAX_FRACTION * len(text)


def find_control_characters(text: str, newlines: bool) -> list[Occurrence]:
    """Return the characters that `repair_control_characters` would replace. newlines: as there."""
    return [
        Occurrence(character_name(match[0]), match.start())
        for match in (_ANY if newlines else _ANY_OR_NEWLINE).finditer(text)
        if not (match[0] == "\u200b" and _divides_words(text, match.start()))
        and not (match[0] == "\r" and text[match.end() : match.end() + 1] == "\n" and newlines)
    ]


def repair_control_characters(text: str, newlines: bool, begins: bool = True, ends: bool = True) -> str:
    """Replace or remove the control characters, noncharacters and needless invisible characters of a text.

    Line and page breaks become newlines, or blanks in single lines. A page break next to a line end, and breaks at the
    start or end of the text, disappear. Bytes of Windows-1252 that were read as Latin-1, such as U+0096, become the
    characters that they stood for, and so does UTF-8 that was read as Latin-1. Commands for terminals, soft hyphens,
    byte order marks and all other such characters are removed. Zero-width spaces stay in scripts without spaces, where
    they divide words, and so do tabs, joiners and marks of direction everywhere.

    newlines: whether the text may have several lines. begins, ends: whether the text starts and ends a document.
    """
    if (_ANY if newlines else _ANY_OR_NEWLINE).search(text) is None:
        return text
    if _C1.search(text):
        if any(_C1.search(match[0]) and _reread(match) != match[0] for match in _MISREAD.finditer(text)):
            text = _MISREAD.sub(_reread, text)
        text = _C1.sub(lambda match: match[0] if match[0] == "\x85" else _windows_character(match[0]), text)
    text = _TERMINAL_SEQUENCE.sub("", text)
    if newlines:
        text = text.replace("\r\n", "\n")
        start, end = r"\A|" if begins else "", r"|\Z" if ends else ""
        text = re.sub(rf"(?:{start}(?<=\n))[\x0b\x0c]+|[\x0b\x0c]+(?=\n{end})", "", text)
        text = re.sub(f"[{_BREAKS}]", "\n", text)
    else:
        text = re.sub(rf"[ \t]*[{_BREAKS}]+[ \t]*", " ", text.strip(_BREAKS))
    return _ANY.sub(lambda match: match[0] if _is_needed(match) else "", text)


def character_name(character: str) -> str:
    """Return the code point of a character and its name in Unicode, if any."""
    name = _NAMES.get(character) or unicodedata.name(character, "").lower() or "control character"
    return f"U+{ord(character):04X} {name}"


def find_escapes(text: str) -> list[Occurrence]:
    """Return the character references of HTML and the separators of Moses, such as `&quot;` and `@-@`.

    References by number, such as `&#8364;`, have the same name, `&#…;`.
    """
    if "&" not in text and "@" not in text:
        return []
    return [
        Occurrence("&#…;" if match[0].startswith("&#") else match[0], match.start())
        for match in _ESCAPE.finditer(text)
        if _is_escape(match[0])
    ]


def unescape(text: str) -> str:
    """Replace the escapes that `find_escapes` finds, repeatedly, because text is sometimes escaped twice."""
    for _ in range(_MAX_PASSES):
        if not find_escapes(text):
            break
        text = _SEPARATED.sub(r"\1", _ESCAPE.sub(_unescape, text))
    return text


def _is_escape(found: str) -> bool:
    return found[0] == "@" or found[1] == "#" or found[1:] in html5 or found in _MOSES


def _unescape(match: "re.Match[str]") -> str:
    found = match[0]
    if found[0] == "@" or not _is_escape(found):
        return found
    return _MOSES.get(found) or html.unescape(found)


def _reread(match: "re.Match[str]") -> str:
    try:
        return match[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return match[0]


def _windows_character(character: str) -> str:
    return character.encode("latin-1").decode("windows-1252", "ignore")


def _is_needed(match: "re.Match[str]") -> bool:
    return match[0] == "\u200b" and _divides_words(match.string, match.start())


def _divides_words(text: str, position: int) -> bool:
    """Return whether the characters around a zero-width space are of scripts without spaces."""
    before, after = position - 1, position + 1
    while before >= 0 and text[before] == "\u200b":
        before -= 1
    while after < len(text) and text[after] == "\u200b":
        after += 1
    return before >= 0 and after < len(text) and is_unspaced(text[before]) and is_unspaced(text[after])
