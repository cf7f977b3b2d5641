"""The diagonal model (Dyer et al. 2013), IBM model 2 with positions that prefer the diagonal; known as fast_align."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation, Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.library import address, functions
from dragoman.statistical.alignment.estimation.method import Arrays, ExpectationModel, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import Floats
from dragoman.statistical.alignment.estimation.shapes import Shapes

_TENSIONS = (0.1, 14.0)
"""The limits of the tension. Source: fast_align."""
_STEPS = 30
_TOLERANCE = 1e-9


class DiagonalConfig(MethodConfig):
    """IBM model 2 whose positions prefer the diagonal of the sentence pair, with one parameter."""

    kind: Literal["diagonal"] = "diagonal"
    iterations: int = Field(5, ge=1, description="Number of iterations of expectation maximisation.")
    prior: float = Field(
        0.01,
        ge=0,
        description="Parameter of a symmetric Dirichlet prior of t(f | e), for variational Bayes. 0: maximum "
        "likelihood. Source of the default: fast_align.",
    )
    null: float = Field(0.08, gt=0, lt=1, description="Probability of NULL. Source of the default: fast_align.")
    tension: float = Field(
        4.0,
        ge=_TENSIONS[0],
        le=_TENSIONS[1],
        description="Initial strength of the preference for the diagonal. Source of the default: fast_align.",
    )
    fixed_tension: bool = Field(False, description="Keep the initial tension instead of estimating it.")

    def passes(self, pairs: int) -> int:
        """See `MethodConfig.passes`."""
        return self.iterations + 1

    def train(self, data: TrainingData) -> tuple["Diagonal", Links]:
        """See `MethodConfig.train`."""
        lexicon, corpus = data.corpus()
        model = Diagonal(lexicon, self, self.tension)
        model.fit(corpus, self.iterations, self.prior, data, "Diagonal")
        return model, corpus.links(model.expectation(corpus))

    def restore(self, lexicon: Lexicon, arrays: Arrays) -> "Diagonal":
        """See `MethodConfig.restore`."""
        if "tension" not in arrays or arrays["tension"].size != 1:
            raise ModelError("the alignment model is damaged: it has no tension. Copy the folder again")
        return Diagonal(lexicon, self, float(arrays["tension"].reshape(-1)[0]))


class Diagonal(ExpectationModel):
    """p(f, i | e) = a(i | j, I, J) t(f_j | e_i) with a ∝ exp(−tension · |i / I − j / J|) for i > 0.

    The first iteration keeps the initial tension, as its links are too uncertain. Later iterations replace the
    tension by the value that maximises the expected log-likelihood, which is concave in the tension.
    """

    def __init__(self, lexicon: Lexicon, config: DiagonalConfig, tension: float) -> None:
        super().__init__(lexicon)
        self._config, self.tension = config, tension
        self._iterations = 0

    def expectation(self, corpus: Corpus) -> Expectation:
        """See `ExpectationModel.expectation`."""
        shapes = Shapes.of_pairs(corpus.pairs)
        return shapes.expectation(corpus, self.lexicon, self._positions(shapes))

    def iterate(self, corpus: Corpus, prior: float) -> float:
        """See `ExpectationModel.iterate`."""
        shapes = Shapes.of_pairs(corpus.pairs)
        counts = np.zeros(shapes.cells)
        objective = self.estimate_lexicon(
            corpus,
            prior,
            shapes.expectation(corpus, self.lexicon, self._positions(shapes)),
            lambda start, end, posteriors: shapes.count(corpus, counts, start, end, posteriors),
        )
        if self._iterations and not self._config.fixed_tension:
            self.tension = _best_tension(shapes, counts, self.tension)
        self._iterations += 1
        return objective

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `AlignmentModel.arrays`."""
        return {"tension": np.array([self.tension])}

    def _positions(self, shapes: Shapes) -> Floats:
        positions = np.empty(shapes.cells)
        functions().dragoman_diagonal_positions(
            address(shapes.sizes),
            address(shapes.starts),
            len(shapes.sizes),
            self.tension,
            self._config.null,
            address(positions),
        )
        return positions


def _best_tension(shapes: Shapes, counts: Floats, tension: float) -> float:
    """Return the tension that maximises Σ counts · log a, by Newton's method within shrinking limits."""
    low, high = _TENSIONS
    moments = np.empty(2)
    for _ in range(_STEPS):
        functions().dragoman_diagonal_moments(
            address(shapes.sizes), address(shapes.starts), len(shapes.sizes), tension, address(counts), address(moments)
        )
        slope, curvature = moments.tolist()
        low, high = (tension, high) if slope > 0 else (low, tension)
        step = tension - slope / curvature if curvature < 0 else (high if slope > 0 else low)
        following = step if low <= step <= high else (low + high) / 2
        if abs(following - tension) < _TOLERANCE or slope == 0:
            return following
        tension = following
    return tension
