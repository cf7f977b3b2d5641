"""`Format`: how documents of one kind are read and written; `Opened`: one of them, as parts that can be translated."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.corpora.lines import has_broken_utf8
from dragoman.documents.passage import Passage

Content = TypeVar("Content", str, bytes)
"""What a document is in Python: text, or the bytes of its file where these are no text."""

_MARK = "\ufeff"


@dataclass(frozen=True)
class Opened(Generic[Content]):
    """parts: what stays and what is translated, in order; written: the document, of a text for each of the parts."""

    parts: Sequence[str | Passage]
    written: Callable[[Sequence[str]], Content]


class Format(ABC, Generic[Content]):
    """Of documents that are `Content`."""

    @abstractmethod
    def opened(self, content: Content) -> Opened[Content]:
        """Raises ConfigError for content of the wrong type, DataError for what cannot be read."""

    @abstractmethod
    def decoded(self, data: bytes, origin: str, on_error: str) -> Content:
        """What a file's bytes are. origin: its name; on_error: `stop` or `replace`. Raises DataError."""

    @abstractmethod
    def encoded(self, content: Content) -> bytes:
        """The bytes of a file."""


class TextFormat(Format[str]):
    """Documents that are text. A byte order mark stays where it is."""

    @abstractmethod
    def opened_text(self, text: str) -> Opened[str]:
        """The same of Unicode without a byte order mark."""

    def opened(self, content: str) -> Opened[str]:
        if not isinstance(content, str):
            raise ConfigError("this format is text: give the document as str, or its own format with the bytes")
        for number, line in enumerate(content.split("\n"), 1):
            if has_broken_utf8(line):
                raise DataError(
                    f"the document, line {number}: broken UTF-8. Convert it first, or mend it by --on-error replace"
                )
        mark = content[: content.startswith(_MARK)]
        inner = self.opened_text(content[len(mark) :])
        return Opened(inner.parts, lambda texts: mark + inner.written(texts))

    def decoded(self, data: bytes, origin: str, on_error: str) -> str:
        try:
            return data.decode("utf-8", "strict" if on_error == "stop" else "replace")
        except UnicodeDecodeError as error:
            number = data.count(b"\n", 0, error.start) + 1
            raise DataError(
                f"{origin}, line {number}: broken UTF-8. Convert the text first, or read what is broken as U+FFFD: "
                "--on-error replace"
            ) from None

    def encoded(self, content: str) -> bytes:
        return content.encode()


class PartsFormat(TextFormat):
    """Of documents that are their parts, one behind the other."""

    def __init__(self, parts_of: Callable[[str], Iterable[str | Passage]]) -> None:
        """parts_of: a text as what stays and what is translated, in order; joined, that is the text."""
        self._parts_of = parts_of

    def opened_text(self, text: str) -> Opened[str]:
        return Opened(list(self._parts_of(text)), "".join)
