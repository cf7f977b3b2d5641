"""`run_piece`: text in runs, as presentations and workbooks have it, as a passage whose translation becomes runs again.

Unlike the runs of Word documents, these are never in one another, and links are formats.
DrawingML and SpreadsheetML: ECMA-376 part 1, sections 21.1.2 and 18.4.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.archive_document import Piece
from dragoman.addons.documents.formats.xml_tree import Element, Text, escape_xml
from dragoman.addons.documents.languages import with_region
from dragoman.addons.documents.passage import Passage, Style
from dragoman.addons.documents.passage_builder import PassageBuilder

# these characters enclose the number of a mark; they are invalid in XML, so they cannot occur in text
_BEGIN, _END = "\x01", "\x02"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
_PROOFING = re.compile(r"\s(?:lang|altLang|dirty|err|noProof|smtClean)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_LANGUAGE = re.compile(r"(?<=\slang=)(?:\"[^\"]*\"|'[^']*')")
_RAISED = re.compile(r"\sbaseline=[\"'](?!0[\"'])|<\w*:?vertAlign\b")
_UNIT = re.compile(r"(?P<line>\n|_x000[aAdD]_)|(?P<blank>[ \t\r]+)|(?P<other>&[#\w]+;|.)", re.DOTALL)


class _Run(NamedTuple):
    """A format: the XML before the text of a run, and after it."""

    before: str
    after: str

    @property
    def key(self) -> str:
        """What is equal for runs that look the same."""
        return _PROOFING.sub("", self.before)


def run_piece(data: bytes, nodes: Sequence[Element], span: tuple[int, int], target: str | None) -> Piece | None:
    """Return the text in runs as a piece, or None if it has no letters.

    nodes: the runs, breaks, fields and others of a paragraph in order; span: the bytes that a translation replaces;
    target: the language of the translation.
    """
    if not any(map(str.isalpha, "".join(text for node in nodes for text in node.texts()))):
        return None
    paragraph = _Paragraph(data, nodes, target)
    return None if paragraph.passage is None else Piece(*span, paragraph.passage, paragraph.write)


class _Paragraph:
    """Runs as a passage. Formats that differ from the most common one are spans."""

    def __init__(self, data: bytes, nodes: Sequence[Element], target: str | None) -> None:
        self._data, self._marks = data, list[_Run | str | None]()
        self._tag = "-".join(filter(None, with_region(target))) if target is not None else None
        self._builder = PassageBuilder(escape_xml)
        lengths, runs = Counter[str](), dict[str, _Run]()
        for node in nodes:
            if (text := _text_element(node)) is not None and node.name != "fld":
                run = self._run(node, text)
                lengths[run.key] += len("".join(text.texts()).strip())
                runs.setdefault(run.key, run)
        self.passage: Passage | None = None
        if not runs:  # only fields
            return
        self._base = runs[lengths.most_common(1)[0][0]]
        self._add(nodes)
        found: list[str | Passage] = []
        self._builder.finish(found.append)
        self.passage = next((each for each in found if isinstance(each, Passage)), None)

    def write(self, written: str) -> str:
        """Return the XML of a translation with its marks."""
        xml, texts, open_runs = list[str](), list[str](), [self._base]

        def finish() -> None:
            if text := "".join(texts):
                xml.append(self._xml(open_runs[-1], text))
            texts.clear()

        for index, part in enumerate(_MARK.split(written)):
            if index % 2 == 0:
                texts.append(part)
                continue
            finish()
            mark = self._marks[int(part)]
            if isinstance(mark, _Run):
                open_runs.append(mark)
            elif mark is not None:
                xml.append(mark)
            elif len(open_runs) > 1:
                open_runs.pop()
        finish()
        return "".join(xml)

    def _add(self, nodes: Sequence[Element]) -> None:
        name = ""  # of the open span
        for node in nodes:
            raw = self._raw(node.begin, node.end)
            text = _text_element(node)
            if node.name == "br":
                self._builder.add_line_break(self._mark(raw))
            elif node.name == "fld" or text is None:
                self._builder.add_code("".join(node.texts()), self._mark(raw))
            else:
                run = self._run(node, text)
                if "".join(text.texts()).strip() and run.key != name:
                    if name:
                        self._builder.add_mark("close", (self._mark(None),), name)
                    name = run.key if run.key != self._base.key else ""
                    if name:
                        self._builder.add_mark("open", (self._mark(run),), name, style=_style_of(run))
                self._add_text(text)
        if name:
            self._builder.add_mark("close", (self._mark(None),), name)

    def _add_text(self, element: Element) -> None:
        add: dict[str, Callable[[str], None]] = {
            "line": self._builder.add_line_break,
            "blank": self._builder.add_blank,
        }
        for child in element.children:
            raw = self._raw(child.begin, child.end)
            if not isinstance(child, Text):
                continue  # a comment
            if child.text != raw and "_x000" not in raw:  # an entity or a line break
                if child.text.isspace():
                    self._builder.add_blank(raw)
                else:
                    self._builder.add_text(child.text, raw)
                continue
            for unit in _UNIT.finditer(raw):
                if (kind := unit.lastgroup) in add:
                    add[str(kind)](unit[0])
                else:
                    self._builder.add_text(unit[0], unit[0])

    def _run(self, node: Element, text: Element) -> _Run:
        """Return the format of a run, in the language of the translation."""
        name = re.match(r"<([^\s/>]+)", self._raw(text.begin, text.end))
        assert name is not None
        before = self._raw(node.begin, text.begin) if node is not text else ""
        if self._tag is not None:
            before = _LANGUAGE.sub(f'"{self._tag}"', before)
        after = f"</{name[1]}>" + (self._raw(text.end, node.end) if node is not text else "")
        return _Run(f"{before}<{name[1]}>", after)

    def _xml(self, run: _Run, text: str) -> str:
        before = run.before
        if text != text.strip() and ":" not in before.rpartition("<")[2]:
            before = f'{before[:-1]} xml:space="preserve">'  # in workbooks, blanks at the ends would be lost
        return before + text + run.after

    def _mark(self, mark: _Run | str | None) -> str:
        """Assign a number to a mark, and return its form in text. None closes the innermost span."""
        self._marks.append(mark)
        return f"{_BEGIN}{len(self._marks) - 1}{_END}"

    def _raw(self, begin: int, end: int) -> str:
        return self._data[begin:end].decode()


def _style_of(run: _Run) -> Style:
    return "separate" if "hlinkClick" in run.before else "raised" if _RAISED.search(run.before) else "emphasis"


def _text_element(node: Element) -> Element | None:
    """Return the element with the text of a run, or of a text without a format."""
    return node if node.name == "t" else node.first("t")
