"""`Format`: parses and writes documents of one format; `ParsedDocument`: a document as a sequence of parts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dragoman.addons.documents.formats.encoding import (
    UTF8,
    TextEncoding,
    marked_encoding,
    named_encoding,
    unmarked_encoding,
)
from dragoman.addons.documents.languages import UNKNOWN, Languages
from dragoman.addons.documents.passage import Passage
from dragoman.addons.documents.sentences import Sentence
from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.data.files.lines import has_broken_utf8
from dragoman.statistical.alignment.links import Alignment

Content = TypeVar("Content", str, bytes)
"""The content of a document: text, or bytes for a binary format."""

_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class ParsedDocument(Generic[Content]):
    """A parsed document.

    parts: the untranslated (str) and translatable parts in order. write: returns the document with the given texts, one
    per part. write_sentences: returns the document with the given translations of sentences, for a document whose
    passages lack their original form, because another process has it.
    """

    parts: Sequence[str | Passage]
    write: Callable[[Sequence[str]], Content]
    write_sentences: Callable[[Sequence[Sentence], Sequence[str], Sequence[Alignment]], Content] | None = None


@dataclass(frozen=True)
class DecodedFile(Generic[Content]):
    """The content of a file. encode: converts a translation of the content to the bytes of a file."""

    content: Content
    encode: Callable[[Content], bytes]


class Format(Protocol[Content]):
    """A document format. `Content` is the type of its documents.

    takes_encoding: whether users can name the encoding of a file; the files of other formats declare it.
    """

    takes_encoding: bool

    def parse(self, content: Content, languages: Languages = UNKNOWN) -> ParsedDocument[Content]:
        """Parse a document. languages: the languages of the document and of its translation.

        Raises ConfigError for content of the wrong type, and DataError for a document that cannot be parsed.
        """
        ...

    def decode(
        self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None
    ) -> DecodedFile[Content]:
        """Convert the bytes of a file.

        origin: the name of the file, for messages; on_error: `stop` or `replace`; encoding: the encoding of the text,
        by default what the file shows. Raises DataError for bytes that are not in this format, and ConfigError for an
        unknown encoding, or one for a format whose files declare theirs.
        """
        ...


class TextFormat:
    """A format whose documents are text. A byte order mark and the encoding are kept."""

    takes_encoding = True

    def __init__(self, parse_text: Callable[[str, Languages], ParsedDocument[str]]) -> None:
        """parse_text: parses valid Unicode without a byte order mark."""
        self._parse_text = parse_text

    def find_encoding(self, data: bytes) -> TextEncoding:
        """Return the encoding of a file without a byte order mark. UTF-8 is the default."""
        return unmarked_encoding(data) or UTF8

    def encode_in(self, text: str, encoding: TextEncoding) -> bytes:
        """Encode a translation in the encoding of its source, or in UTF-8, with a warning, if letters are missing."""
        try:
            return encoding.encode(text)
        except UnicodeEncodeError as error:
            character = text[error.start]
            warn(f"the translation is written in UTF-8, because {encoding.name} has no {character!r}")
            return text.encode()

    def parse(self, content: str, languages: Languages = UNKNOWN) -> ParsedDocument[str]:
        """See `Format.parse`."""
        if not isinstance(content, str):
            raise ConfigError("this format is text: pass the document as str, or pass the format of the bytes")
        for number, line in enumerate(content.split("\n"), 1):
            if has_broken_utf8(line):
                raise DataError(
                    f"the document, line {number}: broken UTF-8 (lone surrogates): replace them with U+FFFD"
                )
        mark = content[: content.startswith(_BYTE_ORDER_MARK)]
        inner = self._parse_text(content[len(mark) :], languages)
        return ParsedDocument(inner.parts, lambda texts: mark + inner.write(texts))

    def decode(self, data: bytes, origin: str, on_error: str = "stop", encoding: str | None = None) -> DecodedFile[str]:
        """See `Format.decode`. A byte order mark counts more than the name of an encoding."""
        named = None if encoding is None else named_encoding(encoding)
        found = marked_encoding(data) or named or self.find_encoding(data)
        text = found.decode(data, origin, on_error)
        return DecodedFile(text, lambda translation: self.encode_in(translation, found))


class BilingualFormat(TextFormat):
    """A text format whose files contain texts and their translations, such as gettext catalogues.

    Its files declare their encoding.
    """

    takes_encoding = False

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
    # the first translation has already replaced the names of the source language
    return format.parse(pivot, Languages(languages.target, languages.target))


def concatenation_format(parts_of: Callable[[str], Iterable[str | Passage]]) -> TextFormat:
    """Return a text format whose documents are the concatenation of their parts. parts_of: splits a document."""
    return TextFormat(lambda text, _: ParsedDocument(list(parts_of(text)), "".join))


def reject_encoding(encoding: str | None, files: str) -> None:
    """Raise ConfigError if the encoding is named for files that declare it. files: what they are, for the message."""
    if encoding is not None:
        raise ConfigError(f"{files} declare their encoding themselves: omit the encoding '{encoding}'")
