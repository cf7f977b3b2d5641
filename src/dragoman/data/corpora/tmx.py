"""Corpora in TMX, the exchange format of translation memories (LISA/OSCAR, TMX 1.4b)."""

import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.lines import LONGEST_LINE, read_chunks
from dragoman.data.corpora.xml import CorpusParser

_CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
"""Inline elements that contain codes of the program that wrote the file. `hi` is not included, because it contains
text."""

_BLANKS = re.compile(r"[ \t\r\n]+")


def read_tmx(path: Path, source_code: str, target_code: str) -> Iterator[Pair]:
    """Yield the units (`tu`) of a file as pairs. The line of a pair is the line at which its unit starts.

    The first variant (`tuv`) of a unit in each language is used. The language is the value of `xml:lang` or `lang`,
    ignoring case. The code en matches en-US, but en-US does not match en. A unit that lacks one of the languages
    becomes a pair that is not `complete`. Text in `hi` is kept, but text in the inline codes `bpt`, `ept`, `it`, `ph`
    and `ut` is removed. Each run of whitespace becomes one space. Memory does not grow with the file. An external DTD
    may be declared, but is never read. Raises DataError with file and line for XML that is malformed, declares
    entities, or is not TMX.
    """
    parser = _UnitParser(path, source_code.lower(), target_code.lower())
    for chunk in read_chunks(path):
        parser.feed(chunk)
        yield from parser.pop_pairs()
    parser.feed(b"", final=True)
    yield from parser.pop_pairs()


class _UnitParser(CorpusParser):
    def __init__(self, path: Path, *codes: str) -> None:
        super().__init__(path, "a TMX file")
        self._codes = codes
        self._pairs: list[Pair] = []
        self._depth = self._muted = 0
        self._line = self._size = 0
        self._sides: list[str | None] = []
        self._code = ""
        self._text: list[str] | None = None

    def pop_pairs(self) -> list[Pair]:
        """Return the pairs that were completed since the last call."""
        pairs, self._pairs = self._pairs, []
        return pairs

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        self._depth += 1
        if self._depth == 1 and name != "tmx":
            raise self.error(f"this is not a TMX file: its root element is <{tag}>, not <tmx>.")
        if name == "tu":
            self._line, self._size, self._sides = self.line, 0, [None, None]
        elif name == "tuv":
            self._code = attributes.get("xml:lang", attributes.get("lang", "")).lower()
        elif name == "seg":
            self._text, self._muted = [], 0
        elif self._text is not None and (self._muted or name in _CODES):
            self._muted += 1

    def end(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        self._depth -= 1
        if name == "seg" and self._text is not None:
            text = _BLANKS.sub(" ", "".join(self._text)).strip(" ")
            self._text = None
            for side, code in enumerate(self._codes):
                if self._sides and self._sides[side] is None and _matches(self._code, code):
                    self._sides[side] = text
        elif name == "tu" and self._sides:
            source, target = self._sides
            complete = source is not None and target is not None
            self._pairs.append(Pair(self._line, source or "", target or "", complete))
            self._sides = []
        elif self._muted:
            self._muted -= 1

    def characters(self, text: str) -> None:
        if self._text is not None and not self._muted:
            self._size += len(text)
            if self._size > LONGEST_LINE:
                raise self.error(f"a unit of more than {LONGEST_LINE} characters. Is this a translation memory?")
            self._text.append(text)


def _matches(code: str, language: str) -> bool:
    """Return whether the language code of a variant denotes `language` or a regional variety of it."""
    return code == language or re.split("[-_]", code, maxsplit=1)[0] == language
