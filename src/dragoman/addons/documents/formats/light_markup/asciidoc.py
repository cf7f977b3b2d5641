"""AsciiDoc (.adoc): text is translated; attributes, macros, listings and references are kept.

https://docs.asciidoctor.org/asciidoc/latest/
"""

import re

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.light_markup.asciidoc_inline import (
    add_inline,
    escape_asciidoc,
    escape_cell,
    inline_pattern,
)
from dragoman.addons.documents.formats.light_markup.lines import Lines, MarkupText
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage
from dragoman.base.log import warn

_VERBATIM = re.compile(r"(?P<fence>-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})[\w,=-]*[ \t]*\Z")
_STRUCTURE = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--|~{4,})[ \t]*\Z")
_TABLE = re.compile(r"(?P<fence>[|,:!]={3,})[ \t]*\Z")
_HEADING = re.compile(r"(?:={1,6}|\#{1,6})[ \t]+(?=\S)")
_ATTRIBUTES = re.compile(r"\[(?:\[[^\[\]]*\]|[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\][ \t]*\Z")
_ENTRY = re.compile(r":!?[\w-][\w -]*!?:(?=\s|\Z)")
_TITLE = re.compile(r"\.(?=[^\s.])")
_MACRO = re.compile(r"[a-z][\w-]*::\S*\[.*\][ \t]*\Z")
_ITEM = re.compile(
    r"(?:\*{1,6}|-|\.{1,6}|[0-9]{1,9}\.|[A-Za-z]\.|[ivxlcdmIVXLCDM]{1,9}\)|<(?:[0-9]{1,4}|\.)>)[ \t]+"
    r"(?:\[[ xX*]\][ \t]+)?(?=\S)"
)
_TERM = re.compile(r"(?P<term>\S(?:[^:;\r\n]|[:;](?![:;]))*+)(?P<mark>:{2,4}|;;)(?=\s|\Z)[ \t]*")
_ADMONITION = re.compile(r"(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+(?=\S)")
_LISTING = re.compile(
    r"\[(?:source|listing|literal|stem|latexmath|asciimath|mermaid|plantuml|graphviz|ditaa|pass|comment)\b"
)
_SEPARATED = re.compile(r"\bformat\s*=|\bseparator\s*=|%autowidth\.csv")
_CELL = re.compile(
    r"(?<!\\)(?P<spec>(?:[0-9]+\*|(?:[0-9]+)?(?:\.[0-9]+)?\+)?[<^>]?(?:\.[<^>])?[a-z]?)(?<![^\s|][a-z])\|"
)
_BREAK = re.compile(r"(?:'{3,}|<{3,}|\+)[ \t]*\Z")


def parse_asciidoc(text: str, _: Languages) -> ParsedDocument[str]:
    """Parse a document. Tables in other notations than with `|` are kept, and counted in a warning."""
    reader = _Reader(text)
    reader.read()
    return ParsedDocument(reader.parts, "".join)


