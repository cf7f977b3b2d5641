"""What an update of a translator costs: FLOPs of its matrix products, and memory."""

import numpy as np
from numpy.typing import NDArray

from dragoman.inspect.describe import count_operations
from dragoman.models.footprint import SHORT_TRIAL, measure, refined
from dragoman.models.seq2seq import ModelConfig, Seq2Seq
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cost import activation_bytes

_SAMPLED = 100_000
"""Pairs whose lengths stand for those of the corpus."""


def flops_per_target_token(
    config: ModelConfig,
    source_size: int,
    target_size: int,
    lengths: NDArray[np.int32],
    vectors: bool = False,
    passes: int = 1,
) -> float:
    """FLOPs of the matrix products for a target token, forward and backward, as `inspect.describe` counts them.

    lengths: (N, 2) tokens of the corpus's pairs without end symbols. Products inside attention grow with the length;
    they are counted for sentences of the length in which the mean token of the corpus stands. What is computed element
    by element is not counted, nor are samples drawn for rewards. passes: over each pair in an update, 2 for R-Drop.
    """
    sample = np.asarray(lengths[:: max(1, len(lengths) // _SAMPLED)], np.float64) + 1
    mean = float((sample**2).sum() / sample.sum())
    operations = count_operations(config, VocabularySizes(source_size, target_size, vectors), max(1, round(mean)))
    sources_per_target = float(sample[:, 0].sum() / sample[:, 1].sum())
    forward = operations.reading * sources_per_target + operations.writing
    return passes * operations.training * forward / (operations.reading + operations.writing)


def trained_bytes(model: Seq2Seq, tokens: int, longest: int, free: int) -> int:
    """As `activation_bytes`, measured on the model; free: bytes that a measurement may take."""
    footprint = measure(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refined(footprint, model, longest, training=True, free=free)
    return activation_bytes(footprint, tokens, longest, model.decoder.projection.weight.size(0))
