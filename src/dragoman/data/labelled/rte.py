"""The XML format of the RTE challenges (Dagan et al. 2006): pairs of a text `t` and a hypothesis `h`."""

from collections.abc import Iterator

from dragoman.data.files.lines import LONGEST_LINE
from dragoman.data.files.xml import CorpusParser, read_xml
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.rows import Row


def read_rte(corpus: LabelledCorpusConfig) -> Iterator[Row]:
    """Yield the pairs of a file. The line of a pair is the line at which its element starts.

    The label is the attribute `entailment` (YES or NO, or three classes in later challenges) or, in the first
    challenge, `value` (TRUE or FALSE). Raises DataError with file and line for XML that is malformed, declares
    entities, or is not in this format.
    """
    parser = _PairParser(corpus)
    for chunk in read_xml(corpus.path):
        parser.feed(chunk)
        yield from parser.pop_rows()
    parser.feed(b"", final=True)
    yield from parser.pop_rows()


class _PairParser(CorpusParser):
    def __init__(self, corpus: LabelledCorpusConfig) -> None:
        super().__init__(corpus.path, "an RTE file")
        self._rows: list[Row] = []
        self._attributes: dict[str, str] | None = None
        self._line = self._size = 0
        self._texts: dict[str, str] = {}
        self._text: list[str] | None = None
        self._has_root = False

    def pop_rows(self) -> list[Row]:
        """Return the pairs that were completed since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._has_root and tag != "entailment-corpus":
            raise self.error(f"this is not an RTE file: its root element is <{tag}>, not <entailment-corpus>.")
        self._has_root = True
        if tag == "pair":
            self._attributes, self._line, self._size, self._texts = attributes, self.line, 0, {}
        elif tag in ("t", "h"):
            self._text = []

    def end(self, tag: str) -> None:
        if tag in ("t", "h") and self._text is not None:
            self._texts[tag] = "".join(self._text).strip(" \t\r\n")
            self._text = None
        elif tag == "pair" and self._attributes is not None:
            if len(self._texts) < 2:
                raise self.error("a <pair> lacks <t> or <h>.")
            label = self._attributes.get("entailment", self._attributes.get("value"))
            self._rows.append(Row(self._line, (self._texts["t"], self._texts["h"]), label, self._attributes.get("id")))
            self._attributes = None

    def characters(self, text: str) -> None:
        if self._text is not None:
            self._size += len(text)
            if self._size > LONGEST_LINE:
                raise self.error(f"a pair of more than {LONGEST_LINE} characters. Is this an RTE file?")
            self._text.append(text)