class _Reader:
    """Divides a document into parts."""

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self.parts: list[str | Passage] = []
        self._inline = MarkupText(inline_pattern(), add_inline, escape_asciidoc)
        self._cells = MarkupText(inline_pattern(), add_inline, escape_cell)
        self._attributes = ""  # the line of attributes before the next block
        self._defines = False  # whether a definition follows, which may be indented
        self._other_tables = 0

    def read(self) -> None:
        """Read the whole document."""
        is_start = True
        while self._lines:
            is_title = self._lines.line().startswith("= ")
            precedes = self._lines.is_blank() or self._lines.line().startswith(("//", ":"))
            self._block()
            if is_start and is_title:
                self._header()
            is_start = is_start and precedes
        if self._other_tables:
            warn(f"{self._other_tables:,} table(s) with other separators than | remain untranslated")

    def _keep(self, text: str) -> None:
        if text:
            self.parts.append(text)

    def _text(self, text: str) -> None:
        self.parts += [part for part in self._inline.parts(text) if part != ""]

    def _header(self) -> None:
        """Keep the authors, the revision and the attributes after the title of the document."""
        while self._lines and not self._lines.is_blank():
            self._keep(self._lines.take())

    def _block(self) -> None:
        """Read the next block, or the first part of one."""
        lines, core = self._lines, self._lines.line().rstrip()
        if lines.is_blank():
            self._keep(lines.take())
            return
        attributes, self._attributes = self._attributes, ""
        defines, self._defines = self._defines, False
        if core.startswith("//") and not core.startswith("///"):
            self._keep(lines.take())
            self._attributes = attributes
        elif verbatim := _VERBATIM.match(core):
            fence = verbatim["fence"]
            self._keep(lines.take() + lines.take_until(lambda line: line.rstrip() == fence))
        elif table := _TABLE.match(core):
            self._table(table["fence"], attributes)
        elif _ATTRIBUTES.match(core):
            self._keep(lines.take())
            self._attributes = attributes + core
        elif _STRUCTURE.match(core) or _BREAK.match(core) or _MACRO.match(core) or _ENTRY.match(core):
            is_listing = core == "--" and _LISTING.search(attributes)
            self._keep(lines.take())
            if is_listing:
                self._keep(lines.take_until(lambda line: line.rstrip() == "--"))
            while core.endswith(" \\") and _ENTRY.match(core):  # the value of an attribute in several lines
                core = lines.line().rstrip()
                self._keep(lines.take())
        elif _LISTING.search(attributes):
            self._keep(lines.take_until(lambda line: not line.strip()))
        elif lines.indent() and not defines and not _ITEM.match(core.lstrip()) and not _TERM.match(core.lstrip()):
            self._keep(lines.take_until(lambda line: not line.strip()))  # a literal paragraph
        else:
            self._attributes = attributes if _TITLE.match(core) else ""
            self._marked(core)

    def _marked(self, core: str) -> None:
        """Read a line of text, or the marker before it."""
        line = self._lines.line()
        lead = len(line) - len(line.lstrip())
        if not self._lines.is_cut and (marker := _HEADING.match(core) or _TITLE.match(core)):
            self._keep(self._lines.cut(marker.end()))
            self._text(self._lines.take())
        elif marker := _ITEM.match(core, lead) or _ADMONITION.match(core, lead):
            self._keep(self._lines.cut(marker.end()))
            self._paragraph()
        elif not self._lines.is_cut and (term := _TERM.match(core, lead)) is not None:
            self._keep(self._lines.cut(lead))
            self._text(self._lines.cut(term.end("term") - lead))
            self._keep(self._lines.cut(term.end() - term.end("term")))
            if core[term.end() :]:
                self._paragraph()
            else:
                self._keep(self._lines.take())
                self._defines = True
        else:
            self._paragraph()

    def _paragraph(self) -> None:
        """Read a paragraph, which ends before a blank line and before the start of another block."""
        lines, count = self._lines, 1
        while not lines.is_blank(count) and not self._begins_block(lines.line(count).strip(" \t\r\n")):
            count += 1
        begin = 0
        text = [lines.line(each) for each in range(count)]
        for index, line in enumerate(text):  # lines that end with ` +` are divided
            if line.rstrip().endswith(" +"):
                end = line.rstrip().removesuffix(" +")
                self._text("".join(text[begin:index]) + end)
                self._keep(line[len(end) :])
                begin = index + 1
        self._text("".join(text[begin:]))
        lines.take(count)

    @staticmethod
    def _begins_block(core: str) -> bool:
        patterns = (_ITEM, _TERM, _VERBATIM, _STRUCTURE, _TABLE, _BREAK, _MACRO, _ATTRIBUTES)
        return core.startswith("//") or any(pattern.match(core) for pattern in patterns)

    def _table(self, fence: str, attributes: str) -> None:
        """Read a table. Each cell is a text."""
        lines = self._lines
        self._keep(lines.take())
        if fence[0] != "|" or _SEPARATED.search(attributes):
            self._other_tables += 1
            self._keep(lines.take_until(lambda line: line.rstrip() == fence))
            return
        body: list[str] = []
        while lines and lines.line().rstrip() != fence:
            body.append(lines.take())
        text, at, cell = "".join(body), 0, 0
        for found in _CELL.finditer(text):
            self.parts += [part for part in self._cells.parts(text[at : found.start()]) if part != ""]
            self._keep(found[0])
            at = cell = found.end()
        self.parts += [part for part in self._cells.parts(text[cell:]) if part != ""]
        self._keep(lines.take())
