"""reStructuredText (.rst), also of Sphinx: text is translated; directives, roles, references and code are kept.

https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from dragoman.addons.documents.formats.format import ParsedDocument
from dragoman.addons.documents.formats.light_markup.lines import Lines, MarkupText
from dragoman.addons.documents.formats.light_markup.rst_inline import add_inline, escape_rst, inline_pattern
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, raw_text
from dragoman.base.log import warn

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*\Z")
_DIRECTIVE = re.compile(r"\.\.[ \t]+(?P<name>[A-Za-z][\w:+.-]*?)::(?=\s|\Z)[ \t]*")
_NOTE = re.compile(r"\.\.[ \t]+\[(?:[0-9]+|[#*][\w.-]*|[A-Za-z][\w.-]*)\][ \t]+")
_EXPLICIT = re.compile(r"(?:\.\.(?=\s|\Z)|__(?=\s|\Z))")
_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):(?=\s)[ \t]*")
_ITEM = re.compile(
    r"(?:[-*+•‣⁃]|(?:[0-9]{1,9}|[A-Za-z]|[ivxlcdmIVXLCDM]{1,9}|\#)[.)]|\((?:[0-9]{1,9}|[A-Za-z]|\#)\))[ \t]+(?=\S)"
)
_FIELD = re.compile(r":(?P<name>[^\s:`][^:`\r\n]*):(?:[ \t]+(?=\S)|(?=\s|\Z))")
_OPTIONS = re.compile(r"(?:--?|/)[^\s`]\S*(?:[ ][^\s-]\S*|,[ ]--?\S+){0,4}(?:[ ]{2,}|\t+)(?=\S)")
_GRID = re.compile(r"\+[-=+]+\+[ \t]*\Z")
_SIMPLE = re.compile(r"={2,}(?:[ \t]+={2,})+[ \t]*\Z")
_LINE_BLOCK = re.compile(r"\|(?:[ \t]+|(?=\s|\Z))")

_PROSE = frozenset(
    "attention caution danger error hint important note tip warning seealso todo versionadded versionchanged "
    "deprecated versionremoved container compound epigraph highlights pull-quote admonition topic sidebar rubric "
    "centered figure list-table glossary only tab-set tab-item dropdown card grid grid-item details hlist parsed-prose "
    "deprecated-removed availability impl-detail".split()
)
"""Directives whose content is prose; those of a domain, such as `py:function`, have prose too."""

_TEXT_ARGUMENT = frozenset(
    "attention caution danger error hint important note tip warning seealso todo epigraph highlights pull-quote "
    "admonition topic sidebar rubric centered list-table table csv-table tab-item dropdown card".split()
)
"""Directives whose argument is text; that of others is a path, a version or a signature."""

_KEPT = frozenset(
    "code code-block sourcecode literalinclude math raw highlight doctest testcode testoutput testsetup testcleanup "
    "include contents toctree index meta class role default-role image unicode replace date csv-table table graphviz "
    "digraph mermaid plot autosummary program currentmodule module automodule parsed-literal productionlist "
    "sectionauthor codeauthor target-notes header footer sectnum ipython jupyter-execute tabularcolumns".split()
)
"""Directives whose content is kept without a word."""

_TEXT_OPTIONS = frozenset(("alt", "caption", "title", "subtitle"))
_TEXT_FIELDS = frozenset(
    "param parameter arg argument key keyword return returns raise raises except exception yield yields var ivar cvar "
    "abstract dedication note description".split()
)
_DOMAIN = re.compile(r"(?:py|c|cpp|js|rst|std):\w|(?:auto)?(?:function|class|method|attribute|module|data|exception)\Z")


_REFERENCE = re.compile(r"(?<!:)`(?P<phrase>[^`<>]{1,200})`_(?!\w)|(?<![\w`])(?P<word>[^\W_][\w.-]*[^\W_])_(?!\w)")
_NAMED_TARGET = re.compile(r"(?m)^[ ]*\.\.[ ]+_(?:`(?P<quoted>[^`\n]+)`|(?P<name>[^:\n]+)):")


class _Title(NamedTuple):
    """A section title. begin, end: its parts; rules: the indices of the lines of punctuation around it."""

    begin: int
    end: int
    rules: Sequence[int]


def parse_rst(text: str, _: Languages) -> ParsedDocument[str]:
    """Parse a document. Tables that are drawn with characters, and the content of unknown directives, are kept.

    Both are counted in a warning. The lines under titles become as long as the translated titles. If the document
    refers to a title by its text, the translated title is preceded by a target with this text.
    """
    reader = _Reader(text)
    reader.read()
    linked = {_name(found["phrase"] or found["word"]) for found in _REFERENCE.finditer(text)}
    linked -= {_name(found["quoted"] or found["name"]) for found in _NAMED_TARGET.finditer(text)}
    sources = [part if isinstance(part, str) else raw_text(part) for part in reader.parts]

    newline = "\r\n" if "\r\n" in text else "\n"

    def write(texts: Sequence[str]) -> str:
        written = list(texts)
        for title in reader.titles:
            new, old = ("".join(each[title.begin : title.end]).strip() for each in (texts, sources))
            for index in title.rules:
                written[index] = _rule(texts[index], _width(new))
            if new != old and _name(old) in linked:
                first = min(title.begin, title.rules[0])
                written[first] = f".. _`{old}`:{newline}{newline}{written[first]}"
        return "".join(written)

    return ParsedDocument(reader.parts, write)


def _name(text: str) -> str:
    """Return the form of a reference in which docutils compares it."""
    return " ".join(text.lower().split())


def _rule(rule: str, width: int) -> str:
    """Return a line of punctuation that is long enough."""
    signs = rule.rstrip()
    return rule if len(signs.strip()) >= width else rule.replace(signs, signs + signs[-1] * (width - len(signs)))


def _width(text: str) -> int:
    """Return the number of columns of a text."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


