"""Word boundaries, and the display of pieces: `Ni@@ ki@@ tin .` as in subword-nmt, with stray bytes as <E2>."""

import unicodedata
from collections.abc import Sequence

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Split

from dragoman.text.scripts import unspaced_class

WORDS = (
    r" ?[\p{L}\p{M}\x{200C}\x{200D}]+"  # letters with combining marks and joiners, and one preceding space
    r"| ?\p{N}+"
    r"| ?[^\s\p{L}\p{M}\p{N}\x{200C}\x{200D}]+"  # punctuation, symbols, emoji
    r"|\s+(?!\S)"  # whitespace except the last character, which belongs to the next word
    r"|\s+"
)
"""Pattern of a word. No learned symbol crosses a word boundary. Letters and punctuation are separated, so that no
symbol can spell `</s>`.

In a script without spaces, such a word is a whole clause. Only `text.divide_unspaced: false` uses this pattern."""

LONGEST_RUN = 64
"""Maximum number of characters of a word in a script without spaces, in addition to the marks of its last letter."""

_UNSPACED = unspaced_class(r"\p{{{}}}")
_FIRST = rf"[[\p{{L}}\p{{M}}〇]&&[{_UNSPACED}]]"  # 〇 is a number in Unicode, but a letter in Chinese text
_NEXT = rf"[\p{{M}}\x{{200C}}\x{{200D}}{_FIRST}]"


def _run(excluded: str) -> str:
    """Return the pattern of a run of letters without spaces. excluded: the characters that are not part of runs."""
    return rf" ?[{_FIRST}&&[^{excluded}]][{_NEXT}&&[^{excluded}]]{{0,{LONGEST_RUN - 1}}}\p{{M}}*"


RUN = _run(r"\s")
"""A run of letters without spaces."""

CHARACTER = rf" ?[\p{{Katakana}}ー]+\p{{M}}*| ?{_FIRST}\p{{M}}*"
"""A single letter with its marks, or a run of Katakana: the word boundaries of UAX #29."""

_OTHER_RUN = _run(r"\p{Han}")
CHINESE_CHARACTER_OR_RUN = rf" ?\p{{Han}}\p{{M}}*|{_OTHER_RUN}"
"""A single Chinese character, as in BERT, or a run of letters of other scripts without spaces."""


def divided_words(unspaced: str = RUN) -> str:
    """Return `WORDS` with separate words for scripts without spaces, which match the pattern `unspaced`."""
    other_letters = rf" ?[[\p{{L}}\p{{M}}\x{{200C}}\x{{200D}}]&&[^{_UNSPACED}]]+"
    _, others = WORDS.split("|", 1)
    return f"{unspaced}|{other_letters}|{others}"


def words_splitter(pattern: str = WORDS) -> Split:
    """Return a pre-tokeniser of the `tokenizers` library that splits a text at a pattern of words, without loss."""
    return Split(Regex(pattern), "isolated")


_SPLIT = words_splitter()
BLANK = "␣"


def byte_values() -> dict[str, int]:
    """Return the byte of each character of the library's byte alphabet (the byte table of GPT-2).

    Printable Latin-1 characters represent themselves. The other bytes are represented by the characters from U+0100
    on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    values = {chr(byte): byte for byte in printable}
    values.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    assert set(values) == set(ByteLevel.alphabet())
    return values


def display(pieces: Sequence[bytes], splitter: Split | None = None) -> list[str]:
    """Return one string per piece. `@@` marks pieces that are continued within the same word.

    The space before a word is omitted. Other spaces are shown as ␣. splitter: divides texts into words; None for
    `WORDS`.
    """
    ends = _word_ends(b"".join(pieces), splitter or _SPLIT)
    shown: list[str] = []
    position = 0
    for piece in pieces:
        starts_word = position == 0 or position in ends
        position += len(piece)
        text = readable(piece)
        if starts_word and len(text) > 1 and text[0] == BLANK and text[1] != BLANK:
            text = text[1:]
        shown.append(text if position in ends else text + "@@")
    return shown


def _word_ends(data: bytes, splitter: Split) -> set[int]:
    """Return the byte positions at which words end. Each byte of an incomplete character counts as one character."""
    text = data.decode("utf-8", "surrogateescape")
    widths = [1 if "\udc80" <= character <= "\udcff" else len(character.encode()) for character in text]
    whole = "".join("\ufffd" if "\udc80" <= character <= "\udcff" else character for character in text)
    ends: set[int] = set()
    position = start = 0
    for _, (_, end) in splitter.pre_tokenize_str(whole):
        position += sum(widths[start:end])
        start = end
        ends.add(position)
    return ends


def readable(piece: bytes) -> str:
    """Return a piece as text. Spaces are shown as ␣, control characters and bytes of incomplete characters as <E2>."""
    shown = []
    for character in piece.decode("utf-8", "surrogateescape"):
        if "\udc80" <= character <= "\udcff":
            shown.append(f"<{ord(character) - 0xDC00:02X}>")
        elif character == " ":
            shown.append(BLANK)
        elif unicodedata.category(character) in ("Cc", "Zl", "Zp"):
            shown.extend(f"<{byte:02X}>" for byte in character.encode())
        else:
            shown.append(character)
    return "".join(shown)
