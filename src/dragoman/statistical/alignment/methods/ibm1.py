"""IBM model 1 (Brown et al. 1993, section 4.2): all source positions are equally probable."""

from typing import Any, Literal

from numpy.typing import NDArray
from pydantic import Field

from dragoman.statistical.alignment.estimation.corpus import Corpus, Expectation, Links
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.method import PRIOR, Arrays, ExpectationModel, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.shapes import Shapes


class IBM1Config(MethodConfig):
    """IBM model 1: word translation probabilities, without word order."""

    kind: Literal["ibm1"] = "ibm1"
    iterations: int = Field(5, ge=1, description="Number of iterations of expectation maximisation.")
    prior: float = PRIOR

    def passes(self, pairs: int) -> int:
        """See `MethodConfig.passes`."""
        return self.iterations + 1

    def train(self, data: TrainingData) -> tuple["IBM1", Links]:
        """See `MethodConfig.train`."""
        lexicon, corpus = data.corpus()
        model = IBM1(lexicon)
        model.fit(corpus, self.iterations, self.prior, data, "IBM 1")
        return model, corpus.links(model.expectation(corpus))

    def restore(self, lexicon: Lexicon, arrays: Arrays) -> "IBM1":
        """See `MethodConfig.restore`."""
        return IBM1(lexicon)


class IBM1(ExpectationModel):
    """p(f, i | e) = t(f_j | e_i) / (I + 1)."""

    def expectation(self, corpus: Corpus) -> Expectation:
        """See `ExpectationModel.expectation`."""
        return Shapes.of_pairs(corpus.pairs).expectation(corpus, self.lexicon, None)

    def iterate(self, corpus: Corpus, prior: float) -> float:
        """See `ExpectationModel.iterate`."""
        return self.estimate_lexicon(corpus, prior, self.expectation(corpus))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `AlignmentModel.arrays`."""
        return {}
