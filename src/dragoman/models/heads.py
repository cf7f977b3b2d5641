"""Heads: the last layers of a model that predicts labels from the states of an encoder."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.family import Predictions, at_positions
from dragoman.models.interface import Memory
from dragoman.models.replaced_tokens import ReplacedTokenHeadConfig
from dragoman.models.tagging_head import TaggingHeadConfig, TokenHead
from dragoman.models.text_heads import ClassificationHeadConfig, RegressionHeadConfig, pool
from dragoman.nn.embedding import Projection, token_table
from dragoman.nn.feedforward import FUNCTIONS
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.precision import to_at_least_float32


class SpanHeadConfig(Config):
    """The first and the last token of an answer in a text (Devlin et al. 2019, section 4.2).

    YAML: `head: {kind: span}`.
    """

    kind: Literal["span"] = "span"
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout rate before the output layer (0 to 1).")
    longest: int = Field(30, ge=1, description="Maximum length of an answer in tokens.")
    no_answer: bool | None = Field(
        None, description="Whether a question may have no answer. null: whether the training data has such questions."
    )
    threshold: float | None = Field(
        None,
        description="No answer is given if the score of having no answer exceeds the best answer's by more than this. "
        "null: the value with the best F1 on the validation set, which is stored in meta.json.",
    )

    def build(self, width: int, table: nn.Embedding) -> "SpanHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return SpanHead(width, 2, self.dropout)


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


class NoHeadConfig(Config):
    """No output layer: the model is a body, such as an imported BERT, whose states represent texts.

    It predicts no labels. Its texts have vectors, and `train.start` trains it with another head. YAML: `head: {kind:
    none}`.
    """

    kind: Literal["none"] = "none"
    hidden: bool = Field(
        False,
        description="Keep a layer tanh(Wx + b) of width d for the first symbol, BERT's pooler, with which the hidden "
        "layer of another head is initialised.",
    )

    def build(self, width: int, table: nn.Embedding) -> "NoHead":
        """Build the layer for states of this width. table: the token vectors (V, d), which this head does not use."""
        return NoHead(width, self.hidden)


TaskHeadConfig = Annotated[
    ClassificationHeadConfig
    | RegressionHeadConfig
    | TaggingHeadConfig
    | SpanHeadConfig
    | MaskedLanguageModelHeadConfig,
    Field(discriminator="kind"),
]
"""The union of the heads that can be one of several heads of a model."""


class SeveralHeadsConfig(Config):
    """Several heads on one body, one for each task. The run sets them from its tasks.

    YAML: `head: {kind: several, heads: {sst2: {kind: classification}}}`.
    """

    kind: Literal["several"] = "several"
    heads: dict[str, TaskHeadConfig] | None = Field(
        None,
        description="Heads by the names of their tasks. null: those of the tasks of the run.",
        json_schema_extra={"listed": False},
    )

    def build(self, width: int, table: nn.Embedding) -> "SeveralHeads":
        """Build the heads for states of this width. table: the token vectors (V, d), which a head may share."""
        return SeveralHeads({name: head.build(width, table) for name, head in (self.heads or {}).items()})


HeadConfig = Annotated[
    ClassificationHeadConfig
    | RegressionHeadConfig
    | TaggingHeadConfig
    | SpanHeadConfig
    | MaskedLanguageModelHeadConfig
    | ReplacedTokenHeadConfig
    | SeveralHeadsConfig
    | NoHeadConfig,
    Field(discriminator="kind"),
]
"""The union of all heads. To add a head, add its config to this union."""


class SeveralHeads(nn.ModuleDict):
    """The heads of several tasks by name. Each of them is a part of the model of its own."""

    children_are_parts = True

    def forward(self, memory: Memory) -> dict[str, Any]:
        """Return the output of every head by name, for states (B, S, d)."""
        return {name: head(memory) for name, head in self.items()}


class SpanHead(TokenHead):
    """A `TokenHead` with two outputs, the logits of the first and of the last token of an answer."""

    def forward(self, memory: Memory) -> Tensor:
        """Return logits (B, S, 2), −∞ at padding."""
        return super().forward(memory).masked_fill(~memory.mask.unsqueeze(2), -torch.inf)


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


class NoHead(nn.Module):
    """A body without an output layer."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, hidden: bool) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width) if hidden else None

    def forward(self, memory: Memory) -> Tensor:
        """Return the vectors (B, d) of the first symbols, after the hidden layer if there is one."""
        vectors = pool(memory, "first")
        return to_at_least_float32(vectors if self.hidden is None else torch.tanh(self.hidden(vectors)))
