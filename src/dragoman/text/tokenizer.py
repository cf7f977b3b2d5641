"""`Tokenizer`: text to ids and back, whatever the entries of the vocabulary are."""

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
    """A learned vocabulary: ids 0–3 are the special symbols, the last ids are tags, each other stands for some text.

    `encode` finds no special symbol and no tag in a text, whatever the text says; it gives UNK for what the vocabulary
    cannot write, unless it is `lossless`: then `decode(encode(text)) == text` for every Unicode text.
    """

    kind: ClassVar[str]
    lossless: ClassVar[bool] = False
    added_space: ClassVar[Literal["first", "last"] | None] = "first"
    """Where the surfaces of a whole text have a blank that the text does not have."""
    joint: bool = False
    """Whether the other language's tokenizer, which splits otherwise, has the same entries at the same ids."""
    dropout: float = 0.0
    tags: tuple[str, ...] = ()

    def __init__(self, symbols: Sequence[str], surfaces: Sequence[bytes]) -> None:
        """symbols: an entry's name in the vocabulary; surfaces: the UTF-8 that it stands for, empty for special ones.

        In a text's surfaces each word has the blank that stands before it, and so has the first; decoding takes this
        `added_space` off again.
        """
        self._symbols = list(symbols)
        self._surfaces = list(surfaces)

    @property
    def size(self) -> int:
        """Symbols in the vocabulary, the special ones and the tags included."""
        return len(self._symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The name of each entry in the vocabulary, by id."""
        return tuple(self._symbols)

    @property
    def _first_tag(self) -> int:
        return len(self._symbols) - len(self.tags)

    def with_tags(self, tags: Sequence[str]) -> Self:
        """The same tokenizer with these tags, which take the ids after all others, in their order."""
        tagged = copy(self)
        tagged.tags = tuple(dict.fromkeys(tags))
        tagged._symbols = [*self._symbols[: self._first_tag], *map(symbol, tagged.tags)]
        tagged._surfaces = [*self._surfaces[: self._first_tag], *(b"" for _ in tagged.tags)]
        return tagged

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """The id of each tag. Raises ConfigError for one that this vocabulary does not have."""
        for tag in tags:
            if tag not in self.tags:
                named = [each for each in self.tags if not is_inline(each)]
                known = f"known are {', '.join(named)}" if named else "it has none"
                raise ConfigError(
                    f"the vocabulary has no tag {tag!r}; {known}. A vocabulary has the tags of text.tags and of the "
                    "corpora that it was trained on"
                )
        return [self._first_tag + self.tags.index(tag) for tag in tags]

    @property
    def fingerprint(self) -> str:
        """A digest of everything that decides how text is split (dropout does not)."""
        return hashlib.sha256(self.document().encode()).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without beginning and end. Raises DataError if the text holds lone surrogates."""
        return self.encode_batch([text])[0]

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""

    def encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts that go on where others ended.

        Of a text that is divided before a blank between two words, the ids of both parts one after another are those of
        the whole.
        """
        return self.encode_batch(texts)

    def encode_inlined(self, texts: Sequence[InlineText]) -> list[list[int]]:
        """The ids of texts with inline symbols among their words. Raises ConfigError for a symbol it does not have."""
        ids = self.encode_batch([text.parts[0] for text in texts])
        if not any(text.symbols for text in texts):
            return ids
        others = iter(self.encode_continuation(list(chain.from_iterable(text.parts[1:] for text in texts))))
        return [
            [*first, *chain.from_iterable([number, *next(others)] for number in self.tag_ids(text.symbols))]
            for text, first in zip(texts, ids, strict=True)
        ]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The text of `ids`; special symbols and tags are skipped, bytes that are no whole character become U+FFFD.

        unknown: what stands for the unknowns among `ids`, in their order, each with its blank as `words` gives it.
        """
        stand_ins = iter(unknown)
        parts = [
            next(stand_ins, "").encode() if number == UNK else self._surfaces[int(number)]  # no other special has one
            for number in ids
        ]
        return self._without_added_space(b"".join(parts).decode("utf-8", "replace"))

    def _without_added_space(self, text: str) -> str:
        if self.added_space is None:
            return text
        return text.removeprefix(" ") if self.added_space == "first" else text.removesuffix(" ")

    def surface(self, number: int) -> bytes:
        """The UTF-8 that an id stands for, perhaps a part of a character; empty for special symbols and tags."""
        return self._surfaces[number]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The text of each id sequence."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """One readable string an id, in subword-nmt's style: `Ni@@`, `ki@@`, `tin`, `.`; half characters as <E2>."""
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
        """For each id of `encode(text)` the place of its word, and the words as the text has them, with their blank.

        A word is what one unknown can stand for: in a vocabulary of characters it is a single one.
        """

    def spans(self, text: str) -> list[tuple[int, int]]:
        """For each id of `encode(text)` where in the text its word stands, (from, to) in characters, without blanks.

        Where a word is nothing but blanks, or the second piece of one character, both numbers are the same.
        """
        places, words = self.words(text)
        solid = [place for place, character in enumerate(text) if not character.isspace()]
        spans, begun = [], 0
        for word in words:
            inked = sum(not character.isspace() for character in word)
            spans.append((solid[begun], solid[begun + inked - 1] + 1) if inked else (0, 0))
            begun += inked
        return [spans[place] for place in places]

    def whole_words(self) -> list[str | None]:
        """For each id the word that it stands for in a list of words; None for parts of words and special symbols.

        Letters and digits count as a whole word only with the blank before them, signs also without it.
        """
        return [_whole(surface) for surface in self._surfaces]

    def with_dropout(self, dropout: float) -> "Tokenizer":
        """The same tokenizer with another rate for `resample`. Only byte-level BPE has one that is not 0."""
        if dropout:
            raise ValueError(f"a vocabulary of kind {self.kind} does not split a text in several ways")
        return self

    def resample(self, ids: Iterable[int], rng: np.random.Generator, dropout: float | None = None) -> list[int]:
        """Other ids for the same text, where the kind knows any; here the same."""
        return list(ids)

    def document(self) -> str:
        """The JSON that `load_tokenizer` makes the same tokenizer of."""
        text = self._document()
        if not self.tags:
            return text
        return json.dumps({"tags": self.tags, **json.loads(text)}, ensure_ascii=False, indent=1)

    @abstractmethod
    def _document(self) -> str:
        """The JSON without tags, as `read` takes it."""

    @classmethod
    @abstractmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """The tokenizer of a parsed document without tags; path: of its file, for messages.

        Raises ModelError where it is none.
        """

    def save(self, path: Path) -> None:
        """Write one JSON file."""
        atomic_write(Path(path), self.document())

    def _check(self, path: Path, needs: str, fits: bool = True) -> None:
        """Raises ModelError unless it `fits` and the special symbols come first."""
        if not fits or tuple(self._symbols[: len(SPECIAL_SYMBOLS)]) != SPECIAL_SYMBOLS:
            raise ModelError(
                f"{path} is not a dragoman tokenizer: it needs {needs} whose ids 0–3 are {SPECIAL_SYMBOLS}."
            )


def check_unicode(texts: Sequence[str]) -> None:
    """Raises DataError that names the first text with a lone surrogate and the place in it."""
    for place, text in enumerate(texts):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"Text {place + 1} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start + 1}, which is no Unicode text; read it with errors='replace'."
            ) from error


def _whole(surface: bytes) -> str | None:
    try:
        text = surface.decode("utf-8")
    except UnicodeDecodeError:
        return None
    word = text.removeprefix(" ")
    starts_word = text != word or not any(character.isalnum() for character in word)
    return word if word.strip() and starts_word else None
