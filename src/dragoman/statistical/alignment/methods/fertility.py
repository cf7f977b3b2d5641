"""A Bayesian model with jumps and fertilities, trained by Gibbs sampling (Östling and Tiedemann 2016).

Source: "Efficient word alignment with Markov chain Monte Carlo", The Prague Bulletin of Mathematical Linguistics 106.
The priors and the numbers of passes are those of its program, eflomal. The links of the training text maximise the
sums of the conditional probabilities in all samples. New texts are aligned with the mean parameters of the samples.
Therefore, a saved model may align the training text differently. `fertility.h` defines the conditional probabilities.
"""

import math
from collections.abc import Sequence
from ctypes import byref, c_double
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation, Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.library import (
    FertilityModel,
    Sampler,
    SamplerSettings,
    address,
    check_memory,
    functions,
)
from dragoman.statistical.alignment.estimation.method import AlignmentModel, Arrays, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import NULL, Floats

_STAGES = (("IBM 1", 1), ("HMM", 2), ("fertility", 3))
_RANDOM = 0x9E3779B97F4A7C15


class FertilityConfig(MethodConfig):
    """Jumps as in a hidden Markov model, and a distribution of the number of links of each source word."""

    kind: Literal["fertility"] = "fertility"
    samplers: int = Field(3, ge=1, description="Number of independent samplers, whose samples are averaged.")
    iterations: int | None = Field(
        None,
        ge=2,
        description="Number of passes of a sampler with the whole model. A quarter as many passes without jumps and "
        "without fertilities, and as many with jumps, precede them. By default, 5000 / √(number of pairs), at least 2.",
    )
    seed: int = Field(1, ge=0, description="Random seed.")
    null: float = Field(0.2, gt=0, lt=1, description="Probability of NULL.")
    lexicon_prior: float = Field(0.001, gt=0, description="Dirichlet prior of t(f | e).")
    null_prior: float = Field(0.001, gt=0, description="Dirichlet prior of t(f | NULL).")
    jump_prior: float = Field(0.5, gt=0, description="Dirichlet prior of the probabilities of jumps.")
    fertility_prior: float = Field(0.5, gt=0, description="Dirichlet prior of the probabilities of fertilities.")
    distance: int = Field(100, ge=1, description="Largest distance between consecutive links; larger ones are clipped.")
    largest_fertility: int = Field(8, ge=1, description="Largest number of links of a source word.")
    sweeps: int = Field(24, ge=1, description="Number of samples of the links of a pair that is aligned.")

    def passes(self, pairs: int) -> int:
        """See `MethodConfig.passes`."""
        return self.samplers * sum(self._schedule(pairs)) + 1

    def train(self, data: TrainingData) -> tuple["Fertility", Links]:
        """See `MethodConfig.train`."""
        lexicon, corpus = data.corpus()
        sampling = self.sampling(corpus, lexicon, data.words)
        sums, samples = sampling.samplers[0].zeros(), 0
        sampling.draw_links()
        for (name, stage), passes in zip(_STAGES, self._schedule(len(data.pairs)), strict=True):
            sampling.count_links()
            for number in range(1, passes + 1):
                sampling.sweep(stage)
                data.on_pairs(self.samplers * len(data.pairs))
                data.on_pass(name, number, math.nan)
                if stage == _STAGES[-1][1] and number == passes // 2:
                    sampling.sum_marginals()
                if stage == _STAGES[-1][1] and number > passes // 2:
                    for sampler in sampling.samplers:
                        sums.add(sampler)
                    samples += self.samplers
        model = self._estimate(lexicon, sampling.row_priors, sums, samples)
        return model, corpus.links(model.training_expectation(corpus, sampling.samplers))

    def sampling(self, corpus: Corpus, lexicon: Lexicon, words: tuple[int, int]) -> "Sampling":
        """Return samplers for a corpus. words: the numbers of source words and of target words."""
        row_priors = np.full(words[0] + 1, self.lexicon_prior * words[1])
        row_priors[NULL] = self.null_prior * words[1]
        priors = self.lexicon_prior, self.null_prior, self.jump_prior, self.fertility_prior, self.null
        settings = SamplerSettings(address(row_priors), *priors, self.distance, self.largest_fertility + 1)
        samplers = [SamplerState.create(self, number, corpus, lexicon) for number in range(self.samplers)]
        return Sampling(corpus, samplers, settings, row_priors)

    def restore(self, lexicon: Lexicon, arrays: Arrays) -> "Fertility":
        """See `MethodConfig.restore`."""
        jumps, fertilities = arrays.get("jumps"), arrays.get("fertilities")
        shapes = (2 * self.distance + 1,), (len(lexicon.row_starts) - 1, self.largest_fertility + 1)
        if jumps is None or fertilities is None or (jumps.shape, fertilities.shape) != shapes:
            raise ModelError("the alignment model is damaged: its parameters are incomplete. Copy the folder again")
        return Fertility(lexicon, self, jumps, fertilities)

    def _schedule(self, pairs: int) -> tuple[int, int, int]:
        """Return the numbers of passes of a sampler per stage."""
        passes = self.iterations or max(2, round(5000 / math.sqrt(max(pairs, 1))))
        first = max(1, round(passes / 4))
        return first, first, passes

    def _estimate(self, lexicon: Lexicon, row_priors: Floats, sums: "SamplerState", samples: int) -> "Fertility":
        """Return the model with the means of the sampled counts."""
        sizes = np.diff(lexicon.row_starts)
        lexicon.probabilities[:-1] = sums.counts / samples
        lexicon.probabilities[: sizes[NULL]] += self.null_prior
        lexicon.probabilities[sizes[NULL] : -1] += self.lexicon_prior
        lexicon.probabilities[:-1] /= np.repeat(sums.totals / samples + row_priors, sizes)
        jumps = sums.jumps / samples + self.jump_prior
        fertilities = sums.fertilities / samples
        fertilities[NULL] = fertilities.sum(0)  # the distribution of all words is that of unknown words
        fertilities += self.fertility_prior
        return Fertility(lexicon, self, jumps / jumps.sum(), fertilities / fertilities.sum(1, keepdims=True))


