"""Blocks of HTML in Markdown documents. Their texts are translated like those of HTML pages."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from dragoman.addons.documents.formats.html.attributes import Attributes
from dragoman.addons.documents.formats.html.page import CodeRange, split_html
from dragoman.addons.documents.formats.html.text import add_text
from dragoman.addons.documents.formats.html.tokenizer import Token, tokenize
from dragoman.addons.documents.formats.html.tree import element_ends
from dragoman.addons.documents.formats.markdown.block import Block, Source
from dragoman.addons.documents.formats.markdown.writing import mark_anchors, mark_language, without_markers
from dragoman.addons.documents.languages import Languages
from dragoman.addons.documents.passage import Passage, raw_text

_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_KINDS: dict[str, Literal["code", "mark", "statement"]] = {
    "code": "code",
    "template": "code",
    "mark": "mark",
    "attached": "mark",
    "line": "statement",
}
_HEADING_TAG = re.compile(r"</?h[1-6](?![\w-])", re.IGNORECASE)


class HtmlHeading(NamedTuple):
    """A heading in a block of HTML. source: its tags and text; begin, end: the indices of its parts."""

    source: str
    begin: int
    end: int


@dataclass(frozen=True)
class HtmlBlock:
    """A block of HTML. parts: its untranslated parts and passages; headings: its headings in order."""

    parts: Sequence[str | Passage]
    headings: Sequence[HtmlHeading]


def split_html_block(block: Block, source: Source) -> HtmlBlock | None:
    """Split a block of HTML, or return None if its text cannot be located in the document."""
    page = "".join(
        character if character.isspace() else source.text[position]
        for character, position in zip(block.content, block.positions, strict=False)
    )
    code = list(_dialect_elements(block, source))
    parts = _SourceForm(block, source.text).parts(split_html(page, source.languages, code, mark_language, True))
    raw = "".join(part if isinstance(part, str) else raw_text(part) for part in parts)
    if without_markers(raw) != source.text[block.positions[0] : block.positions[-1]]:
        return None
    return HtmlBlock(parts, list(_headings(page, block, parts)))


def _dialect_elements(block: Block, source: Source) -> Iterator[CodeRange]:
    """Yield the elements of dialects in a block."""
    for index, position in enumerate(block.positions[:-1]):
        element = source.masked.elements.get(position)
        if element is not None and element.kind in _KINDS and block.positions[index + 1] > position:
            yield CodeRange(index, index + element.end - position, _KINDS[element.kind])


def untranslated_blocks(tokens: Sequence[Any], languages: Languages) -> frozenset[int]:
    """Return the indices of the tokens within elements that start and end in different blocks and are not translated.

    tokens: the tokens of the document's blocks. The elements are those with `translate="no"` or another language.
    """
    tags: list[tuple[int, Token, str]] = []
    for index, token in enumerate(tokens):
        if token.type == "html_block":
            tags += [
                (index, tag, token.content) for tag in tokenize(token.content, True) if tag.kind in ("start", "end")
            ]
    elements: list[tuple[int, int, bool]] = []
    for start, end in sorted(element_ends([tag for _, tag, _ in tags]).items()):
        (first, opening, page), (last, closing, _) = tags[start], tags[end - 1]
        if last > first and closing.kind == "end" and closing.name == opening.name:
            attributes = Attributes(page, opening)
            is_translated = attributes.translate
            if is_translated is None and languages.source and attributes.language:
                is_translated = not attributes.is_foreign(languages)
            if is_translated is not None:
                elements.append((first, last, is_translated))
    return frozenset(_untranslated(elements, len(tokens)))


def _untranslated(elements: Sequence[tuple[int, int, bool]], length: int) -> Iterator[int]:
    """Yield the indices below `length` whose innermost element is not translated.

    elements: nested ranges (first, last, whether translated), sorted by their first index. Their ends are outside.
    """
    around: list[tuple[int, bool]] = []
    following = 0
    for index in range(length):
        while around and around[-1][0] <= index:
            around.pop()
        while following < len(elements) and elements[following][0] < index:
            around += [elements[following][1:]] * (elements[following][1] > index)
            following += 1
        if around and not around[-1][1]:
            yield index


class _SourceForm:
    """Gives the parts of a page the form that they have in the document, where the lines of a block have prefixes."""

    def __init__(self, block: Block, text: str) -> None:
        self._positions, self._text, self._index = block.positions, text, 0

    def parts(self, parts: Sequence[str | Passage]) -> list[str | Passage]:
        """Return the parts, which must be in order, with their anchors marked.

        Neighbouring texts are joined, except at the tags of headings.
        """
        result: list[str | Passage] = []
        texts: list[str] = []
        for part in parts:
            if isinstance(part, Passage) or _HEADING_TAG.match(part):
                result += _joined(texts)
                texts = []
            if isinstance(part, Passage):
                result.append(self._passage(part))
            else:
                texts.append(self._form_of(part))
                if part.startswith("</") and _HEADING_TAG.match(part):
                    result += _joined(texts)
                    texts = []
        return result + _joined(texts)

    def _passage(self, passage: Passage) -> Passage:
        raws: list[str] = []
        marks = []
        for mark in passage.marks:
            raws += map(self._form_of, passage.raws[len(raws) : mark.position])
            marks.append(mark._replace(raw=tuple(self.parts(mark.raw))))
        raws += map(self._form_of, passage.raws[len(raws) :])
        return Passage(passage.texts, tuple(raws), tuple(marks), passage.code, passage.escape, passage.kept)

    def _form_of(self, raw: str) -> str:
        source = without_markers(raw)
        begin, self._index = self._index, self._index + len(source)
        if source != raw:  # a language
            return raw
        return self._text[self._positions[begin] : self._positions[self._index]]


def _joined(texts: Sequence[str]) -> list[str | Passage]:
    return [mark_anchors("".join(texts))] if texts else []


def _headings(page: str, block: Block, parts: Sequence[str | Passage]) -> Iterator[HtmlHeading]:
    starts = [block.positions[0]]
    for part in parts:
        starts.append(starts[-1] + len(without_markers(part if isinstance(part, str) else raw_text(part))))
    opening: Token | None = None
    for token in tokenize(page, True):
        if token.name not in _HEADINGS:
            continue
        if token.kind == "start":
            opening = token
        elif opening is not None:
            begin, end = block.positions[opening.begin], block.positions[token.end]
            first = bisect_right(starts, begin) - 1
            yield HtmlHeading(page[opening.begin : token.end], first, bisect_left(starts, end))
            opening = None


def heading_text(html: str) -> str:
    """Return the text of a heading without its tags."""
    texts: list[str] = []
    receiver = _TextReceiver(texts)
    for token in tokenize(html):
        if token.kind == "text":
            add_text(receiver, html[token.begin : token.end])
    return "".join(texts)


@dataclass
class _TextReceiver:
    texts: list[str]

    def add_text(self, text: str, raw: str) -> None:
        self.texts.append(text)

    def add_blank(self, raw: str) -> None:
        self.texts.append(" ")
