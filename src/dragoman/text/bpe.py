"""Byte-level byte-pair encoding: its settings, its word boundaries, and its training."""

import json
from collections.abc import Iterable
from typing import Literal

from pydantic import Field
from tokenizers import Regex
from tokenizers import Tokenizer as Library
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.decoders import Sequence as DecoderSequence
from tokenizers.decoders import Strip
from tokenizers.models import BPE
from tokenizers.normalizers import Prepend
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreTokenizerSequence
from tokenizers.trainers import BpeTrainer

from dragoman.base.config import Config
from dragoman.base.errors import DataError
from dragoman.text.special import SPECIAL_SYMBOLS

SMALLEST_SIZE = len(SPECIAL_SYMBOLS) + 256
"""The four special symbols and one symbol for each byte: enough to write any text."""

WORDS = (
    r" ?[\p{L}\p{M}\x{200C}\x{200D}]+"  # letters with their combining marks and joiners, one blank before them included
    r"| ?\p{N}+"
    r"| ?[^\s\p{L}\p{M}\p{N}\x{200C}\x{200D}]+"  # punctuation, symbols, emoji
    r"|\s+(?!\S)"  # blanks up to the last one, which belongs to the word after it
    r"|\s+"
)
"""No merge crosses these words. Letters and punctuation never share one, so no learned symbol can spell `</s>`."""


class BPEConfig(Config):
    """Byte-pair encoding over bytes (Sennrich et al. 2016; bytes as in Radford et al. 2019)."""

    kind: Literal["bpe"] = "bpe"
    size: int | None = Field(
        default=None,
        ge=SMALLEST_SIZE,
        description="Symbols in a vocabulary, the 4 special ones and the 256 bytes included; null: by the size of the "
        "corpus, 6,000 below 100,000 pairs, 16,000 below 1,000,000, else 32,000. A small corpus may yield fewer. "
        "Source of the default: Sennrich & Zhang 2019 (small vocabularies for small corpora).",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Occurrences in the corpus that a pair needs to be merged. Source: subword-nmt."
    )
    dropout: float = Field(
        default=0.0,
        ge=0.0,
        lt=1.0,
        description="Probability that a merge is skipped while training reads a sentence (BPE-dropout, Provilkov et "
        "al. 2020, who use 0.1). It never changes how text is split for translation.",
    )

    def sized(self, pairs: int) -> "BPEConfig":
        """The config with a size, chosen for a corpus of so many sentence pairs where none was given."""
        if self.size is not None:
            return self
        return self.model_copy(update={"size": next((size for most, size in _SIZES if pairs < most), _LARGEST_SIZE)})


_SIZES = (100_000, 6_000), (1_000_000, 16_000)
_LARGEST_SIZE = 32_000


def train_bpe(config: BPEConfig, texts: Iterable[str]) -> Library:
    """Learn merges from `texts`; without a size in `config`, those for a large corpus.

    The same texts in the same order give the same tokenizer, byte for byte.

    Every text gets one blank in front, so that a word looks the same at the start of a sentence and inside it; decoding
    takes exactly one off again. No normalisation, so decoding gives back the exact text.
    """
    library = Library(BPE())
    library.normalizer = Prepend(" ")
    library.pre_tokenizer = PreTokenizerSequence(
        [Split(Regex(WORDS), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    library.decoder = DecoderSequence([ByteLevelDecoder(), Strip(" ", 1, 0)])
    trainer = BpeTrainer(
        vocab_size=config.size or _LARGEST_SIZE,
        min_frequency=config.min_frequency,
        special_tokens=list(SPECIAL_SYMBOLS),
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    try:
        library.train_from_iterator(texts, trainer)
    except UnicodeEncodeError as error:
        raise DataError(
            f"A text to learn subwords from is no Unicode text ({error.reason}); clean the corpus."
        ) from error
    document = json.loads(library.to_str())
    document["added_tokens"] = []  # or the library would find `</s>` inside the user's text
    return Library.from_str(json.dumps(document, ensure_ascii=False))
