"""Translation edit rate."""

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.ter import TER as SacreTER

from dragoman.metrics.summed import Statistics, SummedMetric


class TER(SummedMetric):
    """Translation edit rate (percent), computed by sacrebleu (Snover et al. 2006)."""

    key, name, better, unit = "ter", "TER", "lower", "percent"

    def sacrebleu(self) -> SacreTER:
        """Return sacrebleu's metric with its defaults."""
        return SacreTER()

    def corpus(self, sums: Statistics) -> NDArray[np.float64]:
        """Return the same scores as sacrebleu's `TER().corpus_score`.

        sums: (…, 2) number of edits, and number of reference words, averaged over the references of each sentence.
        """
        edits, words = sums[..., 0].astype(np.float64), sums[..., 1].astype(np.float64)
        return np.asarray(100 * np.where(words > 0, edits / np.where(words > 0, words, 1), edits > 0))
