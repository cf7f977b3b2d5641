"""The coverage penalty for source positions that received little attention."""

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
    """Σ_i log(min(coverage_i, 1)) of each row: (…, S) summed attention, 1 at padding → (…), never above 0.

    Wu et al. 2016, equation 14, without its β. A position without any attention counts as the smallest normal
    float32 (−87.3 nats) instead of −∞, so that scores stay finite and comparable.
    """
    return coverage.clamp(min=torch.finfo(torch.float32).tiny, max=1.0).log().sum(-1)


class Coverage(Scoring):
    """Adds β · Σ_i log(min(Σ_j p_ij, 1)) to a score, where p_ij is the attention of step j on source position i.

    All source positions and all steps count, including those of EOS, as in the length penalty. The penalty ranks ended
    hypotheses; it does not affect which continuations live on.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        """weights: β, one number per sentence."""
        self._weights = torch.tensor(weights, dtype=torch.float32)

    def start(self, prompts: Prompts) -> TensorTree:
        """(B, S): the attention received so far; 1 at padding, so that padding always counts as covered."""
        if prompts.source is None:
            raise _no_attention()
        return (~prompts.source).float()

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Add the step's attention. Raises ConfigError if the decoder does not attend to the source."""
        attention = step.output.attention
        if attention is None:
            raise _no_attention()
        if step.left_padding is not None:
            attention = attention.masked_fill(~step.read.unsqueeze(2), 0.0)
        return state + attention.float().sum(1)

    def score(self, scores: NDArray[np.float64], ended: Endings, state: TensorTree) -> NDArray[np.float64]:
        """Each score plus its penalty, which is never above 0."""
        weights = self._weights[torch.from_numpy(ended.sentences)].to(state.device)
        penalties: NDArray[np.float64] = (weights * penalty(state)).double().cpu().numpy()
        return scores + penalties

    def bound(self, bounds: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
        """The unchanged bounds, because the whole source may still be covered."""
        return bounds


def _no_attention() -> ConfigError:
    return ConfigError(
        "search.coverage_penalty is set, but this model's decoder has no attention over the source: set it to 0"
    )