class _Reader:
    """Divides a document into parts. titles: its section titles."""

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        self.parts: list[str | Passage] = []
        self.titles: list[_Title] = []
        self._inline = MarkupText(inline_pattern(), add_inline, escape_rst)
        self._tables = self._unknown = 0

    def read(self) -> None:
        """Read the whole document."""
        while self._lines:
            self._block()
        if self._tables:
            warn(f"{self._tables:,} table(s) drawn with characters remain untranslated: use `list-table`")
        if self._unknown:
            warn(f"{self._unknown:,} directive(s) whose content is unknown remain untranslated")

    def _keep(self, text: str) -> None:
        if text:
            self.parts.append(text)

    def _text(self, text: str) -> None:
        self.parts += [part for part in self._inline.parts(text) if part != ""]

    def _block(self) -> None:
        """Read the next block, or the first part of one."""
        lines = self._lines
        indent, core = lines.indent(), lines.line().strip()
        if not core:
            self._keep(lines.take())
        elif self._is_title():
            self._title()
        elif _EXPLICIT.match(core):
            self._explicit(indent, core)
        elif _GRID.match(core) or _SIMPLE.match(core):
            self._table(core)
        elif core.startswith(">>>"):
            self._keep(lines.take_until(lambda line: not line.strip()))
        elif _RULE.match(core) and len(core) > 3:
            self._keep(lines.take())
        else:
            self._marked(indent, core)

    def _is_title(self) -> bool:
        lines, first = self._lines, self._lines.line()
        if lines.is_cut:
            return False
        second, third = lines.line(1).rstrip(), lines.line(2).rstrip()
        if _RULE.match(first.rstrip()):
            is_over = bool(second.strip()) and first.rstrip() == third
            return is_over and len(third) >= min(4, _width(second.strip())) and not _RULE.match(second)
        long_enough = len(second) >= min(4, _width(first.rstrip()))
        return lines.indent() == 0 and _RULE.match(second) is not None and long_enough

    def _title(self) -> None:
        over = [len(self.parts)] if _RULE.match(self._lines.line().rstrip()) else []
        if over:
            self._keep(self._lines.take())
        begin = len(self.parts)
        self._text(self._lines.take())
        end = len(self.parts)
        self._keep(self._lines.take())
        self.titles.append(_Title(begin, end, [*over, end]))

    def _explicit(self, indent: int, core: str) -> None:
        """Read a directive, a note, or what is kept: a target, a substitution or a comment."""
        directive, note = _DIRECTIVE.match(core), _NOTE.match(core)
        if note is not None and core[note.end() :]:
            self._cut(note[0])
            self._paragraph(indent)
        elif directive is not None:
            self._directive(indent, core, directive)
        else:
            is_empty = core == ".." and self._lines.is_blank(1)
            self._keep(self._lines.take())
            self._keep("" if is_empty else self._lines.take_indented(indent))

    def _directive(self, indent: int, core: str, directive: "re.Match[str]") -> None:
        lines, name = self._lines, directive["name"].lower()
        if name in _TEXT_ARGUMENT and core[directive.end() :]:
            self._cut(directive[0])
            self._paragraph(indent, is_argument=True)
        else:
            self._keep(lines.take())
        while lines.indent() > indent and (option := _OPTION.match(lines.line())) is not None:
            line = lines.take()
            is_text = option["name"] in _TEXT_OPTIONS
            self._keep(line[: option.end()] if is_text else line)
            if is_text:
                self._text(line[option.end() :])
        if name in _PROSE or _DOMAIN.match(name):
            return  # its content consists of further blocks
        content = lines.take_indented(indent)
        self._unknown += name not in _KEPT and any(map(str.isalpha, content))
        self._keep(content)

    def _table(self, core: str) -> None:
        self._tables += 1
        if _GRID.match(core):
            self._keep(self._lines.take_until(lambda line: not line.strip()))
            return
        self._keep(self._lines.take())
        while self._lines:
            line = self._lines.take()
            self._keep(line)
            if _SIMPLE.match(line.strip()) and self._lines.is_blank():
                return

    def _marked(self, indent: int, core: str) -> None:
        """Read a paragraph, or the marker before it, such as that of a list."""
        if block := _LINE_BLOCK.match(core):
            self._cut(block[0])
            self._text(self._lines.take())
        elif item := _ITEM.match(core):
            self._cut(item[0])
        elif (field := _FIELD.match(core)) is not None:
            if field["name"].split()[0].lower() in _TEXT_FIELDS and core[field.end() :]:
                self._cut(field[0])
                self._paragraph(indent)
            else:
                self._keep(self._lines.take())
                self._keep(self._lines.take_indented(indent))
        elif options := _OPTIONS.match(core):
            self._cut(options[0])
            self._paragraph(indent)
        else:
            self._paragraph()

    def _cut(self, marker: str) -> None:
        """Keep the marker at the start of the next line, with the blanks before it."""
        line = self._lines.line()
        self._keep(self._lines.cut(len(line) - len(line.lstrip()) + len(marker)))

    def _paragraph(self, marker: int | None = None, is_argument: bool = False) -> None:
        """Read a paragraph, and the literal block that it announces.

        marker: the indent of the marker before its first line; the other lines are indented more. is_argument: whether
        options of a directive may follow.
        """
        lines, indent, count = self._lines, self._lines.indent(), 1
        while not lines.is_blank(count):
            if marker is not None and count == 1 and lines.indent(1) > marker:
                indent = lines.indent(1)
            if lines.indent(count) != indent or (is_argument and _OPTION.match(lines.line(count))):
                break
            count += 1
        base = indent if marker is None else marker
        text = lines.take(count)
        if not text.rstrip().endswith("::"):
            self._text(text)
            return
        end = text.rstrip().removesuffix("::")
        self._text(end)
        self._keep(text[len(end) :])
        while lines and lines.is_blank():
            self._keep(lines.take())
        if lines.indent() > base:
            self._keep(lines.take_indented(base))
        elif lines and not lines.line().lstrip()[:1].isalnum():
            self._keep(lines.take_until(lambda line: not line.strip()))
