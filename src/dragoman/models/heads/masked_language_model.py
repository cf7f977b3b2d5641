"""The head of masked language models: the token at each masked position, and whether a text continues another."""

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.families.family import Predictions, at_positions
from dragoman.models.interface import Memory
from dragoman.nn.embedding import Projection, token_table
from dragoman.nn.feedforward import FUNCTIONS
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.precision import to_at_least_float32


class MaskedLanguageModelHeadConfig(Config):
    """The token at each masked position: logits Ev + b for the token vectors E (Devlin et al. 2019, section 3.1).

    YAML: `head: {kind: masked_language_model}`.
    """

    kind: Literal["masked_language_model"] = "masked_language_model"
    transform: bool = Field(
        True,
        description="Add a layer of width d with an activation and a normalisation before the projection to the "
        "vocabulary, as in BERT. false: the states are projected directly.",
    )
    activation: Literal["relu", "gelu", "gelu_tanh", "swish"] = Field(
        "gelu", description="Activation of the added layer."
    )
    normalisation: NormConfig = Field(LayerNormConfig(), description="Normalisation after the added layer.")
    tied: bool = Field(True, description="Use the token vectors E in the projection; false: other vectors (V, d).")
    next_sentence: bool = Field(
        False,
        description="Also predict whether the second text of a pair continues the first, from the state of the first "
        "symbol and a layer tanh(Wx + b). The task sets it if train.next_sentence is positive.",
    )

    def build(self, width: int, table: nn.Embedding) -> "MaskedLanguageModelHead":
        """Build the head for states of this width.

        table: the token vectors (V, d), which the projection shares if it is tied.
        """
        return MaskedLanguageModelHead(width, table, self)


class MaskedLanguageModelHead(nn.Module):
    """Predicts tokens from states. It is computed only at the positions that `MaskedOutput` is asked for."""

    timed = (("transformed", "head"),)

    def __init__(self, width: int, table: nn.Embedding, config: MaskedLanguageModelHeadConfig) -> None:
        super().__init__()
        projected = table.embedding_dim
        self.transform = nn.Linear(width, projected) if config.transform else None
        self.norm = config.normalisation.build(projected) if config.transform else None
        self.activation = FUNCTIONS[config.activation]
        self.pooler = nn.Linear(width, width) if config.next_sentence else None
        self.next_sentence = nn.Linear(width, 2) if config.next_sentence else None
        weight = table.weight if config.tied else token_table(table.num_embeddings, projected).weight
        self.projection = Projection(weight, biased=True)

    def transformed(self, states: Tensor) -> Tensor:
        """Return the vectors (N, d) that are projected to the vocabulary, for states (N, width)."""
        if self.transform is None or self.norm is None:
            return states
        return self.norm(self.activation(self.transform(states)))  # type: ignore[no-any-return]

    def forward(self, memory: Memory) -> "MaskedOutput":
        """Return an output whose logits are computed on demand."""
        return MaskedOutput(memory.states, self)


@dataclass(frozen=True)
class MaskedOutput:
    """The predictions of a masked language model, computed on demand. states: (B, S, d)."""

    states: Tensor
    head: MaskedLanguageModelHead

    def at(self, positions: Tensor) -> Predictions:
        """Return the predictions at `positions`, (B, S) bool or (N,) int64 indices of the flattened tokens."""
        projection = self.head.projection
        return Predictions(
            self.head.transformed(at_positions(self.states, positions)), projection.weight, projection.bias
        )

    def next_sentence_logits(self, positions: Tensor) -> Tensor:
        """Return the logits (N, 2) of "does not continue" and "continues" at `positions`, (B, S) bool, of N BOS."""
        pooler, output = self.head.pooler, self.head.next_sentence
        assert pooler is not None and output is not None, "the head predicts next sentences"
        return to_at_least_float32(output(torch.tanh(pooler(at_positions(self.states, positions)))))

    def logits(self, positions: Tensor | None = None) -> Tensor:
        """Return the logits (N, V) at `positions`, in float32 or wider. None: at all positions, (B, S, V)."""
        states = self.states if positions is None else at_positions(self.states, positions)
        return to_at_least_float32(self.head.projection(self.head.transformed(states)))