class SamplerState(NamedTuple):
    """The arrays of `Sampler` in `fertility.h`, in its order.

    marginals: (cells), the sums of the conditional probabilities, or (0) before they are summed.
    """

    links: NDArray[Any]
    counts: NDArray[Any]
    totals: NDArray[Any]
    jumps: NDArray[Any]
    fertilities: NDArray[Any]
    random: NDArray[Any]
    marginals: NDArray[Any]

    @staticmethod
    def create(config: FertilityConfig, number: int, corpus: Corpus, lexicon: Lexicon) -> "SamplerState":
        """Return the state of sampler `number` before its links are drawn."""
        words = len(lexicon.row_starts) - 1
        shapes = (
            (len(corpus.pairs.target),),
            (len(lexicon.targets),),
            (words,),
            (2 * config.distance + 1,),
            (words, config.largest_fertility + 1),
        )
        random = np.array([(config.seed * 0x1_0000 + number) * _RANDOM % 2**64], np.uint64)
        links, counts, totals, jumps, fertilities = (np.zeros(shape, np.int32) for shape in shapes)
        return SamplerState(links, counts, totals, jumps, fertilities, random, np.empty(0, np.float32))

    def zeros(self) -> "SamplerState":
        """Return arrays of the same shapes for sums."""
        return SamplerState(*(np.zeros(array.shape, np.int64) for array in self))

    def all_counts(self) -> tuple[NDArray[Any], ...]:
        """Return the counts of entries, words, jumps and fertilities."""
        return self.counts, self.totals, self.jumps, self.fertilities

    def add(self, other: "SamplerState") -> None:
        """Add the counts of another sampler. The sums are integers, so their order does not matter."""
        for sums, array in zip(self.all_counts(), other.all_counts(), strict=True):
            sums += array


