"""`StatisticalEngine`: translates with phrase-based and word-based models, and scores pairs with IBM model 1."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.base.progress import Progress
from dragoman.checkpoint.folder import LoadedModel
from dragoman.decode.decoding import Sampling
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Pair, Row
from dragoman.engines.unknown_words import read_dictionary, translated
from dragoman.models.interface import LengthLimits
from dragoman.statistical.phrases.decoder import Output, StatisticalDecoder
from dragoman.statistical.phrases.word_probabilities import WordProbabilities
from dragoman.text.unknown_words import CopyUnknownConfig, Translate, UnknownConfig

_DEFAULTS, _LIMITS = SearchConfig(), ("length_factor", "length_margin", "maximum_length", "forbid")

_SENTENCES = 64
"""Maximum number of sentences per call of the decoder."""


class StatisticalEngine:
    """Searches with stacks of `search.beam` hypotheses for each number of translated source words.

    The score of a hypothesis is the weighted sum of its features; it is not normalised by the length. Words without a
    translation are treated as `search.unknown` requires, which by default copies them. The result of a row does not
    depend on other rows or on the number of threads.
    """

    def __init__(self, loaded: LoadedModel, threads: int = 1) -> None:
        self._decoder = StatisticalDecoder(loaded.model, loaded.tokenizers, threads)
        self._limits: LengthLimits = loaded.model.limits
        self._method = loaded.model.config.method.kind
        self._translators: dict[UnknownConfig, Translate | None] = {}

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return "float32"

    @property
    def limits(self) -> LengthLimits:
        """See `Engine.limits`; there are none."""
        return self._limits

    def refusal(self, row: Row) -> str | None:
        """Return why a row is not supported; otherwise None."""
        decoding, feature = row.decoding, None
        if isinstance(decoding, Sampling):
            feature = "sampling"
        elif row.constraints:
            feature = "required phrases, glossaries and protected spans"
        elif row.prefix.ids:
            feature = "prefixes"
        elif row.tags:
            feature = "tags and target languages"
        elif not isinstance(decoding.length_penalty, NoPenalty):
            feature = "length penalties, because the weight of the feature `words` controls the length"
        elif others := [*decoding.beyond("unknown"), *_changed_limits(decoding)]:
            feature = ", ".join(f"search.{name}" for name in others)
        if feature is None:
            return None
        return (
            f"a statistical translation model does not support {feature}: leave it out, or use the neural model "
            "(--system neural) if the folder has one"
        )

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`."""
        groups: dict[tuple[int, int], list[int]] = {}
        for index, row in enumerate(rows):
            assert isinstance(row.decoding, SearchConfig)
            groups.setdefault((row.decoding.beam, row.decoding.nbest), []).append(index)
        size = min(batch_size, _SENTENCES)
        for (beam, nbest), indices in groups.items():
            for start in range(0, len(indices), size):
                part = indices[start : start + size]
                sources = [self._decoder.encode(rows[index].text, rows[index].source) for index in part]
                for index, found in zip(part, self._decoder.translate(sources, beam, nbest), strict=True):
                    yield index, [self._hypothesis(rows[index], output) for output in found]

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`: log P(target | source) by IBM model 1, without a model of the length.

        Raises ConfigError for methods other than `dictionary`, whose scores are not probabilities of the target.
        """
        if self._method != "dictionary":
            raise ConfigError(
                f"the scores of a {self._method.replace('_', '-')} model are not probabilities of the target given the "
                "source: use a model with model.method.kind=dictionary, which scores pairs by IBM model 1"
            )
        scores = []
        with Progress("Scoring", "pairs", len(pairs)) as progress:
            for number, pair in enumerate(pairs, start=1):
                source = self._decoder.fold(pair.source)
                scores.append(self._word_probabilities.score(source, np.asarray(pair.target, np.int64)))
                progress.update(number)
        return scores

    @cached_property
    def _word_probabilities(self) -> WordProbabilities:
        return WordProbabilities(self._decoder.table)

    def _hypothesis(self, row: Row, output: Output) -> Hypothesis:
        """Convert a translation, and treat its unknown words as the row requires."""
        assert isinstance(row.decoding, SearchConfig)
        config = row.decoding.unknown or CopyUnknownConfig()
        if config not in self._translators:
            self._translators[config] = config.translate(read_dictionary)
        translate, score = self._translators[config], output.translation.score
        if translate is None:  # unknown words are forbidden
            ids = tuple(number for number, word in zip(output.ids, output.translation.words, strict=True) if word >= 0)
            return Hypothesis(ids, score, score, finished=True)
        unknown = tuple(translated(word, translate) for word in output.unknown)
        return Hypothesis(output.ids, score, score, True, unknown)


def _changed_limits(config: SearchConfig) -> list[str]:
    """Return the names of limits of the output that are not the defaults, or that forbid tokens."""
    return [name for name in _LIMITS if getattr(config, name) != getattr(_DEFAULTS, name)]
