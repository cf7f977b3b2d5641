"""AsciiDoc (.adoc): text is translated; attributes, macros, listings and references are kept.

https://docs.asciidoctor.org/asciidoc/latest/
"""

import re
from collections.abc import Sequence

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.light_markup.asciidoc_inline import (
    add_inline,
    escape_asciidoc,
    escape_cell,
    inline_pattern,
)
from dragoman.addons.documents.formats.light_markup.lines import Lines, MarkupText
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Escape, Passage
from dragoman.base.log import warn

_VERBATIM = re.compile(r"(?P<fence>-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})[\w,=-]*[ \t]*\Z")
_STRUCTURE = re.compile(r"(?:={4,}|\*{4,}|_{4,}|--|~{4,})[ \t]*\Z")
_TABLE = re.compile(r"(?P<fence>[|,:!]={3,})[ \t]*\Z")
_UNDERLINE = re.compile(r"(?P<sign>[=~^+-])(?P=sign){2,}[ \t]*\Z")
_COMPATIBLE = re.compile(r"(?:(?://[^\n]*)?\n)*+[^\n]+\n={3,}[ \t]*\r?\n")
"""The start of a document in the syntax of AsciiDoc.py: an underlined title."""

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
_CELL = re.compile(r"(?<!\\)(?P<spec>(?:(?<!\S)(?:[0-9]+\*|(?:[0-9]+)?(?:\.[0-9]+)?\+)?[<^>]?(?:\.[<^>])?[a-z]?)?)\|")
_BREAK = re.compile(r"(?:'{3,}|<{3,}|\+)[ \t]*\Z")
_LINE_BREAK = re.compile(r"(?:[ \t]+\+[ \t]*(?:\r?\n|\Z)|(?:[ \t]*\r?\n){2,})[ \t]*")
"""What divides a text: ` +` at the end of a line, and the blank lines in a cell of a table."""

_COLUMNS = re.compile(r"\bcols\s*=\s*(?:\"(?P<quoted>[^\"]*)\"|(?P<bare>[^\s,\]]+))")
_COLUMN = re.compile(r"\s*(?:(?P<times>[0-9]{1,2})\*)?[^a-z,;]*(?P<style>[a-z]?)\s*")
_SPAN = re.compile(
    r"(?:(?P<columns>[0-9]{1,2})?(?P<rows>\.[0-9]+)?\+|(?P<times>[0-9]{1,2})\*)?[^a-z|]*(?P<style>[a-z]?)\|"
)


def parse_asciidoc(text: str, _: Languages) -> ParsedDocument[str]:
    """Parse a document. Tables in other notations than with `|` are kept, and counted in a warning.

    The lines under titles become as long as the translated titles.
    """
    reader = _Reader(text)
    reader.read()

    def write(texts: Sequence[str]) -> str:
        written = list(texts)
        for begin, end in reader.titles:
            written[end] = _underline(texts[end], len("".join(texts[begin:end]).strip()))
        return "".join(written)

    return ParsedDocument(reader.parts, write)


def _underline(line: str, width: int) -> str:
    """Return the line under a title whose length is `width`; one more or less counts as well."""
    signs = line.rstrip()
    return line if abs(len(signs) - width) < 2 else line.replace(signs, signs[0] * max(width, min(3, width + 1)))


class _Reader:
    """Divides a document into parts. titles: the indices of the parts of underlined titles, and of their underlines."""

    def __init__(self, text: str, escape: Escape = escape_asciidoc) -> None:
        self._lines = Lines(text)
        self.parts: list[str | Passage] = []
        self.titles: list[tuple[int, int]] = []
        pattern = inline_pattern(_COMPATIBLE.match(text) is not None)
        self._inline = MarkupText(pattern, add_inline, escape)
        self._cells = MarkupText(pattern, add_inline, escape_cell)
        self._attributes = ""  # the line of attributes before the next block
        self._defines = False  # whether a definition follows, which may be indented
        self._other_tables = 0

    def read(self) -> None:
        """Read the whole document."""
        is_start = True
        while self._lines:
            is_title = self._lines.line().startswith("= ") or (self._is_title() and self._lines.line(1)[0] == "=")
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

    def _text(self, text: str, inline: MarkupText | None = None) -> None:
        """Add a text, divided at its line breaks. inline: its markup, by default that of text outside of tables."""
        at = 0
        for found in [*_LINE_BREAK.finditer(text), None]:
            end = len(text) if found is None else found.start()
            self.parts += [part for part in (inline or self._inline).parts(text[at:end]) if part != ""]
            if found is not None:
                self._keep(found[0])
                at = found.end()

    def _is_title(self) -> bool:
        """Whether the next line is a title with a line of about the same length under it."""
        title, line = self._lines.line().rstrip(), self._lines.line(1).rstrip()
        is_text = any(map(str.isalnum, title)) and not title.startswith((".", " ", "//", ":"))
        is_underlined = _UNDERLINE.match(line) is not None and abs(len(title) - len(line)) < 2
        return is_underlined and is_text and not self._lines.is_cut and not _ATTRIBUTES.match(title)

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
        if self._is_title():
            begin = len(self.parts)
            self._text(lines.take())
            self.titles.append((begin, len(self.parts)))
            self._keep(lines.take())
        elif core.startswith("//") and not core.startswith("///"):
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
        self._text("".join(lines.line(each) for each in range(count)))
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
        text, at = "".join(body), 0
        has_header = "header" in attributes or (len(body) > 1 and body[0].strip() != "" and not body[1].strip())
        styles = _column_styles(attributes)
        column, style = 0, ""
        for found in [*_CELL.finditer(text), None]:
            self._cell(text[at : len(text) if found is None else found.start()], style)
            if found is not None:
                self._keep(found[0])
                at = found.end()
                spec = _SPAN.fullmatch(found[0])
                if spec is None or spec["rows"]:  # the columns of the next cells are unknown
                    styles = []
                style = spec["style"] if spec is not None else ""
                if styles and not style and not (has_header and column < len(styles)):
                    style = styles[column % len(styles)]
                column += int((spec and (spec["columns"] or spec["times"])) or 1)
        self._keep(lines.take())

    def _cell(self, text: str, style: str) -> None:
        """Read a cell. style: `a` for one with blocks, `l` and `m` for code."""
        if style == "a":
            inner = _Reader(text, escape_cell)
            inner.read()
            self.parts += inner.parts
        elif style in ("l", "m"):
            self._keep(text)
        else:
            self._text(text, self._cells)


def _column_styles(attributes: str) -> list[str]:
    """Return the styles of the columns of a table, such as `m`, from its attributes."""
    found = _COLUMNS.search(attributes)
    styles: list[str] = []
    for spec in re.split("[,;]", (found["quoted"] or found["bare"] or "") if found else ""):
        if column := _COLUMN.match(spec):
            styles += [column["style"]] * int(column["times"] or 1)
    return styles if any(styles) else []
