"""Character vocabularies."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import Field
from tokenizers import Regex
from tokenizers import Tokenizer as Library
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from dragoman.text.pieces import readable
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer, check_unicode
from dragoman.text.vocabularies.config import VocabularyConfig
from dragoman.text.vocabularies.hugging_face import HuggingFaceTokenizer, pipeline


class CharacterTokenizer(HuggingFaceTokenizer):
    """Assigns an id to each Unicode code point, including spaces.

    Texts of known characters are encoded without loss.
    """

    kind = "character"
    added_space = None
    model = "WordLevel"
    needs: ClassVar[str] = "a list of characters"

    def _add_space(self, text: str) -> str:
        return text

    def _splitter(self) -> Split:
        return _each_character()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return each character, with spaces as ␣ and control characters as <09>."""
        return [self._readable(int(number)) for number in ids]

    def _readable(self, number: int) -> str:
        surface = self._surfaces[number]
        return readable(surface) if surface else self._symbols[number]

    def whole_words(self) -> list[str | None]:
        """Return the characters themselves; None for whitespace."""
        texts = [surface.decode() for surface in self._surfaces]
        return [text if text.strip() else None for text in texts]


class CharacterConfig(VocabularyConfig):
    """Characters (Chung et al. 2016; Cherry et al. 2018): the most frequent Unicode code points of the corpus.

    Texts have about five times as many tokens as with subwords. Adjust `data.cleaning.max_tokens` and the batch size
    accordingly.
    """

    tokenizer: ClassVar[type[Tokenizer]] = CharacterTokenizer
    kind: Literal["character"] = "character"
    size: int | None = Field(
        default=None,
        gt=len(SPECIAL_SYMBOLS),
        description="Maximum vocabulary size, including the 4 special symbols; null: all characters of the corpus "
        "that occur at least `min_frequency` times.",
    )
    min_frequency: int = Field(
        default=2,
        ge=1,
        description="Minimum number of occurrences of a character in the corpus. Rarer characters are unknown.",
    )

    def learn(self, texts: Iterable[str], divide_unspaced: bool = True) -> CharacterTokenizer:
        """Learn the most frequent characters. Ties are broken by code point."""
        counts: Counter[str] = Counter()
        for text in texts:
            check_unicode([text])
            counts.update(text)
        frequent = [character for character, count in counts.items() if count >= self.min_frequency]
        frequent.sort(key=lambda character: (-counts[character], character))
        limit = None if self.size is None else self.size - len(SPECIAL_SYMBOLS)
        return CharacterTokenizer(_library([*SPECIAL_SYMBOLS, *frequent[:limit]]))


def _library(symbols: Sequence[str]) -> Library:
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    return pipeline(WordLevel(vocabulary, unk_token=SPECIAL_SYMBOLS[UNK]), _each_character(), add_space=False)


def _each_character() -> Split:
    return Split(Regex(r"[\s\S]"), "isolated")
