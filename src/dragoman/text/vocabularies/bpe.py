"""Byte-level byte-pair encoding."""

import json
from collections.abc import Iterable, Sequence
from copy import copy
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.decoders import Sequence as DecoderSequence
from tokenizers.decoders import Strip
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.pre_tokenizers import Sequence as PreTokenizerSequence
from tokenizers.trainers import BpeTrainer

from dragoman.text.pieces import WORDS, byte_values, divided_words, words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.bpe_dropout import MergeTable
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, default_size
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline, train

SMALLEST_SIZE = len(SPECIAL_SYMBOLS) + 256
"""Number of special symbols and bytes, which are enough to represent any text."""

_BYTES = byte_values()


class BytePairTokenizer(HuggingFaceTokenizer):
    """Byte-level BPE: `decode(encode(text)) == text` for every Unicode text, and no id is ever UNK."""

    kind = "bpe"
    lossless = True
    model = "BPE"
    needs: ClassVar[str] = "a byte-level BPE"

    def __init__(self, library: Library, dropout: float = 0.0) -> None:
        """library: a tokenizer created by `BPEConfig.learn`. dropout: rate for `resample`, in [0, 1)."""
        super().__init__(library)
        self._merges: MergeTable | None = None
        self.dropout = dropout

    def _surface(self, symbol: str) -> bytes:
        return bytes(_BYTES[letter] for letter in symbol)

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines how text is divided into tokens, except for dropout."""
        tags = json.dumps(self.tags) if self.tags else ""
        normalization = "" if self.normalization == "none" else self.normalization
        return sha256((self._library.to_str() + tags + normalization + self.prefix).encode()).hexdigest()

    def with_dropout(self, dropout: float) -> "BytePairTokenizer":
        """Return a copy of the tokenizer with this rate for `resample`."""
        other = copy(self)
        other.dropout = dropout
        return other

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """Decode ids. Special symbols and tags are skipped, and bytes of incomplete characters become U+FFFD."""
        if unknown:
            return super().decode(ids, unknown)
        ordinary = [int(number) for number in ids if len(SPECIAL_SYMBOLS) <= number < self._first_tag]
        text: str = self._library.decode(ordinary, skip_special_tokens=False)
        return text

    def resample(self, ids: Iterable[int], rng: np.random.Generator, dropout: float | None = None) -> list[int]:
        """Resample the ids of a text by BPE-dropout. Tags and inline symbols are kept.

        ids: the ids of a whole text. dropout: dropout rate; None for the rate of the tokenizer. The result depends
        only on the arguments.
        """
        if self._merges is None:
            model: dict[str, Any] = json.loads(self._library.to_str())["model"]
            self._merges = MergeTable(model["vocab"], [(left, right) for left, right in model["merges"]])
        rate = self.dropout if dropout is None else dropout
        resampled: list[int] = []
        for is_tag, run in groupby(ids, lambda number: number >= self._first_tag):
            if is_tag:
                resampled += run
                continue
            text = b"".join(self._surfaces[number] for number in run).decode("utf-8", "replace")
            words = self._library.pre_tokenizer.pre_tokenize_str(text)
            resampled += self._merges.segment([word for word, _ in words], rate, rng)
        return resampled

    def _document(self) -> str:
        """Return the library's JSON document. Files of this kind, which was the first, do not contain a kind."""
        text: str = self._library.to_str(pretty=True)
        return text

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        tokenizer = super().read(document, path)
        tokenizer._check(path, cls.needs, set(_BYTES) <= set(tokenizer._symbols))
        return tokenizer


class BPEConfig(VocabularyConfig):
    """Byte-level byte-pair encoding (Sennrich et al. 2016; bytes as in Radford et al. 2019). Every text is encoded
    without loss.
    """

    tokenizer: ClassVar[type[Tokenizer]] = BytePairTokenizer
    kind: Literal["bpe"] = "bpe"
    size: int | None = Field(
        default=None,
        ge=SMALLEST_SIZE,
        description="Vocabulary size, including the 4 special symbols and the 256 bytes. null: 6,000 for corpora with "
        "fewer than 100,000 pairs, 16,000 with fewer than 1,000,000, and 32,000 for larger corpora. A small corpus may "
        "yield fewer entries. Source of the default: Sennrich & Zhang 2019 (small vocabularies for small corpora).",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Minimum number of occurrences in the corpus for a pair to be merged. Source: subword-nmt.",
    )
    dropout: float = Field(
        default=0.0,
        ge=0.0,
        lt=1.0,
        description="Probability that a merge is skipped when a training sentence is read (BPE-dropout, Provilkov et "
        "al. 2020, who use 0.1). It never affects how text is split for translation.",
    )

    @property
    def resampling(self) -> float:
        """The BPE-dropout rate."""
        return self.dropout

    def with_size(self, pairs: int) -> "BPEConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> BytePairTokenizer:
        """Learn merges from `texts`. Without a size, the default size for large corpora is used.

        The file of the tokenizer depends only on the texts and their order.

        Every text is prefixed with a space, so that a word is split in the same way at the start of a sentence and
        inside a sentence. Decoding removes exactly one space. There is no normalisation, so decoding restores the exact
        text.
        """
        pattern = divided_words() if divide_unspaced else WORDS
        byte_level = ByteLevel(add_prefix_space=False, use_regex=False)
        library = pipeline(BPE(), PreTokenizerSequence([words_splitter(pattern), byte_level]))
        library.decoder = DecoderSequence([ByteLevelDecoder(), Strip(" ", 1, 0)])
        trainer = BpeTrainer(
            vocab_size=self.size or LARGEST_SIZE,
            min_frequency=self.min_frequency,
            special_tokens=list(SPECIAL_SYMBOLS),
            initial_alphabet=sorted(ByteLevel.alphabet()),
            show_progress=False,
        )
        return BytePairTokenizer(train(library, trainer, texts), self.dropout)
