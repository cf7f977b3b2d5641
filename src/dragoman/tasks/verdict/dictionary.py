"""`WordDictionary`: a word-by-word translator learned from sentence pairs, as a baseline and as a list of known words.

It is the method `dictionary` of statistical translation, held in memory.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import DataError
from dragoman.checkpoint.verdict import SeenWords
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.phrases.aligned_corpus import Sentences, train_lexicon
from dragoman.statistical.phrases.words import UNKNOWN_WORD, FoldedWords
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.word import WordConfig

_MAX_WORDS = 100
"""Pairs with more words on a side are skipped: they are rarely one sentence, and the cost grows with the square."""
_ITERATIONS = 10


class WordDictionary:
    """Replaces each word by its most probable translation by IBM model 1, and copies words that it does not know.

    pairs: number of sentence pairs from which it was learned.
    """

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], best: NDArray[np.int32], pairs: int) -> None:
        """tokenizers: of source and target. best: (source words,) the id of the best translation of each folded id."""
        self.pairs = pairs
        self._tokenizers, self._best = tokenizers, best
        self._folded = FoldedWords(tokenizers[0]), FoldedWords(tokenizers[1])

    @classmethod
    def learn(cls, pairs: Sequence[tuple[str, str]], threads: int | None = None) -> Self:
        """Learn from sentence pairs. Raises DataError without any, and NoLibraryError without a C compiler."""
        config = WordConfig(size=10_000_000, min_frequency=1)
        sides = [source for source, _ in pairs], [target for _, target in pairs]
        tokenizers = config.learn(sides[0]), config.learn(sides[1])
        ids = [tokenizer.encode_batch(side) for tokenizer, side in until_cancelled(zip(tokenizers, sides, strict=True))]
        rows = [row for row in range(len(pairs)) if all(0 < len(side[row]) <= _MAX_WORDS for side in ids)]
        if not rows:
            raise DataError(f"no training pair has 1 to {_MAX_WORDS} words on both sides")
        folded = FoldedWords(tokenizers[0])
        sentences = Sentences(
            [folded.of_ids(ids[0][row]) for row in rows],
            [ids[1][row] for row in rows],
            (tokenizers[0].size, tokenizers[1].size),
        )
        with Workers(threads) as workers:
            lexicon = train_lexicon(sentences, _ITERATIONS, workers)
        return cls(tokenizers, _best_translations(lexicon), len(rows))

    def translate(self, sources: Sequence[str]) -> list[str]:
        """Return the translation of each text, in the order of its words."""
        source, target = self._tokenizers
        translations = []
        for text, ids in zip(sources, source.encode_batch(sources), strict=True):
            folded, words = self._folded[0].of_text(text, ids)
            best = [UNK if word == UNKNOWN_WORD else int(self._best[word]) for word in folded]
            unknown = [word for word, translation in zip(words, best, strict=True) if translation == UNK]
            translations.append(target.decode(best, unknown))
        return translations

    def seen_words(self, side: int, texts: Sequence[str]) -> SeenWords:
        """Count the words of texts that occur in the corpus. side: 0 for the source, 1 for the target."""
        tokenizer, folded_words = self._tokenizers[side], self._folded[side]
        types: dict[str, bool] = {}
        words = seen = lines = 0
        for text, ids in zip(texts, tokenizer.encode_batch(texts), strict=True):
            folded, surfaces = folded_words.of_text(text, ids)
            known = {
                number: bool(folded[number] != UNKNOWN_WORD)
                for number, surface in enumerate(surfaces)
                if any(map(str.isalnum, surface))
            }
            types.update({surfaces[number].strip().casefold(): is_known for number, is_known in known.items()})
            words, seen, lines = words + len(known), seen + sum(known.values()), lines + all(known.values())
        return SeenWords(
            types=len(types),
            seen_types=sum(types.values()),
            words=words,
            seen_words=seen,
            lines=len(texts),
            seen_lines=lines,
        )


def _best_translations(lexicon: Lexicon) -> NDArray[np.int32]:
    """Return the target word with the highest t(target | source) for each source word; UNK for words without any."""
    words = np.repeat(np.arange(len(lexicon.row_starts) - 1), np.diff(lexicon.row_starts)) - 1  # −1 is the null word
    order = np.lexsort((-lexicon.probabilities[: len(words)], words))
    first = order[np.searchsorted(words, np.arange(len(lexicon.row_starts) - 2)).clip(max=max(0, len(words) - 1))]
    numbers = np.arange(len(lexicon.row_starts) - 2)
    return np.where(words[first] == numbers, lexicon.targets[first], UNK).astype(np.int32)
