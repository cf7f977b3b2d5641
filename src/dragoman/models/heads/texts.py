"""Heads with one prediction per text, or per pair of texts: classification and regression."""

from typing import Literal, Self

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.heads.labelled import LabelledHead
from dragoman.models.heads.pairs import pair_cosines, pair_features
from dragoman.models.interface import Memory
from dragoman.nn.dropout import Dropout
from dragoman.nn.precision import to_at_least_float32


class TextHeadConfig(Config):
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

    @property
    def encodes_separately(self) -> bool:
        """Whether each text of a pair is encoded for itself."""
        return getattr(self, "pair", "joined") != "joined"

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if self.encodes_separately and self.texts == 1:
            raise ValueError("`pair` describes how two texts are read, but `texts` is 1: remove one of these settings")
        return self


class ClassificationHeadConfig(LabelledHead, TextHeadConfig):
    """One of C classes for each text: logits W·v + b for its vector v. YAML: `head: {kind: classification}`."""

    kind: Literal["classification"] = "classification"
    pair: Literal["joined", "separate"] = Field(
        "joined",
        description="How pairs of texts are read. joined: as one text, in which the encoder can compare the words. "
        "separate: each text is encoded for itself, and the output layer reads [u; v; |u − v|; u · v] of their "
        "vectors u and v (Conneau et al. 2017).",
    )

    def build(self, width: int, table: nn.Embedding) -> "TextHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return TextHead(width, self.classes, self)


class RegressionHeadConfig(TextHeadConfig):
    """A number for each text: offset + scale · (w·v + b) for its vector v. YAML: `head: {kind: regression}`."""

    kind: Literal["regression"] = "regression"
    pair: Literal["joined", "separate", "cosine"] = Field(
        "joined",
        description="How pairs of texts are read. joined: as one text, in which the encoder can compare the words. "
        "separate: each text is encoded for itself, and the output layer reads [u; v; |u − v|; u · v] of their "
        "vectors u and v (Conneau et al. 2017). cosine: each text is encoded for itself, and the number depends only "
        "on the cosine of u and v, offset + scale · (w · cos(u, v) + b) (Reimers & Gurevych 2019).",
    )
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

    def build(self, width: int, table: nn.Embedding) -> "RegressionHead | CosineHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return CosineHead(width, self) if self.pair == "cosine" else RegressionHead(width, self)


class TextEncoding(nn.Module):
    """Base class of heads with one prediction per text, or per pair of texts: the vector that represents a text."""

    timed = (("forward", "head"),)

    def __init__(self, width: int, config: ClassificationHeadConfig | RegressionHeadConfig) -> None:
        super().__init__()
        self.pooling, self.encodes_separately = config.pooling, config.encodes_separately
        self.hidden = nn.Linear(width, width) if config.hidden else None
        self.dropout = Dropout(config.dropout)

    def vectors(self, memory: Memory) -> Tensor:
        """Return the vectors (N, d) of N texts, after the hidden layer if there is one."""
        vectors = pool(memory, self.pooling)
        return vectors if self.hidden is None else torch.tanh(self.hidden(vectors))


class TextHead(TextEncoding):
    """Maps the vector of a text, or the vectors of the two texts of a pair, to `outputs` numbers."""

    def __init__(self, width: int, outputs: int, config: ClassificationHeadConfig | RegressionHeadConfig) -> None:
        super().__init__(width, config)
        self.output = nn.Linear(4 * width if self.encodes_separately else width, outputs)

    def forward(self, memory: Memory) -> Tensor:
        """Return the outputs (B, outputs), in float32 or wider.

        memory: states (B, S, d), or (2B, S, d) of pairs that are encoded separately; see `divide_pairs`.
        """
        vectors = self.vectors(memory)
        features = pair_features(vectors) if self.encodes_separately else vectors
        return to_at_least_float32(self.output(self.dropout(features)))


class RegressionHead(TextHead):
    """A `TextHead` with one output, shifted and scaled to the range of the labels."""

    def __init__(self, width: int, config: RegressionHeadConfig) -> None:
        super().__init__(width, 1, config)
        self.offset, self.scale = config.offset or 0.0, config.scale or 1.0

    def forward(self, memory: Memory) -> Tensor:
        """Return one number per text or pair (B,), in float32 or wider. memory: as in `TextHead.forward`."""
        return self.offset + self.scale * super().forward(memory).squeeze(1)


class CosineHead(TextEncoding):
    """Predicts a number from the cosine of the vectors of a pair, which it scales and shifts."""

    def __init__(self, width: int, config: RegressionHeadConfig) -> None:
        super().__init__(width, config)
        self.offset, self.scale = config.offset or 0.0, config.scale or 1.0
        # cosines of 0 and 1 are at first labels two standard deviations apart
        self.slope, self.intercept = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(-1.0))

    def forward(self, memory: Memory) -> Tensor:
        """Return one number per pair (B,), in float32 or wider, for states (2B, S, d); see `divide_pairs`.

        Dropout removes the same components of both vectors.
        """
        vectors = to_at_least_float32(self.vectors(memory))
        kept = self.dropout(torch.ones_like(vectors[::2])).repeat_interleave(2, 0)
        return self.offset + self.scale * (self.slope * pair_cosines(vectors * kept) + self.intercept)


def pool(memory: Memory, pooling: str) -> Tensor:
    """Return the vectors (B, d) that represent the texts of a memory; see the setting `pooling`."""
    if pooling == "first":
        return memory.states[:, 0]
    if pooling == "max":
        return memory.states.masked_fill(~memory.mask.unsqueeze(2), -torch.inf).amax(1)
    return memory.summary
