"""IBM model 2 (Brown et al. 1993, section 4.3): a probability for each source position, given j, I and J."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation, Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.method import PRIOR, Arrays, ExpectationModel, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import Floats, WordPairs
from dragoman.statistical.alignment.estimation.shapes import Shapes
from dragoman.statistical.alignment.methods.ibm1 import IBM1


class IBM2Config(MethodConfig):
    """IBM model 2: word translation probabilities, and probabilities of source positions."""

    kind: Literal["ibm2"] = "ibm2"
    ibm1_iterations: int = Field(5, ge=0, description="Number of iterations of IBM model 1 that initialise t(f | e).")
    iterations: int = Field(5, ge=1, description="Number of iterations of expectation maximisation.")
    prior: float = PRIOR

    def passes(self, pairs: int) -> int:
        """See `MethodConfig.passes`."""
        return self.ibm1_iterations + self.iterations + 1

    def train(self, data: TrainingData) -> tuple["IBM2", Links]:
        """See `MethodConfig.train`."""
        lexicon, corpus = data.corpus()
        IBM1(lexicon).fit(corpus, self.ibm1_iterations, self.prior, data, "IBM 1")
        shapes = Shapes.of_pairs(data.pairs)
        model = IBM2(lexicon, shapes, shapes.normalised(np.zeros(shapes.cells)))
        model.fit(corpus, self.iterations, self.prior, data, "IBM 2")
        return model, corpus.links(model.expectation(corpus))

    def restore(self, lexicon: Lexicon, arrays: Arrays) -> "IBM2":
        """See `MethodConfig.restore`."""
        try:
            shapes, positions = Shapes(arrays["sizes"], np.empty(0, np.int32)), arrays["positions"]
        except KeyError as error:
            raise ModelError(f"the alignment model is damaged: {error} is missing. Copy the folder again") from None
        if len(positions) != shapes.cells:
            raise ModelError("the alignment model is damaged: its position table is incomplete. Copy the folder again")
        return IBM2(lexicon, shapes, positions)


class IBM2(ExpectationModel):
    """p(f, i | e) = a(i | j, I, J) t(f_j | e_i). Shapes that were not in the training pairs have uniform a."""

    def __init__(self, lexicon: Lexicon, shapes: Shapes, positions: Floats) -> None:
        """positions: a, (shapes.cells)."""
        super().__init__(lexicon)
        self._shapes, self._positions = shapes, positions
        self._numbers = {tuple(size): number for number, size in enumerate(shapes.sizes.tolist())}

    def expectation(self, corpus: Corpus) -> Expectation:
        """See `ExpectationModel.expectation`."""
        shapes = Shapes.of_pairs(corpus.pairs)
        return shapes.expectation(corpus, self.lexicon, self._positions_of(corpus.pairs, shapes))

    def iterate(self, corpus: Corpus, prior: float) -> float:
        """See `ExpectationModel.iterate`."""
        shapes = Shapes.of_pairs(corpus.pairs)
        counts = np.zeros(shapes.cells)
        objective = self.estimate_lexicon(
            corpus,
            prior,
            shapes.expectation(corpus, self.lexicon, self._positions_of(corpus.pairs, shapes)),
            lambda start, end, posteriors: shapes.count(corpus, counts, start, end, posteriors),
        )
        self._shapes, self._positions = shapes, shapes.normalised(counts)
        return objective

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `AlignmentModel.arrays`."""
        return {"sizes": self._shapes.sizes, "positions": self._positions}

    def _positions_of(self, pairs: WordPairs, shapes: Shapes) -> Floats:
        """Return a for the shapes of other pairs."""
        if np.array_equal(shapes.sizes, self._shapes.sizes):
            return self._positions
        positions = shapes.normalised(np.zeros(shapes.cells))
        for number, size in enumerate(shapes.sizes.tolist()):
            known = self._numbers.get(tuple(size))
            if known is not None:
                stored = self._positions[self._shapes.starts[known] : self._shapes.starts[known + 1]]
                positions[shapes.starts[number] : shapes.starts[number + 1]] = stored
        return positions
