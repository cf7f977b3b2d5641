"""GPT-2's vocabulary: byte-level BPE with GPT-2's division into words, for imported and for new models."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.pre_tokenizers import Sequence as PreTokenizerSequence
from tokenizers.trainers import BpeTrainer

from dragoman.base.errors import ModelError
from dragoman.text.pieces import words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.bpe import SMALLEST_SIZE, BytePairTokenizer
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, default_size
from dragoman.text.vocabularies.hugging_face import pipeline, train

GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's pattern of a word: an English contraction, or letters, digits or other characters after at most one space."""

_UNUSED = re.compile(r"<unused[0-9]+>")


class GPT2Tokenizer(BytePairTokenizer):
    """Byte-level BPE on GPT-2's words: `decode(encode(text)) == text` for every Unicode text, and no id is ever UNK.

    In contrast to the kind `bpe`, no space is added before a text, so that the first word differs from the same word
    inside a text.
    """

    kind = "gpt2"
    added_space = None

    def __init__(
        self,
        library: Library,
        dropout: float = 0.0,
        original_ids: Sequence[int | None] | None = None,
        original_symbols: Sequence[str | None] = (),
    ) -> None:
        """original_ids: for an imported vocabulary, the original ids of the special symbols and the first tags, in the
        order of their ids in this tokenizer; None for a symbol that the original vocabulary does not have.
        original_symbols: the original names of the same symbols. Both are empty if the vocabulary was not imported.
        """
        super().__init__(library, dropout)
        self.original_ids = None if original_ids is None else tuple(original_ids)
        self.original_symbols = tuple(original_symbols)

    @property
    def merges(self) -> list[tuple[str, str]]:
        """The pairs of symbols that are merged, in the order in which they were learned."""
        return [(left, right) for left, right in json.loads(self._library.to_str())["model"]["merges"]]

    @property
    def fingerprint(self) -> str:
        """A digest of the file of the tokenizer."""
        return Tokenizer.fingerprint.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def phrase_space(self) -> Literal["first"]:
        """See `Tokenizer.phrase_space`: a phrase contains the space before it."""
        return "first"

    def encode_phrase(self, text: str) -> list[int]:
        """See `Tokenizer.encode_phrase`."""
        return super().encode_phrase(" " + text)

    def _surface(self, symbol: str) -> bytes:
        """Return the bytes of a symbol; none for rows that an imported model does not use."""
        return b"" if _UNUSED.fullmatch(symbol) else super()._surface(symbol)

    def _add_space(self, text: str) -> str:
        return text

    def _document(self) -> str:
        document = {"kind": self.kind, "original_ids": self.original_ids, "original_symbols": self.original_symbols}
        return json.dumps({**document, **json.loads(self._library.to_str())}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, document: dict[str, Any], path: Path) -> Self:
        """Create a tokenizer from a parsed document."""
        document = dict(document)
        ids, symbols = document.pop("original_ids", None), document.pop("original_symbols", [])
        tokenizer = super().read(document, path)
        if ids is not None:
            known = [number for number in ids if number is not None] if isinstance(ids, list) else []
            is_valid = (
                isinstance(symbols, list)
                and len(symbols) == len(ids) >= len(SPECIAL_SYMBOLS)
                and all(type(number) is int and number >= 0 for number in known)
                and len(set(known)) == len(known)
                and all((number is None) == (symbol is None) for number, symbol in zip(ids, symbols, strict=True))
            )
            if not is_valid:
                raise ModelError(f"The tokenizer {path} is damaged (original_ids). Restore it from a copy.")
            tokenizer.original_ids, tokenizer.original_symbols = tuple(ids), tuple(symbols)
        return tokenizer


class GPT2BPEConfig(VocabularyConfig):
    """Byte-level BPE on GPT-2's words (Radford et al. 2019, section 2.2), which are divided at spaces and between
    letters, digits and other characters. Imported GPT-2 and BART models have such a vocabulary.
    """

    tokenizer: ClassVar[type[Tokenizer]] = GPT2Tokenizer
    kind: Literal["gpt2"] = "gpt2"
    size: int | None = Field(
        default=None,
        ge=SMALLEST_SIZE,
        description="Vocabulary size, including the 4 special symbols and the 256 bytes; null: the default of bpe. A "
        "small corpus may yield fewer entries.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Minimum number of occurrences in the corpus for a pair to be merged."
    )

    def with_size(self, pairs: int) -> "GPT2BPEConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> GPT2Tokenizer:
        """Learn merges from `texts`. The file of the tokenizer depends only on the texts and their order."""
        trainer = BpeTrainer(
            vocab_size=self.size or LARGEST_SIZE,
            min_frequency=self.min_frequency,
            special_tokens=list(SPECIAL_SYMBOLS),
            initial_alphabet=sorted(ByteLevel.alphabet()),
            show_progress=False,
        )
        return GPT2Tokenizer(train(_library(BPE()), trainer, texts))


def gpt2_tokenizer(
    symbols: Sequence[str],
    merges: Sequence[tuple[str, str]],
    original_ids: Sequence[int | None],
    original_symbols: Sequence[str | None],
) -> GPT2Tokenizer:
    """Return the tokenizer of an imported vocabulary.

    symbols: the special symbols, followed by all entries, in GPT-2's byte alphabet. original_ids, original_symbols: as
    in `GPT2Tokenizer`. Raises ModelError for a merge whose symbols are not in the vocabulary.
    """
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    try:
        model = BPE(ids, list(merges))
    except Exception as error:  # the library raises a bare Exception
        raise ModelError(f"the merges do not fit the vocabulary: {error}") from None
    return GPT2Tokenizer(_library(model), 0.0, original_ids, original_symbols)


def _library(model: BPE) -> Library:
    splitter = PreTokenizerSequence([words_splitter(GPT2_WORDS), ByteLevel(add_prefix_space=False, use_regex=False)])
    library = pipeline(model, splitter, add_space=False)
    library.decoder = ByteLevelDecoder()
    return library
