"""`StatisticalDecoder`: translates texts with a `StatisticalModel` and its tokenizers."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.models.kinds.statistical import StatisticalModel
from dragoman.statistical.ngrams.query import NgramQuery
from dragoman.statistical.phrases import library
from dragoman.statistical.phrases.phrase_table import PhraseTable
from dragoman.statistical.phrases.search import PhraseSearch, PhraseTranslation, SearchLimits
from dragoman.statistical.phrases.words import FoldedWords
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizers import Tokenizers

POPS_PER_HYPOTHESIS = 5
"""Number of hypotheses generated per hypothesis in a stack, as in Moses (1,000 for stacks of 200)."""


class Source(NamedTuple):
    """A text to translate. ids: folded ids. words: the words that they represent, with their spaces."""

    ids: NDArray[np.int32]
    words: list[str]


class Output(NamedTuple):
    """A translation: target ids, the source word of each UNK among them, the score, the features and the phrases."""

    ids: tuple[int, ...]
    unknown: tuple[str, ...]
    translation: PhraseTranslation


class StatisticalDecoder:
    """Translates encoded texts. The weights may be changed between calls."""

    def __init__(self, model: StatisticalModel, tokenizers: Tokenizers, threads: int = 1) -> None:
        """Raises NoLibraryError if a C library can neither be loaded nor compiled."""
        self.config, method = model.config, model.config.method
        self.weights = np.array(model.config.vector)
        self._words = FoldedWords(tokenizers.source)
        arrays = {name: values.detach().cpu().numpy() for name, values in model.phrases.items()}
        self.table = PhraseTable(**{"reordering": None, **arrays}, max_length=method.longest)
        self._query = None if model.language_model is None else NgramQuery(model.language_model)
        self._search = PhraseSearch(self.table, native_language_model(self._query), threads)

    def encode(self, text: str, ids: Sequence[int]) -> Source:
        """Return a text for `translate`. ids: its tokens."""
        return Source(*self._words.of_text(text, ids))

    def fold(self, ids: Sequence[int]) -> NDArray[np.int32]:
        """Return the folded ids of a text."""
        return self._words.of_ids(ids)

    def translate(self, sources: Sequence[Source], stack: int, nbest: int = 1) -> Iterator[list[Output]]:
        """Yield up to `nbest` distinct translations of each source, in order, best first.

        stack: maximum number of hypotheses for each number of translated source words.
        """
        pops = POPS_PER_HYPOTHESIS * stack
        limits = SearchLimits(stack, pops, self.config.options, self.config.distortion_limit)
        translations = self._search.translate([source.ids for source in sources], self.weights, limits, nbest)
        for source, found in zip(sources, translations, strict=True):
            yield [_output(source, each) for each in found]


def native_language_model(query: NgramQuery | None) -> library.LanguageModel:
    """Return an n-gram model for the phrase library. None: no language model, whose scores are 0."""
    arrays: dict[str, NDArray[np.uint8] | None] = {}
    if query is not None:
        arrays = {
            "start": np.frombuffer(bytes(query.start), np.uint8),
            "empty": np.frombuffer(bytes(query.empty), np.uint8),
        }
    state_size = 0 if query is None else library.MAX_STATE
    model = library.LanguageModel.of(arrays, state_size=state_size, end=EOS, unknown=UNK)
    if query is not None:
        model.score, model.model = query.function, query.pointer
        model.arrays["query"] = query  # owns the memory
    return model


def _output(source: Source, translation: PhraseTranslation) -> Output:
    """Return a translation with UNK for each copied word."""
    unknown = tuple(source.words[-1 - word] for word in translation.words if word < 0)
    return Output(tuple(UNK if word < 0 else word for word in translation.words), unknown, translation)
