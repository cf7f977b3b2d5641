"""`Format`: parses and writes documents of one format; `ParsedDocument`: a document as a sequence of parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.documents.languages import UNKNOWN, Languages
from dragoman.documents.passage import Passage

Content = TypeVar("Content", str, bytes)
"""The content of a document: text, or bytes for a binary format."""

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class ParsedDocument(Generic[Content]):
    """A parsed document.

    parts: the untranslated (str) and translatable parts in order. write: returns the document with the given texts, one
    per part.
    """

    parts: Sequence[str | Passage]
    write: Callable[[Sequence[str]], Content]


class Format(Protocol[Content]):
    """A document format. `Content` is the type of its documents."""

    def parse(self, content: Content, languages: Languages = UNKNOWN) -> ParsedDocument[Content]:
        """Parse a document. languages: the languages of the document and of its translation.

        Raises ConfigError for content of the wrong type, and DataError for a document that cannot be parsed.
        """
        ...

    def decode(self, data: bytes, origin: str, on_error: str) -> Content:
        """Convert the bytes of a file. origin: the name of the file, for messages; on_error: `stop` or `replace`.

        Raises DataError for bytes that are not in this format.
        """
        ...

    def encode(self, content: Content) -> bytes:
        """Convert a document to the bytes of a file."""
        ...


class TextFormat:
    """A format whose documents are UTF-8 text. A byte order mark is kept."""

    def __init__(self, parse_text: Callable[[str, Languages], ParsedDocument[str]]) -> None:
        """parse_text: parses valid Unicode without a byte order mark."""
        self._parse_text = parse_text

    def parse(self, content: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
        """See `Format.parse`."""
        if not isinstance(content, str):
            raise ConfigError("this format is text: pass the document as str, or pass the format of the bytes")
        for number, line in enumerate(content.split("\n"), 1):
            if has_broken_utf8(line):
                raise DataError(
                    f"the document, line {number}: broken UTF-8. Convert it first, or repair it with --on-error replace"
                )
        mark = content[: content.startswith(_BYTE_ORDER_MARK)]
        inner = self._parse_text(content[len(mark) :], languages)
        return ParsedDocument(inner.parts, lambda texts: mark + inner.write(texts))

    def decode(self, data: bytes, origin: str, on_error: str) -> str:
        """See `Format.decode`."""
        try:
            return data.decode("utf-8", "strict" if on_error == "stop" else "replace")
        except UnicodeDecodeError as error:
            number = data.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{origin}, line {number}: broken UTF-8. Convert the text first, or read broken bytes as U+FFFD: "
                "--on-error replace"
            ) from None

    def encode(self, content: str) -> bytes:
        """See `Format.encode`."""
        return content.encode()


class BilingualFormat(TextFormat):
    """A text format whose files contain texts and their translations, such as gettext catalogues."""

    def __init__(self, parse_texts: Callable[[str, Languages, str | None], ParsedDocument[str]]) -> None:
        """parse_texts: parses a file. Its last argument is the same file with translations into a third language."""
        super().__init__(lambda text, languages: parse_texts(text, languages, None))
        self._parse_texts = parse_texts

    def parse_pivot(self, content: str, pivot: str, languages: Languages) -> ParsedDocument[str]:
        """Parse a document like `parse`, but with the translations in `pivot` in place of the texts to translate.

        pivot: what `parse(content, languages)` wrote, with translations into another language.
        """
        mark = content[: content.startswith(_BYTE_ORDER_MARK)]
        inner = self._parse_texts(content[len(mark) :], languages, pivot[len(mark) :])
        return ParsedDocument(inner.parts, lambda texts: mark + inner.write(texts))


def parse_pivot(
    format: Format[Content], content: Content, pivot: Content, languages: Languages
) -> ParsedDocument[Content]:
    """Parse the translation of a document into a third language, to translate it further.

    content: the original document, in which formats with texts and translations write the final translations.
    """
    if isinstance(format, BilingualFormat) and isinstance(content, str) and isinstance(pivot, str):
        return format.parse_pivot(content, pivot, languages)
    return format.parse(pivot, languages)


def concatenation_format(parts_of: Callable[[str], Iterable[str | Passage]]) -> TextFormat:
    """Return a text format whose documents are the concatenation of their parts. parts_of: splits a document."""
    return TextFormat(lambda text, _: ParsedDocument(list(parts_of(text)), "".join))
