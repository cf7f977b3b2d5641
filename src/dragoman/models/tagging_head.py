"""The head of a tagger, with one prediction per word."""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from dragoman.models.interface import Memory
from dragoman.models.labelled_head import LabelledHead
from dragoman.nn.dropout import Dropout
from dragoman.nn.precision import to_at_least_float32


class TaggingHeadConfig(LabelledHead):
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
