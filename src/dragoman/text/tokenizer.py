"""`Tokenizer`: converts text to ids and back; the base class of all kinds of vocabularies."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.base.files import atomic_write
from dragoman.text.pieces import display
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK, InlineText, is_inline, symbol


class Tokenizer(ABC):
    """A learned vocabulary: ids 0–3 are the special symbols, the last ids are tags, the others represent text.

    `encode` never produces special symbols or tags from a text, except UNK for parts that the vocabulary cannot
    represent. If the tokenizer is `lossless`, `decode(encode(text)) == text` for every Unicode text.
    """

    kind: ClassVar[str]
    lossless: ClassVar[bool] = False
    added_space: ClassVar[Literal["first", "last"] | None] = "first"
    """Position at which the surfaces of a text contain a space that the text does not have."""
    joint: bool = False
    """Whether the tokenizer of the other language splits differently but has the same vocabulary."""
    dropout: float = 0.0
    tags: tuple[str, ...] = ()

    def __init__(self, symbols: Sequence[str], surfaces: Sequence[bytes]) -> None:
        """symbols: names of the entries; surfaces: the UTF-8 of each entry, empty for special symbols.

        Each word of a text includes the preceding space, even the first word; decoding removes this `added_space`.
        """
        self._symbols = list(symbols)
        self._surfaces = list(surfaces)

    @property
    def size(self) -> int:
        """Vocabulary size, including special symbols and tags."""
        return len(self._symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The name of each entry, by id."""
        return tuple(self._symbols)

    @property
    def _first_tag(self) -> int:
        return len(self._symbols) - len(self.tags)

    def with_tags(self, tags: Sequence[str]) -> Self:
        """The same tokenizer with these tags, in order, as the last ids."""
        tagged = copy(self)
        tagged.tags = tuple(dict.fromkeys(tags))
        tagged._symbols = [*self._symbols[: self._first_tag], *map(symbol, tagged.tags)]
        tagged._surfaces = [*self._surfaces[: self._first_tag], *(b"" for _ in tagged.tags)]
        return tagged

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """The id of each tag. Raises ConfigError for an unknown tag."""
        for tag in tags:
            if tag not in self.tags:
                named = [each for each in self.tags if not is_inline(each)]
                known = f"its tags are {', '.join(named)}" if named else "it has no tags"
                raise ConfigError(
                    f"the vocabulary has no tag {tag!r}; {known}. A vocabulary contains the tags of text.tags and of "
                    "the corpora that it was trained on"
                )
        return [self._first_tag + self.tags.index(tag) for tag in tags]

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines how text is split, without dropout."""
        return hashlib.sha256(self.document().encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Encode a text, without BOS and EOS. Raises DataError if it contains lone surrogates."""
        return self.encode_batch([text])[0]

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts."""

    def encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts that continue other texts.

        If a text is divided before a space between two words, the concatenated ids of both parts are those of the whole
        text.
        """
        return self.encode_batch(texts)

    def encode_inlined(self, texts: Sequence[InlineText]) -> list[list[int]]:
        """Encode texts with inline symbols. Raises ConfigError for a symbol that is not in the vocabulary."""
        ids = self.encode_batch([text.parts[0] for text in texts])
        if not any(text.symbols for text in texts):
            return ids
        others = iter(self.encode_continuation(list(chain.from_iterable(text.parts[1:] for text in texts))))
        return [
            [*first, *chain.from_iterable([number, *next(others)] for number in self.tag_ids(text.symbols))]
            for text, first in zip(texts, ids, strict=True)
        ]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Decode ids; special symbols and tags are skipped, bytes of incomplete characters become U+FFFD.

        unknown: replacements for the UNKs among `ids`, in order, each with its space as in `words`.
        """
        replacements = iter(unknown)
        parts = [
            next(replacements, "").encode()
            if number == UNK
            else self._surfaces[int(number)]  # other special symbols have no surface
            for number in ids
        ]
        return self._without_added_space(b"".join(parts).decode("utf-8", "replace"))

    def _without_added_space(self, text: str) -> str:
        if self.added_space is None:
            return text
        return text.removeprefix(" ") if self.added_space == "first" else text.removesuffix(" ")

    def surface(self, number: int) -> bytes:
        """The UTF-8 of an id, possibly part of a character; empty for special symbols and tags."""
        return self._surfaces[number]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decode several id sequences."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """One readable string per id, in the style of subword-nmt: `Ni@@`, `ki@@`, `tin`, `.`; stray bytes as <E2>."""
        shown: list[str] = []
        run: list[bytes] = []
        for number in ids:
            if number < len(SPECIAL_SYMBOLS) or number >= self._first_tag:
                shown.extend(display(run))
                shown.append(self._symbols[number])
                run = []
            else:
                run.append(self._surfaces[number])
        return shown + display(run)

    @abstractmethod
    def words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the index of the word for each id of `encode(text)`, and the words of the text with their spaces.

        A word is the unit that becomes one UNK; in a vocabulary of characters, it is a single character.
        """

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the span of the word for each id of `encode(text)`: (start, end) in characters, without spaces.

        Words that consist of spaces, and further pieces of a single character, have empty spans.
        """
        indices, words = self.words(text)
        visible = [position for position, character in enumerate(text) if not character.isspace()]
        spans, done = [], 0
        for word in words:
            length = sum(not character.isspace() for character in word)
            spans.append((visible[done], visible[done + length - 1] + 1) if length else (0, 0))
            done += length
        return [spans[index] for index in indices]

    def whole_words(self) -> list[str | None]:
        """Return the whole word that each id represents; None for parts of words and special symbols.

        Letters and digits count as a whole word only with the preceding space, other characters even without it.
        """
        return [_whole(surface) for surface in self._surfaces]

    def with_dropout(self, dropout: float) -> "Tokenizer":
        """The same tokenizer with another rate for `resample`. Only byte-level BPE supports rates above 0."""
        if dropout:
            raise ValueError(f"a vocabulary of kind {self.kind} does not support resampling")
        return self

    def resample(self, ids: Iterable[int], rng: np.random.Generator, dropout: float | None = None) -> list[int]:
        """Resample the ids of a text if the kind supports it; by default they are returned unchanged."""
        return list(ids)

    def document(self) -> str:
        """The JSON that `load_tokenizer` reads."""
        text = self._document()
        if not self.tags:
            return text
        return json.dumps({"tags": self.tags, **json.loads(text)}, ensure_ascii=False, indent=1)

    @abstractmethod
    def _document(self) -> str:
        """The JSON without tags, as `read` expects it."""

    @classmethod
    @abstractmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document without tags. path: its file, for messages.

        Raises ModelError if the document is invalid.
        """

    def save(self, path: Path) -> None:
        """Write one JSON file."""
        atomic_write(Path(path), self.document())

    def _check(self, path: Path, needs: str, fits: bool = True) -> None:
        """Raise ModelError unless `fits` is true and the special symbols come first."""
        if not fits or tuple(self._symbols[: len(SPECIAL_SYMBOLS)]) != SPECIAL_SYMBOLS:
            raise ModelError(
                f"{path} is not a dragoman tokenizer: it needs {needs} whose ids 0–3 are {SPECIAL_SYMBOLS}."
            )


def check_unicode(texts: Sequence[str]) -> None:
    """Raise DataError for the first text with a lone surrogate, with its position."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"Text {number} contains a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start + 1}, which is not valid Unicode; read it with errors='replace'."
            ) from error


def _whole(surface: bytes) -> str | None:
    try:
        text = surface.decode("utf-8")
    except UnicodeDecodeError:
        return None
    word = text.removeprefix(" ")
    starts_word = text != word or not any(character.isalnum() for character in word)
    return word if word.strip() and starts_word else None
