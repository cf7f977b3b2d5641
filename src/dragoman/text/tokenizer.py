"""`Tokenizer`: text to subword ids and back, exactly."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Library

from dragoman.base.errors import DataError, ModelError
from dragoman.base.files import atomic_write
from dragoman.text.bpe import SMALLEST_SIZE
from dragoman.text.dropout import MergeTable
from dragoman.text.pieces import byte_values, display
from dragoman.text.special import SPECIAL_SYMBOLS


class Tokenizer:
    """A trained subword model. `decode(encode(text)) == text` for every Unicode text.

    Ids never contain special symbols: `encode` cannot produce them, whatever the text says, and `decode` skips them.
    """

    def __init__(self, library: Library, dropout: float = 0.0) -> None:
        """library: as `train_bpe` gives it. dropout: the rate of `resample`, in [0, 1)."""
        self._library = library
        self._model: dict[str, Any] = json.loads(library.to_str())["model"]
        self._symbols = [symbol for symbol, _ in sorted(self._model["vocab"].items(), key=lambda item: item[1])]
        self._merges: MergeTable | None = None
        self._bytes: list[bytes] | None = None
        self.dropout = dropout

    @property
    def size(self) -> int:
        """Symbols in the vocabulary, the special ones included."""
        return len(self._symbols)

    @property
    def fingerprint(self) -> str:
        """A digest of everything that decides how text is split (dropout does not)."""
        return hashlib.sha256(self._library.to_str().encode()).hexdigest()

    def with_dropout(self, dropout: float) -> "Tokenizer":
        """The same tokenizer with another rate for `resample`."""
        return Tokenizer(self._library, dropout)

    def encode(self, text: str) -> list[int]:
        """The ids of one text, without special symbols. Raises DataError if the text holds lone surrogates."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, on all cores."""
        try:
            encodings = self._library.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError as error:
            raise DataError(_not_unicode(texts)) from error
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; special symbols are skipped, bytes that are no whole character become U+FFFD."""
        ordinary = [int(number) for number in ids if number >= len(SPECIAL_SYMBOLS)]
        text: str = self._library.decode(ordinary, skip_special_tokens=False)
        return text

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The text of each id sequence."""
        return [self.decode(ids) for ids in batch]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """One readable string an id, in subword-nmt's style: `Ni@@`, `ki@@`, `tin`, `.`; half characters as <E2>."""
        if self._bytes is None:
            values = byte_values()
            ordinary = self._symbols[len(SPECIAL_SYMBOLS) :]
            self._bytes = [bytes(values[letter] for letter in symbol) for symbol in ordinary]
        shown: list[str] = []
        run: list[bytes] = []
        for number in ids:
            if number < len(SPECIAL_SYMBOLS):
                shown.extend(display(run))
                shown.append(SPECIAL_SYMBOLS[number])
                run = []
            else:
                run.append(self._bytes[number - len(SPECIAL_SYMBOLS)])
        return shown + display(run)

    def resample(self, ids: Iterable[int], rng: np.random.Generator, dropout: float | None = None) -> list[int]:
        """Other ids for the same text, by BPE-dropout at `dropout` (default: this tokenizer's own rate).

        `rng` decides everything; ids must be those of a whole text.
        """
        if self._merges is None:
            merges = [(left, right) for left, right in self._model["merges"]]
            self._merges = MergeTable(self._model["vocab"], merges)
        text = self.decode(ids)
        if not text:
            return []
        words = self._library.pre_tokenizer.pre_tokenize_str(" " + text)
        rate = self.dropout if dropout is None else dropout
        return self._merges.segment([word for word, _ in words], rate, rng)

    def save(self, path: Path) -> None:
        """Write one JSON file, in the library's format."""
        atomic_write(Path(path), self._library.to_str(pretty=True))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a file that `save` wrote. Raises ModelError when it is missing, damaged or not one of ours."""
        path = Path(path)
        try:
            document = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"Cannot read the tokenizer {path}: {error}. Is this a whole model folder?") from error
        try:
            library = Library.from_str(document)
            tokenizer = cls(library)
        except Exception as error:  # the library raises bare Exception; a missing key means another kind of file
            raise ModelError(f"The tokenizer {path} is damaged ({error}); restore it from a copy.") from error
        tokenizer._check(path)
        return tokenizer

    def _check(self, path: Path) -> None:
        vocabulary = self._model["vocab"]
        dense = sorted(vocabulary.values()) == list(range(len(vocabulary)))
        specials = tuple(self._symbols[: len(SPECIAL_SYMBOLS)]) == SPECIAL_SYMBOLS
        letters = set(byte_values()) <= set(vocabulary)
        if self._model.get("type") != "BPE" or not dense or not specials or not letters or self.size < SMALLEST_SIZE:
            raise ModelError(
                f"{path} is not a dragoman tokenizer: it needs a byte-level BPE whose ids 0–3 are {SPECIAL_SYMBOLS}."
            )


def _not_unicode(texts: Sequence[str]) -> str:
    for place, text in enumerate(texts):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            return (
                f"Text {place + 1} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character "
                f"{error.start + 1}, which is no Unicode text; read it with errors='replace'."
            )
    return "A text to tokenise is not a string."
