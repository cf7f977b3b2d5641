"""WordPiece: words are split into their longest known pieces."""

import json
from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers import Regex
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Split
from tokenizers.trainers import WordPieceTrainer

from dragoman.text.pieces import WORDS
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.config import LARGEST_SIZE, VocabularyConfig, count_words, default_size, occurrences
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline, trained

CONTINUES = "##"
_BOUNDARIES = " ?#|" + WORDS.replace("[^", "[^#")


class WordPieceTokenizer(HuggingFaceTokenizer):
    """Pieces of words. A word with an unknown character, or with more than 100 characters, becomes one UNK."""

    kind = "wordpiece"
    model = "WordPiece"
    needs: ClassVar[str] = "a WordPiece model"

    def _surface(self, symbol: str) -> bytes:
        return symbol.removeprefix(CONTINUES).encode()

    def _splitter(self) -> Split:
        return _splitter()

    def whole_words(self) -> list[str | None]:
        """Like `Tokenizer.whole_words`; pieces that continue a word are never whole words."""
        found = super().whole_words()
        return [
            None if symbol.startswith(CONTINUES) else word for symbol, word in zip(self._symbols, found, strict=True)
        ]


class WordPieceConfig(VocabularyConfig):
    """WordPiece (Schuster & Nakajima 2012; Wu et al. 2016, section 4.1): greedy longest-match-first tokenisation.

    The pieces are learned by merging the most frequent pairs, as the library does, not by likelihood as in the papers.
    """

    tokenizer: ClassVar[type[Tokenizer]] = WordPieceTokenizer
    kind: Literal["wordpiece"] = "wordpiece"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS),
        description="Vocabulary size, including the 4 special symbols; null: as for bpe. The characters of the corpus "
        "are always included, twice, so the vocabulary may be larger.",
    )
    min_frequency: int = Field(
        default=2, ge=1, description="Minimum number of occurrences in the corpus for a pair to be merged."
    )

    def with_size(self, pairs: int) -> "WordPieceConfig":
        """Set the vocabulary size for a corpus of `pairs` sentence pairs, if none is given."""
        return self if self.size is not None else self.model_copy(update={"size": default_size(pairs)})

    def learn(self, texts: Iterable[str]) -> WordPieceTokenizer:
        """Learn pieces from `texts`. The same texts give the same tokenizer."""
        splitter = _splitter()
        words = count_words(texts, lambda text: (word for word, _ in splitter.pre_tokenize_str(" " + text)))
        letters = sorted({letter for word in words for letter in word})
        continuing = sorted({CONTINUES + letter for word in words for letter in word[1:]})
        trainer = WordPieceTrainer(
            vocab_size=self.size or LARGEST_SIZE,
            min_frequency=self.min_frequency,
            initial_alphabet=letters,
            # otherwise their numbering, which breaks ties between pairs, would not be deterministic
            special_tokens=[*SPECIAL_SYMBOLS, *continuing],
            continuing_subword_prefix=CONTINUES,
            show_progress=False,
        )
        library = pipeline(_model(), Split("\n", "removed"), add_space=False)
        learned = json.loads(trained(library, trainer, occurrences(words, "\n")).to_str())["model"]["vocab"]
        return WordPieceTokenizer(pipeline(_model(learned), splitter))


def _model(vocabulary: dict[str, int] | None = None) -> WordPiece:
    return WordPiece(vocabulary or {}, unk_token=SPECIAL_SYMBOLS[UNK], continuing_subword_prefix=CONTINUES)


def _splitter() -> Split:
    """Split into words, with each # separate, so that ## in a text is not mistaken for the prefix of continuations."""
    return Split(Regex(_BOUNDARIES), "isolated")
