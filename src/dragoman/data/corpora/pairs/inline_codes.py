"""Inline codes of translation memories: joins the text around the codes, with a space where words would be glued."""

from collections.abc import Sequence
from typing import NamedTuple

import regex

CODES = frozenset({"bpt", "ept", "it", "ph", "ut", "x", "bx", "ex"})
"""Inline elements that contain or represent codes of the program that wrote the file. `hi` is not included, because it
contains text. `x`, `bx` and `ex` are elements of XLIFF that some programs write."""

LONGEST_CONTENT = 200
"""Number of characters of a code that are enough to determine its meaning."""

_ISOLATED = frozenset({"it", "ph", "ut", "x"})
"""Elements of codes that are not part of a pair. A pair is usually formatting, which may start inside a word."""

_TYPES = {
    **dict.fromkeys(("lb", "pb", "cb", "tab", "struct"), True),
    **dict.fromkeys(("bold", "italic", "ulined", "dulined", "font", "color", "scap", "link"), False),
}
"""Values of the attribute `type` (TMX 1.4b, section 4), and whether such a code separates words."""

_TAG = regex.compile(r"\s*</?\s*([a-z][\w:-]*)", regex.IGNORECASE)
_SEPARATING_TAGS = frozenset(
    "br p div li ul ol dl dt dd td th tr table caption h1 h2 h3 h4 h5 h6 hr tab lb pb cb para title option "
    "blockquote pre section article header footer img".split()
)
_FORMATTING_TAGS = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em emphasis f font g i ins kbd mark nobr q ruby rt s samp "
    "shy small span strike strong sub sup t tt u var wbr".split()
)
_SEPARATING_TEXT = regex.compile(
    r"\s*[\t\n\r\u2028\u2029↵⏎]\s*|\\[nrt]|\{?\\(?:tab|line|par|cell|row|page|sect|column)\b.*|[\[{]\s*(?:tab|br|lb|nl)\s*/?[\]}]",
    regex.IGNORECASE | regex.DOTALL,
)
_FORMATTING_TEXT = regex.compile(
    r"[{}]+|\{?(?:\\(?:b|i|ul|sub|super|f|fs|cf|lang|plain|nosupersub)\d*\b\s*)+", regex.IGNORECASE
)
_JOINING_TEXT = regex.compile(
    r"\s*(?:[\u00ad\u200b-\u200d\u2060\ufeff]|&(?:shy|zwj|zwnj|#173|#xad|#8203|#x200b);|\\-)\s*", regex.IGNORECASE
)

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]")
_WITHOUT_SPACES = regex.compile(
    r"[\p{Line_Break=Complex_Context}\p{Line_Break=Ideographic}\p{Line_Break=Conditional_Japanese_Starter}"
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Tibetan}\p{Script=Javanese}\p{Script=Balinese}]"
)
"""Characters of scripts that do not put spaces between words."""

_END = regex.compile(r"[.,:;!?…)\]}»”’%]")
_START = regex.compile(r"[\p{L}\p{M}\p{N}(\[{«“‘¿¡]")


class Code(NamedTuple):
    """An inline code. element: name of its element. content: its text, such as <br/>. type: attribute, or empty."""

    element: str
    content: str = ""
    type: str = ""


def join_inline(parts: Sequence[str | Code]) -> str:
    """Return the text of a segment without its codes.

    A code becomes a space if words would be glued without the space: the code is isolated or separates words, and there
    are letters or digits on both sides. After a code that is known to separate words, such as a line break, a space
    also follows punctuation. Formatting and invisible characters, and scripts without spaces, never get a space.
    """
    text: list[str] = []
    last, codes = "", list[Code]()
    for part in parts:
        if isinstance(part, Code):
            codes.append(part)
        elif part:
            if codes and last and _needs_space(last, part[0], codes):
                text.append(" ")
            text.append(part)
            last, codes = part[-1], []
    return "".join(text)


def _needs_space(left: str, right: str, codes: Sequence[Code]) -> bool:
    if _WITHOUT_SPACES.match(left) or _WITHOUT_SPACES.match(right):
        return False
    effects = [_separates(code) for code in codes]
    if True in effects:
        return bool((_WORD.match(left) or _END.match(left)) and _START.match(right))
    return None in effects and bool(_WORD.match(left) and _WORD.match(right))


def _separates(code: Code) -> bool | None:
    """Return whether a code separates words: True for a line break, False for formatting, None for an unknown code."""
    if code.type in _TYPES:
        return _TYPES[code.type]
    if code.content:
        if _SEPARATING_TEXT.fullmatch(code.content):
            return True
        if _JOINING_TEXT.fullmatch(code.content) or _FORMATTING_TEXT.fullmatch(code.content):
            return False
        if (tag := _TAG.match(code.content)) is not None:
            name = tag[1].rpartition(":")[2].lower()
            if name in _SEPARATING_TAGS:
                return True
            if name in _FORMATTING_TAGS:
                return False
    return None if code.element in _ISOLATED else False
