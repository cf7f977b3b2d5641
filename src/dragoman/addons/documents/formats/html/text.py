"""Text of HTML pages as units: character references are decoded, and translations are encoded again."""

import html
import html.entities
import re
from collections.abc import Iterator
from typing import Protocol

SPACE = "\t\n\f\r "
_UNIT = re.compile(r"([\t\n\f\r ]+)|(&(?:#[0-9]++;?|#[xX][0-9a-fA-F]++;?|[A-Za-z][A-Za-z0-9]{0,32};?))|.", re.DOTALL)
_MAX_NUMBER_LENGTH = 10
"""The number of characters of a numeric reference that matter, without zeros in front. More digits are too many."""

_LONG_NUMBER = re.compile(rf"&#(?:[0-9]{{{_MAX_NUMBER_LENGTH},}}|[xX][0-9a-fA-F]{{{_MAX_NUMBER_LENGTH},}})")
_SOFT_HYPHEN = "\u00ad"
_NO_BREAK_SPACE = "\u00a0"


class TextReceiver(Protocol):
    """What receives the units of a text, such as `PassageBuilder`."""

    def add_text(self, text: str, raw: str) -> None:
        """Receive a unit of text."""
        ...

    def add_blank(self, raw: str) -> None:
        """Receive whitespace."""
        ...


def add_text(receiver: TextReceiver, raw: str, in_attribute: bool = False) -> None:
    """Add text with character references. A soft hyphen has no text, because the words of a translation differ."""
    for unit in _UNIT.finditer(raw):
        blank, reference = unit.groups()
        if blank is not None:
            receiver.add_blank(blank)
        elif reference is None:
            receiver.add_text("" if unit[0] == _SOFT_HYPHEN else unit[0], unit[0])
        else:
            for text, written in _decode(reference, raw[unit.end() : unit.end() + 1] if in_attribute else None):
                receiver.add_text("" if text == _SOFT_HYPHEN else text, written)


def _decode(reference: str, following: str | None) -> Iterator[tuple[str, str]]:
    """Yield the characters of a reference with their original forms.

    following: in an attribute, the character after the reference, else None. In attributes, a name without a semicolon
    is text before `=`, letters and digits, as in `?a&copy=b`.
    """
    known = len(reference)
    if reference.startswith("&#"):
        yield unescape(reference), reference  # an empty text for characters that are not valid in HTML
        return
    if reference[1:] not in html.entities.html5:
        known = _length_of_known_name(reference)
    if following is not None and known and reference[known - 1] != ";":
        after = (reference + following)[known : known + 1]
        known = 0 if after == "=" or after.isalnum() else known
    if known:
        yield html.unescape(reference[:known]), reference[:known]
    for character in reference[known:]:
        yield character, character


def unescape(text: str) -> str:
    """Return a text with its character references decoded, including numbers of any length, which Python refuses."""
    return html.unescape(_LONG_NUMBER.sub(_shortened, text))


def _shortened(found: "re.Match[str]") -> str:
    """Return a numeric reference with at most as many digits as matter."""
    begin = 3 if found[0][2] in "xX" else 2
    return found[0][:begin] + (found[0][begin:].lstrip("0") or "0")[:_MAX_NUMBER_LENGTH]


def _length_of_known_name(reference: str) -> int:
    """Return the length of the longest name without a semicolon at the start of a reference, such as `&lt`, or 0."""
    return next((end for end in range(min(len(reference), 8), 2, -1) if reference[1:end] in html.entities.html5), 0)


def escape_text(text: str, _: bool = False) -> str:
    """Encode text. A no-break space is written as a reference, because it is invisible."""
    return html.escape(text, quote=False).replace(_NO_BREAK_SPACE, "&#160;")


def escape_attribute(text: str, _: bool = False) -> str:
    """Encode the value of an attribute in quotes."""
    return html.escape(text).replace(_NO_BREAK_SPACE, "&#160;")


def escape_unquoted(text: str, _: bool = False) -> str:
    """Encode the value of an attribute without quotes, which cannot contain whitespace and some other characters."""
    return re.sub(r"[\s&<>\"'=`]", lambda found: f"&#{ord(found[0])};", text)
