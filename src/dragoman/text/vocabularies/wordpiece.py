"""WordPiece: words are split into their longest known pieces."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordPieceTrainer

from dragoman.text.pieces import CHINESE_CHARACTER_OR_RUN, WORDS, divided_words, words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, count_words, default_size, occurrences
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline, train

CONTINUES = "##"
LONGEST_WORD = 100
"""Maximum number of characters of a word; a longer one becomes UNK."""


class WordPieceTokenizer(HuggingFaceTokenizer):
    """Splits words into pieces. A word with an unknown character, or with over 100 characters, becomes one UNK.

    Each Chinese character is a word, because rare characters are unknown.
    """

    kind = "wordpiece"
    model = "WordPiece"
    needs: ClassVar[str] = "a WordPiece model"

    def _surface(self, symbol: str) -> bytes:
        return symbol.removeprefix(CONTINUES).encode()

    def whole_words(self) -> list[str | None]:
        """Return the whole words as `Tokenizer.whole_words` does, but None for pieces that continue a word."""
        words = super().whole_words()
        return [
            None if symbol.startswith(CONTINUES) else word for symbol, word in zip(self._symbols, words, strict=True)
        ]


class WordPieceConfig(VocabularyConfig):
    """WordPiece (Schuster & Nakajima 2012; Wu et al. 2016, section 4.1): greedy longest-match-first tokenisation.

    The library learns pieces by merging the most frequent pairs, whereas the papers maximise the likelihood.
    """

    tokenizer: ClassVar[type[Tokenizer]] = WordPieceTokenizer
    kind: Literal["wordpiece"] = "wordpiece"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS),
        description="Vocabulary size, including the 4 special symbols; null: the default of bpe. Every character of "
        "the corpus is always included twice, so the vocabulary may be larger.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Minimum number of occurrences in the corpus for a pair to be merged."
    )

    def with_size(self, pairs: int) -> "WordPieceConfig":
        """Return the settings with a vocabulary size for `pairs` sentence pairs, unless a size is set."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> WordPieceTokenizer:
        """Learn pieces from `texts`. The tokenizer depends only on the texts."""
        splitter = _splitter(divided_words(CHINESE_CHARACTER_OR_RUN) if divide_unspaced else WORDS)
        words = count_words(texts, lambda text: (word for word, _ in splitter.pre_tokenize_str(" " + text)))
        learned = learn_pieces(words, self.size or LARGEST_SIZE, self.min_frequency)
        return WordPieceTokenizer(pipeline(piece_model(learned), splitter))


def learn_pieces(words: Counter[str], size: int, min_frequency: int) -> dict[str, int]:
    """Return the ids of the special symbols and of the pieces that the library learns from counted words.

    size: maximum number of entries, except that every character of the words is included twice.
    """
    letters = sorted({letter for word in words for letter in word})
    continuing = sorted({CONTINUES + letter for word in words for letter in word[1:]})
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        initial_alphabet=letters,
        # as special tokens, they have deterministic ids, which break ties between pairs
        special_tokens=[*SPECIAL_SYMBOLS, *continuing],
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    library = pipeline(piece_model(), Split("\n", "removed"), add_space=False)
    learned: dict[str, int] = json.loads(train(library, trainer, occurrences(words, "\n")).to_str())["model"]["vocab"]
    return learned


def piece_model(vocabulary: dict[str, int] | None = None, unknown: str = SPECIAL_SYMBOLS[UNK]) -> WordPiece:
    """Return the library's model with the ids of pieces by name. A word with an unknown character is one UNK.

    unknown: the name of UNK.
    """
    return WordPiece(
        vocabulary or {},
        unk_token=unknown,
        continuing_subword_prefix=CONTINUES,
        max_input_chars_per_word=LONGEST_WORD,
    )


def _splitter(words: str) -> Split:
    """Return a splitter into words and single # signs, so that ## in a text is not mistaken for the prefix `##`.

    words: the pattern of a word.
    """
    return words_splitter(" ?#|" + words.replace(r"[^\s\p{L}", r"[^#\s\p{L}"))
