"""Heads: the last layers of a model that predicts labels from the states of an encoder."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.family import Predictions, at_positions
from dragoman.models.interface import Memory
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Projection, token_table
from dragoman.nn.feedforward import FUNCTIONS
from dragoman.nn.normalisation import LayerNormConfig, NormConfig
from dragoman.nn.precision import to_at_least_float32

_UNKNOWN_LABELS = 2
"""Number of classes of a head that is built before its labels are known, to check or describe the settings."""


class _LabelledHead(Config):
    """Base class of heads that choose among named classes."""

    labels: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Names of the classes. null: the labels in the training data, sorted by name. Labels in the data "
        "that are not listed are errors.",
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout rate before the output layer (0 to 1).")

    @field_validator("labels", mode="before")
    @classmethod
    def _accept_numbers(cls, value: object) -> object:
        """Convert the numbers and booleans that YAML makes of unquoted labels into their names."""
        if not isinstance(value, list | tuple):
            return value
        return tuple(str(name).lower() if isinstance(name, bool) else str(name) for name in value)

    @field_validator("labels")
    @classmethod
    def _check_distinct(cls, labels: tuple[str, ...] | None) -> tuple[str, ...] | None:
        repeated = [name for number, name in enumerate(labels or ()) if name in (labels or ())[:number]]
        if repeated:
            raise ValueError(f"the label {repeated[0]!r} is listed twice")
        return labels

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return _UNKNOWN_LABELS if self.labels is None else len(self.labels)


class _TextHead(Config):
    """Base class of heads with one prediction per text."""

    pooling: Literal["summary", "first", "max"] = Field(
        "summary",
        description="The vector that represents a text. summary: the last state of a recurrent or causal encoder, and "
        "the mean of the states of other encoders. first: the state of the first symbol, as in BERT. max: the maximum "
        "of each component over the states.",
    )
    hidden: bool = Field(
        False, description="Add a layer tanh(Wx + b) of width d before the output layer, as in BERT's pooler."
    )
    texts: Literal[1, 2] | None = Field(
        None, description="Number of texts of an input: 1, or 2 for pairs. null: that of the training data."
    )


class ClassificationHeadConfig(_LabelledHead, _TextHead):
    """One of C classes for each text: logits W·v + b for its vector v. YAML: `head: {kind: classification}`."""

    kind: Literal["classification"] = "classification"

    def build(self, width: int, table: nn.Embedding) -> "TextHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return TextHead(width, self.classes, self)


class RegressionHeadConfig(_TextHead):
    """A number for each text: offset + scale · (w·v + b) for its vector v. YAML: `head: {kind: regression}`."""

    kind: Literal["regression"] = "regression"
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout rate before the output layer (0 to 1).")
    offset: float | None = Field(
        None, description="Constant that is added to each prediction. null: the mean of the training labels."
    )
    scale: float | None = Field(
        None,
        gt=0,
        description="Factor of each prediction. null: the standard deviation of the training labels.",
    )
    range: tuple[float, float] | None = Field(
        None,
        description="Smallest and largest possible label, such as [0, 5]. Labels outside are errors, and predictions "
        "are clipped. null: any number.",
    )

    @field_validator("range")
    @classmethod
    def _check_range(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not value[0] < value[1]:
            raise ValueError(
                f"the first number must be smaller than the second, but they are {value[0]:g}, {value[1]:g}"
            )
        return value

    def build(self, width: int, table: nn.Embedding) -> "RegressionHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return RegressionHead(width, self)


class TaggingHeadConfig(_LabelledHead):
    """One of C classes for each word, from the state of its first token. YAML: `head: {kind: tagging}`."""

    kind: Literal["tagging"] = "tagging"
    features: int | None = Field(
        None,
        ge=0,
        description="Number of further columns that the model reads, such as parts of speech: each value is a symbol "
        "before the tokens of its word. null: the number of columns in `features` of the training data.",
    )
    scheme: Literal["IOB1", "IOB2", "IOBES", "BILOU", "words"] | None = Field(
        None,
        description="Scheme in which the tags mark spans, for the measures. words: the tags mark no spans. null: "
        "recognised from the tags of the training data; tags that fit no scheme are an error.",
    )

    def build(self, width: int, table: nn.Embedding) -> "TokenHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return TokenHead(width, self.classes, self.dropout)


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


HeadConfig = Annotated[
    ClassificationHeadConfig
    | RegressionHeadConfig
    | TaggingHeadConfig
    | SpanHeadConfig
    | MaskedLanguageModelHeadConfig
    | NoHeadConfig,
    Field(discriminator="kind"),
]
"""The union of all heads. To add a head, add its config to this union."""


class TextHead(nn.Module):
    """Maps the vector of a text to `outputs` numbers."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, outputs: int, config: ClassificationHeadConfig | RegressionHeadConfig) -> None:
        super().__init__()
        self.pooling = config.pooling
        self.hidden = nn.Linear(width, width) if config.hidden else None
        self.dropout = Dropout(config.dropout)
        self.output = nn.Linear(width, outputs)

    def forward(self, memory: Memory) -> Tensor:
        """Return the outputs (B, outputs) for states (B, S, d), in float32 or wider."""
        vectors = pool(memory, self.pooling)
        if self.hidden is not None:
            vectors = torch.tanh(self.hidden(vectors))
        return to_at_least_float32(self.output(self.dropout(vectors)))


class RegressionHead(TextHead):
    """A `TextHead` with one output, shifted and scaled to the range of the labels."""

    def __init__(self, width: int, config: RegressionHeadConfig) -> None:
        super().__init__(width, 1, config)
        self.offset, self.scale = config.offset or 0.0, config.scale or 1.0

    def forward(self, memory: Memory) -> Tensor:
        """Return one number per text (B,) for states (B, S, d), in float32 or wider."""
        return self.offset + self.scale * super().forward(memory).squeeze(1)


class TokenHead(nn.Module):
    """Maps the state of each token to `outputs` numbers."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, outputs)

    def forward(self, memory: Memory) -> Tensor:
        """Return the outputs (B, S, outputs) for states (B, S, d), in float32 or wider."""
        return to_at_least_float32(self.output(self.dropout(memory.states)))


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
        self.transform = nn.Linear(width, width) if config.transform else None
        self.norm = config.normalisation.build(width) if config.transform else None
        self.activation = FUNCTIONS[config.activation]
        self.pooler = nn.Linear(width, width) if config.next_sentence else None
        self.next_sentence = nn.Linear(width, 2) if config.next_sentence else None
        weight = table.weight if config.tied else token_table(table.num_embeddings, width).weight
        self.projection = Projection(weight, biased=True)

    def transformed(self, states: Tensor) -> Tensor:
        """Return the vectors (N, d) that are projected to the vocabulary, for states (N, d)."""
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


def pool(memory: Memory, pooling: str) -> Tensor:
    """Return the vectors (B, d) that represent the texts of a memory; see the setting `pooling`."""
    if pooling == "first":
        return memory.states[:, 0]
    if pooling == "max":
        return memory.states.masked_fill(~memory.mask.unsqueeze(2), -torch.inf).amax(1)
    return memory.summary
