"""The head of a chart parser, which scores labelled spans (Kitaev and Klein 2018, section 2)."""

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.heads.trees import TreeHead
from dragoman.models.interface import Memory
from dragoman.nn.dropout import Dropout
from dragoman.nn.precision import to_at_least_float32

CHAIN = " "
"""Separates the labels of constituents with the same words, the outermost first, in the label of their span."""


class ChartHeadConfig(TreeHead):
    """The score of each label for each span of words. The tree with the largest sum of scores is found by CKY.

    Constituents with the same words have one label together, such as "S VP". The tags of the words are predicted
    separately, from the state of the first token of each word. YAML: `head: {kind: chart}`.
    """

    kind: Literal["chart"] = "chart"
    hidden: int = Field(250, ge=1, description="Width of the hidden layer of spans and of tags (paper: 250).")
    dropout: float = Field(0.2, ge=0, lt=1, description="Dropout rate of the states (0 to 1).")
    margin: float = Field(
        1.0,
        gt=0,
        description="Margin by which the score of the correct tree must exceed that of another tree, per wrong label "
        "of a span (equation 3).",
    )

    def build(self, width: int, table: nn.Embedding) -> "ChartHead":
        """Build the head for states of this width. table: the token vectors (V, d), which this head does not use."""
        return ChartHead(width, self)


class ChartHead(nn.Module):
    """Scores labels of spans and tags of words."""

    def __init__(self, width: int, config: ChartHeadConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = Dropout(config.dropout)
        self.project = nn.Linear(width, config.hidden)
        self.spans = _scorer(config.hidden, len(config.known_labels))
        self.tags = nn.Sequential(nn.Linear(width, config.hidden), *_scorer(config.hidden, len(config.known_tags)))

    def forward(self, memory: Memory) -> "ChartOutput":
        """Return the states, from which spans and tags are scored on demand."""
        return ChartOutput(self.dropout(memory.states), self)


def _scorer(hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(hidden), nn.ReLU(), nn.Linear(hidden, outputs))


@dataclass(frozen=True)
class ChartOutput:
    """The scores of a chart parser, computed on demand. states: (B, S, d) of the tokens."""

    states: Tensor
    head: ChartHead

    def fenceposts(self, row: int, positions: Tensor) -> Tensor:
        """Return the projected fenceposts (n + 1, h) of a sentence, which separate its words.

        positions: (n + 1,) int64, the first token of each word, and EOS. A fencepost is represented by the first half
        of the state of the token before it and by the second half of the state of the token after it (section 2).
        """
        states = to_at_least_float32(self.states[row])
        half = states.size(1) // 2
        before, after = states[positions - 1, :half], states[positions, half:]
        weight = to_at_least_float32(self.head.project.weight)
        with torch.autocast(states.device.type, enabled=False):  # differences of rounded values would be inexact
            return before @ weight[:, :half].T + after @ weight[:, half:].T

    def spans(self, fenceposts: Tensor, starts: Tensor, ends: Tensor) -> Tensor:
        """Return the scores (N, labels) of the labels of spans.

        fenceposts: from `fenceposts`, of any sentences one after the other. starts, ends: (N,) int64, indices of the
        fenceposts of each span. The hidden layer is a linear function of differences of fenceposts, and therefore a
        difference of linear functions, so that the product with its weights is computed only once per word.
        """
        hidden = fenceposts[ends] - fenceposts[starts] + self.head.project.bias
        return to_at_least_float32(self.head.spans(hidden))

    def tags(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Return the logits (N, tags) of words whose first tokens are at `positions` (N,) of `rows` (N,), int64."""
        return to_at_least_float32(self.head.tags(self.states[rows, positions]))
