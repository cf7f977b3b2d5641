"""What an update of a model costs: FLOPs of its matrix products, and memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inspect.describe import count_operations
from dragoman.models.footprint import SHORT_TRIAL, measure, refined
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cost import activation_bytes

_SAMPLED = 100_000
"""Examples whose lengths represent those of the corpus."""


def flops_per_target_token(
    config: ModelSettings, sizes: VocabularySizes, lengths: NDArray[np.int32], special: int = 1, passes: int = 1
) -> float:
    """FLOPs of the matrix products per target token, forward and backward, as `inspect.describe` counts them.

    lengths: (N, sides) tokens of the corpus's examples, without the `special` symbols that each side has. Products
    inside attention grow with the length; they are counted for examples of the length in which the mean token of the
    corpus occurs. Element-wise operations are not counted, nor are samples drawn for rewards. passes: forward passes
    over each example per update, 2 for R-Drop.
    """
    sample = np.asarray(lengths[:: max(1, len(lengths) // _SAMPLED)], np.float64) + special
    mean = float((sample**2).sum() / sample.sum())
    operations = count_operations(config, sizes, max(1, round(mean)))
    if sample.shape[1] == 1:
        return passes * operations.training
    sources_per_target = float(sample[:, 0].sum() / sample[:, 1].sum())
    forward = operations.reading * sources_per_target + operations.writing
    return passes * operations.training * forward / (operations.reading + operations.writing)


def trained_bytes(model: Any, tokens: int, longest: int, free: int) -> int:
    """As `activation_bytes`, measured on the model; free: bytes that a measurement may take."""
    footprint = measure(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refined(footprint, model, longest, training=True, free=free)
    decoder = getattr(model, "decoder", None)
    vocabulary = 0 if decoder is None else decoder.projection.weight.size(0)
    return activation_bytes(footprint, tokens, longest, vocabulary)
