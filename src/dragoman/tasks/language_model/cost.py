"""What an update of a language model costs: FLOPs of its matrix products, and memory."""

import numpy as np
from numpy.typing import NDArray

from dragoman.inspect.describe import count_operations
from dragoman.models.footprint import SHORT_TRIAL, measure, refined
from dragoman.models.language_model import DecoderOnly, LanguageModelConfig
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cost import activation_bytes

_SAMPLED = 100_000
"""Excerpts whose lengths stand for those of the corpus."""


def flops_per_token(config: LanguageModelConfig, size: int, lengths: NDArray[np.int32]) -> float:
    """FLOPs of the matrix products for a token, forward and backward, in excerpts as long as that of the mean token.

    lengths: (N, 1) tokens of the excerpts.
    """
    sample = np.asarray(lengths[:: max(1, len(lengths) // _SAMPLED), -1], np.float64)
    mean = float((sample**2).sum() / sample.sum())
    return count_operations(config, VocabularySizes(size, size), max(1, round(mean))).training


def trained_bytes(model: DecoderOnly, tokens: int, longest: int, free: int) -> int:
    """As `activation_bytes`, measured on the model; free: bytes that a measurement may take."""
    footprint = measure(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refined(footprint, model, longest, training=True, free=free)
    return activation_bytes(footprint, tokens, longest, model.decoder.projection.weight.size(0))
