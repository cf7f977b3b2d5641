"""The head of extractive question answering: the first and the last token of an answer."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.models.heads.tagging import TokenHead
from dragoman.models.interface import Memory


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


class SpanHead(TokenHead):
    """A `TokenHead` with two outputs, the logits of the first and of the last token of an answer."""

    def forward(self, memory: Memory, tokens: Tensor | None = None) -> Tensor:
        """Return logits (B, S, 2), −∞ at padding."""
        return super().forward(memory).masked_fill(~memory.mask.unsqueeze(2), -torch.inf)
