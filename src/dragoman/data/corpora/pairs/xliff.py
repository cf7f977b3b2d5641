"""Corpora in XLIFF 1.2 and 2.x, the exchange formats of localisation (OASIS standards)."""

import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.data.corpora.corpus import ADDRESS
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.pairs.inline_codes import CODES, LONGEST_CONTENT, Code, join_inline
from dragoman.data.corpora.pairs.units import UnitPairs, Variant
from dragoman.data.files.lines import LONGEST_LINE
from dragoman.data.files.xml import CorpusParser, read_xml

_BLANKS = re.compile(r"[ \t\r\n]+")
_UNITS = ("trans-unit", "segment")
_CODES = CODES | {"sc", "ec", "cp"}
"""Inline elements that contain or represent codes. `g`, `pc` and `mrk` are not included, because they contain text."""

_UNTRANSLATED = frozenset(("new", "needs-translation", "needs-l10n", "needs-adaptation", "initial"))
"""States of a segment whose target is not a translation (XLIFF 1.2, section 2.3.1; XLIFF 2.1, section 4.3.1.25)."""

_UNNAMED = "und"


def read_xliff(path: Path, source_code: str | None, target_code: str | None, address: str = ADDRESS) -> Iterator[Pair]:
    """Yield the segments of a file as pairs. The line of a pair is the line at which its segment starts.

    source_code, target_code: None for the languages that the file declares; with codes in the other order, the sides
    are swapped. A segment without a target, or whose state is that of an untranslated one, becomes a pair that is not
    `complete`. Alternative translations are ignored. Inline codes are removed; see `join_inline`. Each run of
    whitespace becomes one space. Memory does not grow with the file.

    address: of the settings of the corpus. Raises DataError with file and line for malformed XML, and with the
    languages of the file if they are to be chosen.
    """
    pairs = UnitPairs(path, source_code, target_code, address)
    parser = _SegmentParser(path, pairs)
    for chunk in read_xml(path):
        parser.feed(chunk)
        yield from pairs.pop()
    parser.feed(b"", final=True)
    pairs.finish()
    yield from pairs.pop()


class _SegmentParser(CorpusParser):
    def __init__(self, path: Path, pairs: UnitPairs) -> None:
        super().__init__(path, "an XLIFF file")
        self._pairs = pairs
        self._open: list[str] = []
        self._languages = {"source": _UNNAMED, "target": _UNNAMED}
        self._variants: list[Variant] = []
        self._parts: list[str | Code] | None = None
        self._line = self._size = self._muted = 0
        self._is_translated = True
        self._code = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if not self._open and name != "xliff":
            raise self.error(f"this is not an XLIFF file: its root element is <{tag}>, not <xliff>.")
        for side, names in (("source", ("source-language", "srcLang")), ("target", ("target-language", "trgLang"))):
            if (code := attributes.get(names[0], attributes.get(names[1]))) and name in ("xliff", "file"):
                self._languages[side] = code
        if self._parts is not None and (self._muted or name in _CODES):
            if not self._muted:
                self._parts.append(Code(name, type=attributes.get("type", attributes.get("ctype", ""))))
            self._muted += 1
        elif name in _UNITS:
            self._line, self._size, self._variants = self.line, 0, []
            self._is_translated = attributes.get("state") not in _UNTRANSLATED
        elif name in self._languages and self._open[-1] in _UNITS:
            self._parts, self._code = [], attributes.get("xml:lang", self._languages[name])
            if name == "source":
                self._pairs.declared_source = self._pairs.declared_source or self._code
            else:
                self._is_translated &= attributes.get("state") not in _UNTRANSLATED
        self._open.append(name)

    def end(self, tag: str) -> None:
        name = self._open.pop()
        if self._muted:
            self._muted -= 1
        elif name in self._languages and self._parts is not None and self._open[-1] in _UNITS:
            text = _BLANKS.sub(" ", join_inline(self._parts)).strip(" ")
            self._parts = None
            if name == "source" or (text and self._is_translated):
                self._variants.append(Variant(self._code, text))
        elif name in _UNITS:
            self._pairs.add(self._line, self._variants)

    def characters(self, text: str) -> None:
        if self._parts is None:
            return
        self._size += len(text)
        if self._size > LONGEST_LINE:
            raise self.error(f"a segment of more than {LONGEST_LINE} characters. Is this an XLIFF file?")
        if not self._muted:
            self._parts.append(text)
        elif isinstance(code := self._parts[-1], Code) and len(code.content) < LONGEST_CONTENT:
            self._parts[-1] = code._replace(content=code.content + text[:LONGEST_CONTENT])
