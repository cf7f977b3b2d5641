"""The hidden Markov model of alignments (Vogel et al. 1996), with NULL states (Och and Ney 2003, section 2.1)."""

from ctypes import byref
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation, Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.library import JumpCounts, Jumps, address, check_memory, functions
from dragoman.statistical.alignment.estimation.method import Arrays, ExpectationModel, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import Floats
from dragoman.statistical.alignment.methods.ibm1 import IBM1


class HMMConfig(MethodConfig):
    """A hidden Markov model: the position of a link depends on the preceding link."""

    kind: Literal["hmm"] = "hmm"
    ibm1_iterations: int = Field(5, ge=0, description="Number of iterations of IBM model 1 that initialise t(f | e).")
    iterations: int = Field(5, ge=1, description="Number of iterations of expectation maximisation.")
    prior: float = Field(
        0.01,
        ge=0,
        description="Parameter of a symmetric Dirichlet prior of t(f | e), for variational Bayes. 0: maximum "
        "likelihood, which has fewer errors on texts of only a few thousand pairs.",
    )
    null: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Probability of NULL. Source of the default: measurements on the development set of the Hansards; "
        "GIZA++ uses 0.4.",
    )
    smoothing: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="Weight of the uniform distribution in the probabilities of jumps. Source of the default: GIZA++ "
        "(emAlSmooth).",
    )
    distance: int = Field(
        100,
        ge=1,
        description="Largest distance between consecutive links that has a probability of its own. Larger distances "
        "have only the uniform distribution.",
    )

    def passes(self, pairs: int) -> int:
        """See `MethodConfig.passes`."""
        return self.ibm1_iterations + self.iterations + 1

    def train(self, data: TrainingData) -> tuple["HMM", Links]:
        """See `MethodConfig.train`."""
        lexicon, corpus = data.corpus()
        IBM1(lexicon).fit(corpus, self.ibm1_iterations, self.prior, data, "IBM 1")
        model = HMM(lexicon, self, np.ones(2 * self.distance + 1), np.ones(self.distance + 1))
        model.fit(corpus, self.iterations, self.prior, data, "HMM")
        return model, corpus.links(model.expectation(corpus))

    def restore(self, lexicon: Lexicon, arrays: Arrays) -> "HMM":
        """See `MethodConfig.restore`."""
        jumps, start = arrays.get("jumps"), arrays.get("start")
        lengths = [None if each is None else each.shape for each in (jumps, start)]
        if jumps is None or start is None or lengths != [(2 * self.distance + 1,), (self.distance + 1,)]:
            raise ModelError("the alignment model is damaged: its jumps are incomplete. Copy the folder again")
        return HMM(lexicon, self, jumps, start)


class _Counts(NamedTuple):
    """See `JumpCounts` in `hmm.h`."""

    jumps: Floats
    start: Floats
    lows: Floats
    highs: Floats
    firsts: Floats

    @staticmethod
    def zeros(distance: int) -> "_Counts":
        return _Counts(np.zeros(2 * distance + 1), *(np.zeros(distance + 1) for _ in range(4)))


class HMM(ExpectationModel):
    """p(f, a | e) = Π p(a_j | a_{j−1}, I) t(f_j | e_{a_j}). `hmm.h` defines the probabilities of jumps.

    jumps: θ(d) for d = −distance … distance. start: θ of the first position.
    """

    def __init__(self, lexicon: Lexicon, config: HMMConfig, jumps: Floats, start: Floats) -> None:
        super().__init__(lexicon)
        self._config, self.jumps, self.start = config, jumps, start

    def expectation(self, corpus: Corpus) -> Expectation:
        """See `ExpectationModel.expectation`."""
        return self._expectation(corpus, None)

    def iterate(self, corpus: Corpus, prior: float) -> float:
        """See `ExpectationModel.iterate`."""
        blocks: dict[int, _Counts] = {}
        objective = self.estimate_lexicon(corpus, prior, self._expectation(corpus, blocks))
        total = _Counts.zeros(self._config.distance)
        for first in sorted(blocks):  # in a fixed order, because sums of floats depend on it
            for sums, block in zip(total, blocks[first], strict=True):
                sums += block
        self._estimate(total)
        return objective

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `AlignmentModel.arrays`."""
        return {"jumps": self.jumps, "start": self.start}

    def _expectation(self, corpus: Corpus, blocks: dict[int, _Counts] | None) -> Expectation:
        """Return the expectation step. blocks: receives the counts of each block by its first pair, unless None."""
        config, probabilities, arrays = self._config, self.lexicon.probabilities, (self.jumps, self.start)
        jumps = Jumps(*map(address, arrays), config.distance, config.null, config.smoothing)

        def expect(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            structure = None
            if blocks is not None:
                counts = blocks[first] = _Counts.zeros(config.distance)
                structure = byref(JumpCounts(*map(address, counts)))
            check_memory(
                functions().dragoman_expect_hmm(
                    byref(corpus.structure),
                    address(probabilities),
                    byref(jumps),
                    first,
                    last,
                    posteriors,
                    log_likelihoods,
                    structure,
                )
            )

        return expect

    def _estimate(self, counts: _Counts) -> None:
        """Update θ by an MM step, which never decreases the likelihood (Hunter 2004, section 3).

        The likelihood contains Σ c(d) log θ(d) − Σ n log Z over all contexts, and Z is a sum over the context's window.
        θ(d) = c(d) / Σ n / Z, with the sum over all contexts whose window contains d, maximises a lower bound. Every
        window contains the distance 0.
        """
        distance = self._config.distance
        windows = np.empty(2 * distance + 1)
        windows[: distance + 1] = np.cumsum(counts.lows[::-1])
        windows[distance:] = np.cumsum(counts.highs[::-1])[::-1]
        self.jumps = _quotient(counts.jumps, windows)
        self.start = _quotient(counts.start, np.cumsum(counts.firsts[::-1])[::-1])


def _quotient(counts: Floats, sums: Floats) -> Floats:
    """Return counts / sums, scaled to the sum 1. Distances that are in no window have the value 0."""
    quotient = np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)
    total = quotient.sum()
    scaled: Floats = quotient / total if total > 0 else np.ones_like(quotient)
    return scaled
