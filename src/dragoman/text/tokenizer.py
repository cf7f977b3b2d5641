"""`Tokenizer`: the base class of all vocabulary kinds, which convert text to ids and back."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from tokenizers.pre_tokenizers import Split

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.base.files import atomic_write
from dragoman.text.normalization import NormalisedText, Normalization, normalise
from dragoman.text.pieces import display
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK, InlineText, is_inline, symbol


class Tokenizer(ABC):
    """A learned vocabulary: ids 0–3 are the special symbols, the last ids are tags, the others represent text.

    `encode` never produces special symbols or tags from a text, except UNK for parts that the vocabulary cannot
    represent. If the tokenizer is `lossless`, `decode(encode(text)) == normalise(text, normalization)` for every
    Unicode text.
    """

    kind: ClassVar[str]
    lossless: ClassVar[bool] = False
    normalises: ClassVar[bool] = False
    """True if the kind has its own normalisation, so that `normalization` is always none."""
    added_space: ClassVar[Literal["first", "last"] | None] = "first"
    """The word of a text, first or last, to which encoding adds a space. None if encoding adds no space."""

    @property
    def phrase_space(self) -> Literal["first", "last"] | None:
        """Whether the ids of a phrase inside a text contain the space before it or after it; None for neither."""
        return self.added_space

    joint: bool = False
    """True if the tokenizer of the other language has the same vocabulary but splits differently."""
    normalization: Normalization = "none"
    """The Unicode normalisation of a text before it is split."""
    dropout: float = 0.0
    tags: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    """Tags that precede every text, such as the first symbol of BART's texts. `encode` adds them."""
    prefix: str = ""
    """Words that precede every text, such as the description of the task of a T5 model. `encode` adds them and a space,
    after the tags of `start`."""

    def __init__(self, symbols: Sequence[str], surfaces: Sequence[bytes]) -> None:
        """symbols: names of the entries. surfaces: the UTF-8 bytes of each entry, empty for special symbols.

        The surface of a word includes the preceding space. A space is added before the first word and removed by
        decoding; see `added_space`.
        """
        self._symbols = list(symbols)
        self._surfaces = list(surfaces)

    @property
    def size(self) -> int:
        """Vocabulary size, including special symbols and tags."""
        return len(self._symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the entries, in the order of their ids."""
        return tuple(self._symbols)

    @property
    def _first_tag(self) -> int:
        return len(self._symbols) - len(self.tags)

    def with_tags(self, tags: Sequence[str]) -> Self:
        """Return a copy of the tokenizer in which these tags, in order, have the last ids."""
        tagged = copy(self)
        tagged.tags = tuple(dict.fromkeys(tags))
        tagged._symbols = [*self._symbols[: self._first_tag], *map(symbol, tagged.tags)]
        tagged._surfaces = [*self._surfaces[: self._first_tag], *(b"" for _ in tagged.tags)]
        return tagged

    def with_start(self, tags: Sequence[str]) -> Self:
        """Return a copy of the tokenizer in which these tags precede every text.

        Raises ConfigError for an unknown tag.
        """
        if not tags:
            return self
        self.tag_ids(tags)
        starting = copy(self)
        starting.start = tuple(tags)
        return starting

    def with_prefix(self, prefix: str) -> Self:
        """Return a copy of the tokenizer in which these words precede every text. A blank prefix adds nothing."""
        if prefix.strip() == self.prefix:
            return self
        other = copy(self)
        other.prefix = prefix.strip()
        return other

    def shares_vocabulary(self, other: "Tokenizer") -> bool:
        """Return whether both are copies of one tokenizer with the same tags."""
        return self._symbols is other._symbols

    def with_normalization(self, form: Normalization) -> Self:
        """Return a copy of the tokenizer with this normalisation, or self if the kind has its own."""
        if self.normalises or form == self.normalization:
            return self
        other = copy(self)
        other.normalization = form
        return other

    @property
    def marks(self) -> Mapping[str, int]:
        """The ids of the entries of an imported vocabulary that serve as tags, such as <extra_id_0>, by tag.

        They mark gaps in the texts on which the imported model was trained.
        """
        return {}

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """Return the id of each tag. Raises ConfigError for an unknown tag."""
        for tag in tags:
            if tag not in self.tags:
                listed = [each for each in self.tags if not is_inline(each)]
                known = f"its tags are {', '.join(listed)}" if listed else "it has no tags"
                raise ConfigError(
                    f"the vocabulary has no tag {tag!r}; {known}. A vocabulary contains the tags of text.tags and of "
                    "the corpora from which it was learned"
                )
        return [self._first_tag + self.tags.index(tag) for tag in tags]

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines how text is divided into tokens, except for dropout."""
        return hashlib.sha256(self.document().encode()).hexdigest()

    @property
    def start_ids(self) -> list[int]:
        """The ids of the tags that precede every text."""
        return self.tag_ids(self.start)

    def encode(self, text: str) -> list[int]:
        """Encode a text, without BOS and EOS. Raises DataError if it contains lone surrogates."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of texts, each of which is normalised first and preceded by the tags `start` and the prefix."""
        ids = self._encode(self._normalise(self._prefixed(texts)))
        return [[*self.start_ids, *each] for each in ids] if self.start else ids

    def encode_phrase(self, text: str) -> list[int]:
        """Encode words that follow a space, or precede one if `phrase_space` is last."""
        return self._encode(self._normalise([text]))[0]

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode a list of normalised texts."""

    def _normalise(self, texts: Sequence[str]) -> Sequence[str]:
        if self.normalization == "none":
            return texts
        return [normalise(text, self.normalization) if isinstance(text, str) else text for text in texts]

    def _prefixed(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the texts with the prefix before each of them."""
        if not self.prefix:
            return texts
        return [f"{self.prefix} {text}" if text and isinstance(text, str) else text or self.prefix for text in texts]

    def _count_prefix(self) -> int:
        """Return the number of ids of the prefix."""
        return len(self._encode(self._normalise([self.prefix]))[0]) if self.prefix else 0

    def encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode texts that continue other texts.

        If a text is divided before a space between two words, the concatenated ids of its parts equal the ids of the
        whole text.
        """
        return self._encode_continuation(self._normalise(texts))

    def _encode_continuation(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode normalised texts that continue other texts."""
        return self._encode(texts)

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
        """Decode ids. Special symbols and tags are skipped, and bytes of incomplete characters become U+FFFD.

        unknown: replacements for the UNKs among `ids`, in order, each including its space as in `words`.
        """
        replacements = iter(unknown)
        parts = [
            next(replacements, "").encode()
            if number == UNK
            else self._surfaces[int(number)]  # other special symbols have no surface
            for number in ids
        ]
        return self._remove_added_space(b"".join(parts).decode("utf-8", "replace"))

    def _remove_added_space(self, text: str) -> str:
        if self.added_space is None:
            return text
        return text.removeprefix(" ") if self.added_space == "first" else text.removesuffix(" ")

    def surface(self, number: int) -> bytes:
        """Return the UTF-8 bytes of an id, which may be part of a character; empty for special symbols and tags."""
        return self._surfaces[number]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """Decode several id sequences."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return a readable string per id, as in subword-nmt (`Ni@@`, `ki@@`, `tin`, `.`), with stray bytes as <E2>."""
        shown: list[str] = []
        run: list[bytes] = []
        for number in ids:
            if number < len(SPECIAL_SYMBOLS) or number >= self._first_tag:
                shown.extend(display(run, self._splitter()))
                shown.append(self._symbols[number])
                run = []
            else:
                run.append(self._surfaces[number])
        return shown + display(run, self._splitter())

    def _splitter(self) -> Split | None:
        """Return the splitter into words; None for `pieces.WORDS`."""
        return None

    def words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the word index of each id of `encode(text)`, and the words of the normalised text with their spaces.

        A word is the unit that is replaced by one UNK. In a character vocabulary, it is a single character. Each tag of
        `start` and each id of the prefix is a blank word.
        """
        (whole,), count = self._prefixed([text]), self._count_prefix()
        indices, words = self._words(normalise(whole, self.normalization))
        first = (indices[count] if count < len(indices) else len(words)) if count else 0
        shift = len(self.start) + count
        own = [index - first + shift for index in indices[count:]]
        return [*range(shift), *own], [*([""] * shift), *words[first:]]

    @abstractmethod
    def _words(self, text: str) -> tuple[list[int], list[str]]:
        """Return the word index of each id of a normalised text, and its words."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of the word of each id of `encode(text)`, in characters and without spaces.

        The positions are those in `text`, which may differ from its normalised form. Words that consist of spaces have
        empty spans, and so do all pieces of a character except the first, the tags of `start` and the prefix.
        """
        (whole,), count = self._prefixed([text]), self._count_prefix()
        removed = len(whole) - len(text)
        own = [(max(0, start - removed), max(0, end - removed)) for start, end in self._spans(whole)[count:]]
        return [*((0, 0) for _ in range(len(self.start) + count)), *own]

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans as in `spans`, for a text without tags and prefix."""
        normalised = NormalisedText.of(text, self.normalization)
        indices, words = self._words(normalised.text)
        visible = [position for position, character in enumerate(normalised.text) if not character.isspace()]
        spans, done = [], 0
        for word in words:
            length = sum(not character.isspace() for character in word)
            span = (visible[done], visible[done + length - 1] + 1) if length else (0, 0)
            spans.append(normalised.span_in_original(*span) if length else span)
            done += length
        return [spans[index] for index in indices]

    def whole_words(self) -> list[str | None]:
        """Return the whole word that each id represents; None for parts of words and special symbols.

        Letters and digits are a whole word only with a preceding space. Other characters are a whole word even without
        one.
        """
        return [_whole_word(surface) for surface in self._surfaces]

    def with_dropout(self, dropout: float) -> "Tokenizer":
        """Return the tokenizer with this rate for `resample`. Only byte-level BPE supports rates above 0."""
        if dropout:
            raise ValueError(f"a vocabulary of kind {self.kind} does not support resampling")
        return self

    def resample(self, ids: Iterable[int], rng: np.random.Generator, dropout: float | None = None) -> list[int]:
        """Resample the ids of a text. Kinds that do not support resampling return them unchanged."""
        return list(ids)

    def document(self) -> str:
        """Return the JSON document that `load_tokenizer` reads."""
        text = self._document()
        further: dict[str, Any] = {}
        if self.tags:
            further["tags"] = self.tags
        if self.normalization != "none":
            further["normalization"] = self.normalization
        if self.start:
            further["start"] = self.start
        if self.prefix:
            further["prefix"] = self.prefix
        return json.dumps({**further, **json.loads(text)}, ensure_ascii=False, indent=1) if further else text

    @abstractmethod
    def _document(self) -> str:
        """Return the JSON document without tags, prefix and normalisation, in the form that `read` expects."""

    @classmethod
    @abstractmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document without tags, prefix and normalisation.

        path: file of the document, for messages. Raises ModelError if the document is invalid.
        """

    def save(self, path: Path) -> None:
        """Write the tokenizer to a JSON file."""
        atomic_write(Path(path), self.document())

    def _check(self, path: Path, needs: str, fits: bool = True) -> None:
        """Raise ModelError unless `fits` is true and the special symbols come first."""
        if not fits or tuple(self._symbols[: len(SPECIAL_SYMBOLS)]) != SPECIAL_SYMBOLS:
            raise ModelError(
                f"{path} is not a dragoman tokenizer: expected {needs} whose ids 0–3 are {SPECIAL_SYMBOLS}."
            )


def check_unicode(texts: Sequence[str]) -> None:
    """Raise DataError if a text contains a lone surrogate. The message states the text and the position."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"Text {number} contains a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start + 1}, which is not valid Unicode. Read the text with errors='replace'."
            ) from error


def _whole_word(surface: bytes) -> str | None:
    try:
        text = surface.decode("utf-8")
    except UnicodeDecodeError:
        return None
    word = text.removeprefix(" ")
    starts_word = text != word or not any(character.isalnum() for character in word)
    return word if word.strip() and starts_word else None