class Sampling(NamedTuple):
    """Independent samplers of the links of a corpus.

    row_priors: (source words + 1), the sum of the prior of each row of the lexicon, to which `settings` points.
    """

    corpus: Corpus
    samplers: list[SamplerState]
    settings: SamplerSettings
    row_priors: Floats

    def draw_links(self) -> None:
        """Draw links of all pairs: NULL, or a source position with equal probabilities."""
        self._run("draw_links", 0)

    def count_links(self) -> None:
        """Count the lexicon's entries, jumps and fertilities of all links."""
        for sampler in self.samplers:
            for counts in sampler.all_counts():
                counts[...] = 0
        self._run("count_links", 0)

    def sweep(self, stage: int) -> None:
        """Draw every link once. stage: see `sample_links` in `fertility.h`. Raises ResourceError and Cancelled."""
        self._run("sample_links", stage)

    def sum_marginals(self) -> None:
        """Sum the conditional probabilities of all links from now on."""
        cells = int(self.corpus.pairs.cells[-1])
        self.samplers[:] = [sampler._replace(marginals=np.zeros(cells, np.float32)) for sampler in self.samplers]

    def _run(self, name: str, stage: int) -> None:
        def run(first: int, last: int) -> None:
            for state in self.samplers[first:last]:
                marginals = address(state.marginals) if len(state.marginals) else None
                sampler = Sampler(*map(address, state[:-1]), marginals)
                arguments = byref(self.corpus.structure), byref(sampler), byref(self.settings)
                check_memory(getattr(functions(), f"dragoman_{name}")(*arguments, len(self.corpus.pairs), stage))

        self.corpus.workers.run(run, [(number, number + 1) for number in range(len(self.samplers))])


class Fertility(AlignmentModel):
    """t(f | e), probabilities of jumps, and p(φ | e) of each source word.

    jumps: (2 · distance + 1). fertilities: (source words + 1, largest fertility + 1). The row of NULL is used for
    unknown words.
    """

    def __init__(self, lexicon: Lexicon, config: FertilityConfig, jumps: Floats, fertilities: Floats) -> None:
        self.lexicon = lexicon
        self._config, self.jumps, self.fertilities = config, jumps, fertilities

    def expectation(self, corpus: Corpus) -> Expectation:
        """Return an expectation step with conditional probabilities that are summed over samples of the pair's links.

        The log-likelihood is that of IBM model 1 with t(f | e), because the sum over all links is not tractable.
        """
        model = self._structure()

        def expect(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            arguments = byref(corpus.structure), byref(model), first, last, posteriors, log_likelihoods
            check_memory(functions().dragoman_expect_fertility(*arguments))

        return expect

    def training_expectation(self, corpus: Corpus, samplers: Sequence[SamplerState]) -> Expectation:
        """Return an expectation step with the sums of the conditional probabilities of all samplers."""
        model, cells = self._structure(), corpus.pairs.cells

        def expect(first: int, last: int, posteriors: int, log_likelihoods: int) -> None:
            functions().dragoman_find_likelihoods(byref(corpus.structure), byref(model), first, last, log_likelihoods)
            size = int(cells[last] - cells[first])
            sums = np.ctypeslib.as_array((c_double * size).from_address(posteriors))
            sums[...] = 0
            for sampler in samplers:
                sums += sampler.marginals[cells[first] : cells[last]]

        return expect

    def _structure(self) -> FertilityModel:
        config = self._config
        arrays = self.lexicon.probabilities, self.jumps, self.fertilities
        sizes = config.distance, config.largest_fertility + 1, max(2, config.sweeps // 3), config.sweeps
        return FertilityModel(*map(address, arrays), config.null, *sizes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `AlignmentModel.arrays`."""
        return {"jumps": self.jumps, "fertilities": self.fertilities}
