"""Parses Markdown documents (CommonMark with tables). Text is translated, and blocks and markup are preserved."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.base.log import warn
from dragoman.base.packages import import_optional
from dragoman.documents.passage import Passage, PassageBuilder, Raw, raw_text

_SPECIAL = re.compile(r"[\\`*\[\]<|]|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_BEGINNING = re.compile(r"(?:#{1,6}(?=\s|\Z)|[>+-]|[0-9]{1,9}(?=[.)])|=+\s*\Z)")
_LINE_END = re.compile(r"[ \t]*\\?\n[ \t]*")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)")
_VOID_TAGS = ("img", "wbr", "input")


def escape_markdown(text: str, begins: bool) -> str:
    """Escape every character that would be parsed as markup. begins: whether the text starts a block."""
    result = _BEGINNING.match(text) if begins else None
    inner = _SPECIAL.sub(r"\\\g<0>", text)
    if result is None:
        return inner
    return f"{result[0]}\\{inner[result.end() :]}" if result[0].isdigit() else f"\\{inner}"


class MarkdownParser:
    """A markdown-it-py parser that also records the ends of links, images and code spans within a block.

    markdown-it-py returns source positions only for blocks, so its inline rules are wrapped to record their matches.
    """

    def __init__(self) -> None:
        package = import_optional("markdown_it", "documents", "markdown-it-py")
        rules = import_optional("markdown_it.rules_inline", "documents", "markdown-it-py")
        self._parser: Any = package.MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._parser.core.ruler.disable(["inline", "text_join"])
        self._ends: dict[int, int] = {}
        self._content = ""
        recorded_rules = {
            "link": rules.link,
            "image": rules.image,
            "backticks": rules.backtick,
            "autolink": rules.autolink,
        }
        for name, rule in recorded_rules.items():
            self._parser.inline.ruler.at(name, self._record_ends(rule))

    def blocks(self, text: str) -> tuple[list[Any], Any]:
        """Return the block tokens with unparsed inline content, and the link definitions."""
        environment: dict[str, Any] = {}
        return self._parser.parse(text, environment), environment

    def tokens(self, content: str, environment: Any) -> tuple[list[Any], Mapping[int, int]]:
        """Return the inline tokens of a block, and the end of each link, image and code span by its start."""
        self._content, self._ends = content, {}
        result: list[Any] = []
        self._parser.inline.parse(content, self._parser, environment, result)
        return result, self._ends

    def _record_ends(self, rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
        def record_end(state: Any, silent: bool) -> bool:
            begin = state.pos
            matched = bool(rule(state, silent))
            if matched and not silent and state.src == self._content:
                self._ends[begin] = state.pos
            return matched

        return record_end


class _PositionError(Exception):
    """Raised if a token is not at the expected position."""


@dataclass
class _InlineReader:
    """Converts the inline tokens of a block to a passage.

    content: the text of the block; positions: the position in the document of each character of `content` and of its
    end; ends: the end of each link, image and code span by its start; at: the index of the next character.
    """

    content: str
    text: str
    positions: Sequence[int]
    ends: Mapping[int, int]
    builder: PassageBuilder = field(default_factory=lambda: PassageBuilder(escape_markdown))
    at: int = 0
    links: list[int] = field(default_factory=list)

    def read(self, tokens: Sequence[Any]) -> None:
        """Add the tokens to the builder. Raises _PositionError if a token cannot be located."""
        inside_address = False
        for token in tokens:
            if token.markup == "autolink" and token.type in ("link_open", "link_close"):
                inside_address = token.type == "link_open"
                if inside_address:
                    end = self._end()
                    self.builder.add_code(self.content[self.at + 1 : end - 1], self._advance(end))
            elif not inside_address:
                self._read(token)
        if self.content[self.at :].strip():
            raise _PositionError

    def _read(self, token: Any) -> None:
        match token.type:
            case "text":
                self._add_text(token.content)
            case "text_special" if token.content == token.markup:  # a literal backslash
                self._add_text(token.content)
            case "text_special":
                self.builder.add_text(token.content, self._expect(token.markup))
            case "softbreak":
                self.builder.add_blank(self._line_end())
            case "hardbreak":
                self.builder.add_line_break(self._line_end())
            case "code_inline":
                self.builder.add_code(token.content, self._advance(self._end()))
            case "image":
                self.builder.add_mark("empty", self._image(token))
            case "link_open":
                self.links.append(self._end())
                self.builder.add_mark("open", (self._expect("["),), "link")
            case "link_close":
                self.builder.add_mark("close", (self._advance(self.links.pop()),), "link")
            case "html_inline":
                self._add_tag(self._expect(token.content))
            case _ if token.nesting and token.markup:
                raw = self._expect(token.markup)
                self.builder.add_mark(
                    "open" if token.nesting > 0 else "close", (raw,), token.markup, must_contain_text=True
                )
            case _:
                raise _PositionError

    def _advance(self, end: int) -> str:
        """Advance to a position and return the corresponding part of the document."""
        raw = self.text[self.positions[self.at] : self.positions[end]]
        self.at = end
        return raw

    def _expect(self, content: str) -> str:
        if not self.content.startswith(content, self.at):
            raise _PositionError
        return self._advance(self.at + len(content))

    def _end(self) -> int:
        if self.at not in self.ends:
            raise _PositionError
        return self.ends[self.at]

    def _line_end(self) -> str:
        result = _LINE_END.match(self.content, self.at)
        if result is None:
            raise _PositionError
        return self._advance(result.end())

    def _add_text(self, content: str) -> None:
        for character in content:
            raw = self._expect(character)
            if character in " \t":
                self.builder.add_blank(raw)
            else:
                self.builder.add_text(character, raw)

    def _add_tag(self, raw: str) -> None:
        tag = _TAG.match(raw)
        name = "" if tag is None else tag[2].lower()
        if tag is not None and name == "br":
            self.builder.add_line_break(raw)
        elif tag is None or raw.endswith("/>") or name in _VOID_TAGS:
            self.builder.add_mark("empty", (raw,))
        else:
            self.builder.add_mark("close" if tag[1] else "open", (raw,), name)

    def _image(self, token: Any) -> Raw:
        """Return an image, with a passage for its description if the description is plain text."""
        end, children = self._end(), token.children or ()
        description = "".join(child.content for child in children)
        plain = all(child.type == "text" for child in children) and description.strip() != ""
        if not plain or not self.content.startswith(f"![{description}]", self.at):
            return (self._advance(end),)
        parts: list[str | Passage] = [self._expect("![")]
        inner = _InlineReader(self.content, self.text, self.positions, self.ends, at=self.at)
        inner._add_text(description)
        inner.builder.finish(parts.append)
        self.at = inner.at
        return (*parts, self._advance(end))


def build_passage(
    content: str, text: str, positions: Sequence[int], parser: MarkdownParser, environment: Any
) -> Passage | None:
    """Return a block as a passage, or None if its markup cannot be located. Arguments as in `_InlineReader`."""
    tokens, ends = parser.tokens(content, environment)
    reader = _InlineReader(content, text, positions, ends)
    try:
        reader.read(tokens)
    except _PositionError:
        return None
    result: list[str | Passage] = []
    reader.builder.finish(result.append)
    passage = result[0] if result else None
    whole = text[positions[0] : positions[-1]]
    return passage if isinstance(passage, Passage) and raw_text(passage) == whole else None


_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")


def split_markdown(text: str) -> Iterator[str | Passage]:
    """Split a document into untranslated parts and a passage for each heading, paragraph and table cell.

    A block whose text cannot be located in the document remains untranslated, with a warning.
    """
    parser = MarkdownParser()
    front = _FRONT_MATTER.match(text)
    begin = 0 if front is None else front.end()
    lines = [match.span() for match in _LINE.finditer(text, begin) if match[0]]
    tokens, environment = parser.blocks(text[begin:].replace("\0", "\ufffd"))
    at, cell = 0, begin
    for token in tokens:
        if token.type != "inline" or not token.content:
            continue
        first, last = token.map
        positions = _positions(token.content, text, lines[first:last], cell)
        passage = None if positions is None else build_passage(token.content, text, positions, parser, environment)
        if positions is None or passage is None:
            line = text.count("\n", 0, lines[first][0]) + 1
            warn(f"line {line}: a block of Markdown remains untranslated, because its markup could not be located")
            continue
        yield text[at : positions[0]]
        yield passage
        at = cell = positions[-1]
    yield text[at:]


def _positions(content: str, text: str, lines: list[tuple[int, int]], begin: int) -> list[int] | None:
    """Return the positions in the document of the characters of a block's text and of its end, or None if unknown.

    markdown-it-py returns the text without the prefixes of its lines, and with the pipes of table cells unescaped.
    """
    result: list[int] = []
    end = begin
    parts = content.split("\n")
    if len(parts) > len(lines):
        return None
    for part, (start, stop) in zip(parts, lines, strict=False):
        stripped = part.strip(" \t")
        pattern = re.escape(stripped).replace(r"\|", r"\\?\|").replace("\ufffd", "[\ufffd\0]")
        match = re.compile(pattern).search(text, max(start, begin), stop)
        if match is None:
            return None
        if result:
            result.append(end)
        lead = len(part) - len(part.lstrip(" \t")) if stripped else 0
        result += [match.start()] * lead + [match.start() + each for each in _in_table(stripped, match[0])]
        tail = range(len(part) - lead - len(stripped))
        result += [min(match.end() + each, stop) for each in tail]
        end = min(match.end() + len(tail), stop)
    return [*result, end]


def _in_table(content: str, raw: str) -> list[int]:
    """Return the index in `raw` of each character of `content`. In `raw`, pipes of table cells may be escaped."""
    result, index = [], 0
    for character in content:
        result.append(index)
        index += 2 if character == "|" and raw[index : index + 2] == "\\|" else 1
    return result
