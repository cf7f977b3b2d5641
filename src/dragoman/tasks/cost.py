"""What an update of a model costs: FLOPs of its matrix products, and memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.inspect.describe import count_operations
from dragoman.models.footprint import SHORT_TRIAL, evaluate, measure, refined
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes

_SAMPLED = 100_000
"""Examples whose lengths represent those of the corpus."""
_FLOAT = 4
_ROWS_OF_LOGITS = 1024
_COPIES_OF_LOGITS = 4


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


def activation_bytes(model: Any, tokens: int, longest: int, free: int) -> int:
    """An estimate of the bytes that a forward pass over `tokens` tokens of each side holds at its end.

    It is measured on the model with short examples. longest: tokens of the longest example; free: bytes that the
    measurement may use.
    """
    footprint = measure(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refined(footprint, model, longest, training=True, free=free)
    decoder = getattr(model, "decoder", None)
    vocabulary: int = 0 if decoder is None else decoder.projection.weight.size(0)
    logits = min(tokens, _ROWS_OF_LOGITS) * vocabulary * _COPIES_OF_LOGITS
    return int(tokens / longest * evaluate(footprint.training, longest)) + logits * _FLOAT
