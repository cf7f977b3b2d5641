"""The coverage penalty for source positions that receive little attention."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Endings, Scoring, Step
from dragoman.models.interface import TensorTree


def penalty(coverage: Tensor) -> Tensor:
    """Return Σ_i log(min(coverage_i, 1)) for each row of summed attention (Wu et al. 2016, equation 14, without β).

    coverage: (…, S), 1 at padding. Returns (…), never above 0. A coverage of 0 is replaced with the smallest normal
    float32 (−87.3 nats instead of −∞), so that scores stay finite and comparable.
    """
    return coverage.clamp(min=torch.finfo(torch.float32).tiny, max=1.0).log().sum(-1)


class Coverage(Scoring):
    """Adds β · Σ_i log(min(Σ_j p_ij, 1)) to a score, where p_ij is the attention of step j on source position i.

    All source positions and all steps count, including those of EOS, as in the length penalty. The penalty affects the
    ranking of ended hypotheses, but not the selection of live ones.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        """weights: β of each sentence."""
        self._weights = torch.tensor(weights, dtype=torch.float32)

    def start(self, prompts: Prompts) -> TensorTree:
        """Return (B, S), the initial coverage: 0 at source positions, and 1 at padding, which always counts as covered.

        Raises ConfigError for a model without a source.
        """
        if prompts.source is None:
            raise _no_attention()
        return (~prompts.source).float()

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Add the attention weights of the step. Raises ConfigError if the decoder does not attend to the source."""
        attention = step.output.attention
        if attention is None:
            raise _no_attention()
        if step.left_padding is not None:
            attention = attention.masked_fill(~step.read.unsqueeze(2), 0.0)
        return state + attention.float().sum(1)

    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """Add to each score its penalty, which is never above 0."""
        weights = self._weights[torch.from_numpy(ended.sentences)].to(state.device)
        penalties: NDArray[np.float64] = (weights * penalty(state)).double().cpu().numpy()
        return scores + penalties

    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the bounds unchanged: the penalty is 0 if later steps cover the whole source."""
        return bounds


def _no_attention() -> ConfigError:
    return ConfigError(
        "search.coverage_penalty is set, but this model's decoder has no attention over the source: set "
        "search.coverage_penalty to 0"
    )
