"""Word vocabularies, in which all words that are not entries are unknown."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers.models import WordLevel
from tokenizers.trainers import WordLevelTrainer

from dragoman.text.pieces import CHARACTER, WORDS, divided_words, words_splitter
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.config import VocabularyConfig
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline, train


class WordTokenizer(HuggingFaceTokenizer):
    """Splits texts into words, each with its preceding space. Texts of known words are encoded without loss."""

    kind = "word"
    model = "WordLevel"
    needs: ClassVar[str] = "a list of words"


class WordConfig(VocabularyConfig):
    """Whole words (Bahdanau et al. 2015): the most frequent runs of letters, digits or other characters in the corpus.
    In scripts without spaces, such as Chinese and Thai, every letter is a word.

    A word with a preceding space and the same word without one (after a bracket, for example) are two entries, so that
    decoding restores the spaces. Case is kept. All other words become UNK; `search.unknown` controls their treatment in
    translations.
    """

    tokenizer: ClassVar[type[Tokenizer]] = WordTokenizer
    kind: Literal["word"] = "word"
    size: int = Field(
        default=30_000,
        gt=len(SPECIAL_SYMBOLS),
        description="Vocabulary size, including the 4 special symbols. Source: Bahdanau et al. 2015, section 4.2.",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Minimum number of occurrences of a word in the corpus. With 1, a small corpus may contain no "
        "unknown words, so that the model does not learn to handle them.",
    )

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> WordTokenizer:
        """Learn the most frequent words. Ties are broken alphabetically."""
        trainer = WordLevelTrainer(
            vocab_size=self.size,
            min_frequency=self.min_frequency,
            special_tokens=list(SPECIAL_SYMBOLS),
            show_progress=False,
        )
        splitter = words_splitter(divided_words(CHARACTER) if divide_unspaced else WORDS)
        library = pipeline(WordLevel(unk_token=SPECIAL_SYMBOLS[UNK]), splitter)
        return WordTokenizer(train(library, trainer, texts))
