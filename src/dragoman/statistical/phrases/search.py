"""`PhraseSearch`: translates sentences of word ids with a phrase table and a language model."""

import ctypes
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ResourceError
from dragoman.statistical.phrases import library
from dragoman.statistical.phrases.aligned_corpus import WordIds
from dragoman.statistical.phrases.phrase_table import PhraseTable


@dataclass(frozen=True)
class SearchLimits:
    """Limits of a search; 0 means no limit, except for `distortion`.

    stack: hypotheses per number of covered words. pops: hypotheses generated per number of covered words. options:
    translations per source phrase. distortion: maximum distance between consecutive phrases, in words.
    """

    stack: int = 200
    pops: int = 1000
    options: int = 20
    distortion: int = 6


class PhraseTranslation(NamedTuple):
    """A translation.

    words: target ids; −1 − i for a copy of source word i. score: the weighted sum of the features. features: (F,).
    phrases: (n, 3), the first source word, the end of the source words, and the number of target words of each phrase.
    """

    words: tuple[int, ...]
    score: float
    features: NDArray[np.float64]
    phrases: NDArray[np.int32]


class PhraseSearch:
    """Searches for the translations with the highest scores. Results do not depend on the number of threads."""

    def __init__(self, table: PhraseTable, language_model: library.LanguageModel, threads: int = 1) -> None:
        self._table, self._language_model, self._threads = table, language_model, threads
        self.feature_count = table.features.shape[1] + 4 + (0 if table.reordering is None else library.REORDERINGS)

    def translate(
        self, sentences: Sequence[WordIds], weights: NDArray[np.float64], limits: SearchLimits, nbest: int = 1
    ) -> Iterator[list[PhraseTranslation]]:
        """Yield up to `nbest` distinct translations of each sentence, in order, best first.

        weights: (F,) in the order language model, table features, words, phrases, distortion, reorderings. Raises
        ResourceError if memory is exhausted.
        """
        settings = library.SearchSettings.of(
            {"weights": np.asarray(weights, np.float64)},
            stack=limits.stack,
            pops=limits.pops,
            options=limits.options,
            distortion=limits.distortion,
            nbest=nbest,
        )

        def translate(sentence: WordIds) -> list[PhraseTranslation]:
            return self._translate(np.array(sentence, np.int32), settings)

        if self._threads == 1:
            yield from map(translate, until_cancelled(sentences))
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from until_cancelled(pool.map(translate, sentences))

    def _translate(self, source: NDArray[np.int32], settings: library.SearchSettings) -> list[PhraseTranslation]:
        compiled, found = library.phrase_library(), library.Translations()
        outcome = compiled.phrases_translate(
            ctypes.byref(self._table.native),
            ctypes.byref(self._language_model),
            ctypes.byref(settings),
            source.ctypes.data,
            len(source),
            ctypes.byref(found),
        )
        if outcome == library.NO_MEMORY:
            raise ResourceError("the search ran out of memory: use a smaller beam, or free memory")
        assert outcome == 0, "the settings limit the distortion and the state"
        try:
            return self._read(found)
        finally:
            compiled.phrases_free(ctypes.byref(found))

    def _read(self, found: library.Translations) -> list[PhraseTranslation]:
        if not found.count:
            return []
        words, phrases = (_array(found.word_starts, found.count + 1), _array(found.phrase_starts, found.count + 1))
        all_words, all_phrases = _array(found.words, words[-1]), _array(found.phrases, 3 * phrases[-1]).reshape(-1, 3)
        scores = _array(found.scores, found.count)
        features = _array(found.features, found.count * self.feature_count).reshape(found.count, -1)
        return [
            PhraseTranslation(
                tuple(all_words[words[n] : words[n + 1]].tolist()),
                float(scores[n]),
                features[n],
                all_phrases[phrases[n] : phrases[n + 1]],
            )
            for n in range(found.count)
        ]


def _array(pointer: Any, size: int) -> NDArray[Any]:
    """Return a copy of an array of the library."""
    if not size:
        return np.zeros(0, np.int32)
    return np.ctypeslib.as_array(pointer, (int(size),)).copy()
