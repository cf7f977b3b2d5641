"""Parses HTML pages. Text and the attributes that people read are translated, and everything else is preserved."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from dragoman.addons.documents.formats.encoding import TextEncoding
from dragoman.addons.documents.formats.format import ParsedDocument, TextFormat
from dragoman.addons.documents.formats.html.attributes import Attributes, WriteLanguage, write_target
from dragoman.addons.documents.formats.html.elements import (
    BLOCK_TAGS,
    COPIED_TAGS,
    NAVIGATION_TAGS,
    SVG_TEXT_TAGS,
    UNTRANSLATED_TAGS,
    VOID_TAGS,
    is_separate_piece,
)
from dragoman.addons.documents.formats.html.encoding import encode_page, page_encoding
from dragoman.addons.documents.formats.html.run import Run
from dragoman.addons.documents.formats.html.text import add_text, escape_text, unescape
from dragoman.addons.documents.formats.html.tokenizer import Token, tokenize
from dragoman.addons.documents.formats.html.tree import element_ends
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage, Raw, raw_text
from dragoman.text.languages.codes import is_same_language

_MAX_DEPTH = 20
"""The maximum nesting of translated elements in untranslated elements. Deeper elements are not translated."""


def parse_html(page: str, languages: Languages = UNKNOWN, is_xml: bool = False) -> ParsedDocument[str]:
    """Parse a page. If no text changes, the page is written as it was, including its `lang` attributes.

    is_xml: as in `tokenize`.
    """
    parts = list(split_html(page, languages, is_xml=is_xml))
    unchanged = "".join(part if isinstance(part, str) else raw_text(part) for part in parts)

    def write(texts: Sequence[str]) -> str:
        written = "".join(texts)
        return page if written == unchanged else written

    return ParsedDocument(parts, write)


class CodeRange(NamedTuple):
    """A part of a page's text that is not translated.

    kind: `code` is copied like a word; `mark` stays next to its word; `statement` separates the texts around it.
    """

    begin: int
    end: int
    kind: Literal["code", "mark", "statement"]


def split_html(
    page: str,
    languages: Languages = UNKNOWN,
    code: Sequence[CodeRange] = (),
    write_language: WriteLanguage = write_target,
    is_xml: bool = False,
) -> Sequence[str | Passage]:
    """Split a page into untranslated parts and passages. The tags of block elements separate passages.

    code: the parts of its text that are code, in order, for pages within documents of another format. write_language:
    as in `Attributes.parts`. is_xml: as in `tokenize`.
    """
    return _Splitter(page, languages, False, code, write_language, is_xml=is_xml).split()


class HtmlFormat(TextFormat):
    """HTML pages in the encodings in which browsers read them."""

    def __init__(self, is_xml: bool = False) -> None:
        """is_xml: whether all pages are XML (XHTML), and not only those that begin like it."""
        super().__init__(lambda page, languages: parse_html(page, languages, is_xml))

    def find_encoding(self, data: bytes) -> TextEncoding:
        """See `TextFormat.find_encoding`."""
        return page_encoding(data)

    def encode_in(self, text: str, encoding: TextEncoding) -> bytes:
        """Encode a page. Characters that the encoding does not have are written as references."""
        return encode_page(text, encoding)


class _Splitter:
    """Splits one page."""

    def __init__(
        self,
        page: str,
        languages: Languages,
        is_embedded: bool,
        code: Sequence[CodeRange] = (),
        write_language: WriteLanguage = write_target,
        *,
        is_xml: bool = False,
    ) -> None:
        """is_embedded: whether the page is in an attribute of another page."""
        self._page, self._languages, self._code = page, languages, code
        self._write_language = write_language
        self._split_embedded = None if is_embedded else self._split_inner_page
        self._tokens = list(tokenize(page, is_xml))
        self._ends = element_ends(self._tokens)
        self._attributes: dict[int, Attributes] = {}
        # the tags at which translation starts again within untranslated elements, by cause, and SVG's texts
        self._translated = self._indices(lambda index: self._attributes_of(index).translate is True)
        self._in_source_language = self._indices(
            lambda index: (
                self._attributes_of(index).translate is True or self._is_source(self._attributes_of(index).language)
            )
        )
        self._svg_texts = self._indices(lambda index: self._tokens[index].name in SVG_TEXT_TAGS)

    def _split_inner_page(self, page: str) -> Iterator[str | Passage]:
        yield from _Splitter(page, self._languages, True, (), self._write_language).split()

    def split(self) -> list[str | Passage]:
        """Return the parts of the page."""
        return self._parts(0, len(self._tokens), 0)

    def _parts(self, begin: int, end: int, depth: int) -> list[str | Passage]:
        """Return the parts of the tokens `begin` to `end`. depth: the number of untranslated elements around them."""
        parts: list[str | Passage] = []
        run = Run(escape_text)
        menu_end, index = 0, begin
        while index < end:
            token = self._tokens[index]
            raw = self._raw(index, index + 1)
            resumptions = self._resumptions(index) if token.kind == "start" else None
            if token.name in BLOCK_TAGS or token.kind == "statement":
                run.finish(parts.append, index < menu_end)
            if resumptions is not None:
                element_end = self._ends[index]
                kept = self._kept(index, element_end, resumptions, depth)
                if token.name in BLOCK_TAGS:
                    parts += kept
                else:
                    self._add_kept(run, index, element_end, kept)
                index = element_end
                continue
            index += 1
            if token.kind in ("start", "end"):
                tag = self._tag(index - 1) if token.kind == "start" else (raw,)
                if token.kind == "start" and self._is_menu(index - 1):
                    menu_end = max(menu_end, self._ends.get(index - 1, 0))
                if token.name == "br":
                    run.add_line_break(raw)
                elif token.name in BLOCK_TAGS:
                    parts += tag
                elif token.kind == "end":
                    run.add_mark("close" if token.name not in VOID_TAGS else "empty", tag, token.name)
                elif index - 1 not in self._ends:
                    run.add_mark("empty", tag, token.name)
                else:
                    is_piece = is_separate_piece(token.name, self._attributes_of(index - 1).values)
                    run.add_mark("open", tag, token.name, is_piece)
            elif token.kind == "text":
                self._add_text(run, token, parts, index < menu_end)
            elif token.kind == "expression" and raw.startswith("{{"):
                run.add_code(raw, raw)
            elif token.kind == "statement":
                parts.append(raw)
            else:
                run.add_mark("empty", (raw,))
        run.finish(parts.append, index <= menu_end)
        return parts

    def _add_text(self, run: Run, token: Token, parts: list[str | Passage], is_menu: bool) -> None:
        """Add text with the code in it to the run, or to the parts if it separates texts."""
        position = token.begin
        first = bisect_left(self._code, position, key=lambda each: each.begin)
        while first < len(self._code) and (code := self._code[first]).begin < token.end:
            end = min(code.end, token.end)
            add_text(run, self._page[position : code.begin])
            raw = self._page[code.begin : end]
            if code.kind == "statement":
                run.finish(parts.append, is_menu)
                parts.append(raw)
            elif code.kind == "code":
                run.add_code(raw, raw)
            else:
                run.add_mark("empty", (raw,))
            position, first = end, first + 1
        add_text(run, self._page[position : token.end])

    def _resumptions(self, index: int) -> list[int] | None:
        """Return None if the element at a start tag is translated, else the tags in it at which translation resumes."""
        token, attributes = self._tokens[index], self._attributes_of(index)
        if index not in self._ends or attributes.translate is True:
            return None
        if attributes.translate is False:
            return self._translated
        if token.name not in ("html", "body") and attributes.is_foreign(self._languages):
            return self._in_source_language
        if token.name == "svg":
            return self._svg_texts
        return [] if token.name in UNTRANSLATED_TAGS else None

    def _kept(self, begin: int, end: int, resumptions: list[int], depth: int) -> list[str | Passage]:
        """Return an untranslated element, with the passages of the elements in it at which translation resumes."""
        is_excluded = resumptions is self._translated or resumptions is self._in_source_language
        parts = [] if is_excluded else list(self._tag(begin))
        position = begin if is_excluded else begin + 1
        found = bisect_left(resumptions, begin + 1)
        while found < len(resumptions) and resumptions[found] < end and depth < _MAX_DEPTH:
            index = resumptions[found]
            parts.append(self._raw(position, index))
            position = self._ends.get(index, index + 1)
            parts += self._parts(index, position, depth + 1)
            found = bisect_left(resumptions, position, found)
        return [*parts, self._raw(position, end)]

    def _add_kept(self, run: Run, begin: int, end: int, kept: list[str | Passage]) -> None:
        """Add an untranslated element to the text around it: as code to copy, or as a mark if it has no words."""
        is_word = self._tokens[begin].name in COPIED_TAGS or self._attributes_of(begin).translate is False
        is_word |= self._attributes_of(begin).language is not None and self._tokens[begin].name != "svg"
        if is_word and all(isinstance(part, str) for part in kept):
            text = "".join(self._raw(index, index + 1) for index in range(begin, end) if self._is_text(index))
            run.add_code(" ".join(unescape(text).split()), self._raw(begin, end))
        else:
            run.add_mark("empty", tuple(kept))

    def _tag(self, index: int) -> Raw:
        return self._attributes_of(index).parts(self._languages, self._split_embedded, self._write_language)

    def _raw(self, begin: int, end: int) -> str:
        return self._page[self._tokens[begin].begin : self._tokens[end - 1].end] if begin < end else ""

    def _is_text(self, index: int) -> bool:
        return self._tokens[index].kind == "text"

    def _is_menu(self, index: int) -> bool:
        role = self._attributes_of(index).values.get("role", "").lower()
        return self._tokens[index].name in NAVIGATION_TAGS or role in ("navigation", "menubar", "menu", "tablist")

    def _is_source(self, language: str | None) -> bool:
        return bool(language and self._languages.source and is_same_language(language, self._languages.source))

    def _attributes_of(self, index: int) -> Attributes:
        if index not in self._attributes:
            self._attributes[index] = Attributes(self._page, self._tokens[index])
        return self._attributes[index]

    def _indices(self, is_resumption: Callable[[int], bool]) -> list[int]:
        """Return the indices of the start tags with a property, in order."""
        return [index for index, token in enumerate(self._tokens) if token.kind == "start" and is_resumption(index)]
