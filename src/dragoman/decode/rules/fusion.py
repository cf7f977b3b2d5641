"""Shallow fusion: a language model contributes to the score of every token."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Addition, Step
from dragoman.models.interface import Decoder, State, TensorTree


class FusionConfig(Config):
    """Shallow fusion with a language model: log p(y | x) + λ · log p(y). Gulcehre et al. 2015."""

    language_model: Path = Field(
        description="Folder of a language model with the translation model's target vocabulary (data.vocabulary_of), "
        "or of an n-gram model with another vocabulary, which is fused word by word."
    )
    weight: float = Field(
        default=0.1,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="λ (no unit), weight of the language model's log-probabilities relative to the translation "
        "model's.",
    )


class LanguageModelFusion(Addition):
    """Adds λ · log p(token | preceding tokens) of a decoder without a source; never above 0, because λ ≥ 0.

    The decoder can be any `Decoder`: a neural or count-based language model, or an ensemble. The rule's state consists
    of the decoder's state and, until the hypotheses are reordered, the log-probabilities of the next tokens.
    """

    def __init__(self, decoder: Decoder, weights: Sequence[float]) -> None:
        """decoder: in evaluation mode, with the target vocabulary. weights: λ of each sentence."""
        self._decoder = decoder
        self._weights = torch.tensor(weights, dtype=torch.float32)

    def limit_lengths(self, prompts: Prompts) -> Prompts:
        """Return the prompts with maximum output lengths limited to the decoder's number of positions.

        Raises ConfigError for a prefix that is as long as the limit.
        """
        limit = self._decoder.start(None).max_length
        return prompts if limit is None else replace(prompts, limits=np.minimum(prompts.limits, limit))

    def start(self, prompts: Prompts) -> TensorTree:
        """Return the decoder's initial state. The decoder's inputs are those of the translation model."""
        options: dict[str, Any] = (
            {} if prompts.state.left_padding is None else {"left_padding": prompts.state.left_padding}
        )
        return self._decoder.start(None, capacity=prompts.state.capacity, **options), None

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return the new state with the log-probabilities (R, V) of the next tokens."""
        output, after = self._decoder.step(step.tokens, state[0])
        return after, output.last_logits().float().log_softmax(1)

    def reorder(self, state: TensorTree, rows: Tensor, beam_size: int) -> TensorTree:
        """Reorder the decoder's state; the log-probabilities are recomputed before their next use."""
        model: State = state[0]
        return model.reorder(rows, beam_size), None

    def add(self, step: Step, state: TensorTree) -> Tensor:
        """Return λ · log p, (R, V)."""
        log_probabilities: Tensor = state[1]
        return step.of_hypotheses(self._weights.to(log_probabilities.device)).unsqueeze(1) * log_probabilities
