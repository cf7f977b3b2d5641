"""The model section of a word aligner, which `alignment` trains and loads."""

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.models.interface import Trial
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import VocabularySizes


class WordAlignerConfig(ModelSettings):
    """A word aligner: the translation probabilities of both directions. The section `aligner` has its settings."""

    kind: Literal["word_aligner"] = "word_aligner"
    entries: tuple[int, int] = Field(
        (0, 0), description="Number of word pairs in the lexicon of each direction; training sets it."
    )

    def build_for(self, sizes: VocabularySizes) -> Any:
        """Build a module that has only the lexicons' probabilities, for descriptions."""
        return LexiconTables(self.entries)


class LexiconTables(nn.Module):
    """The probabilities of the lexicons of both directions. A `Model` without a decoder, for descriptions."""

    limits = ()

    def __init__(self, entries: tuple[int, int]) -> None:
        super().__init__()
        self.forward_lexicon, self.reverse_lexicon = (
            nn.Parameter(torch.empty(size, dtype=torch.float64), requires_grad=False) for size in entries
        )

    def trial(self, length: int) -> Trial:
        """See `Model.trial`."""
        return Trial((torch.zeros(length, dtype=torch.int64, device=self.forward_lexicon.device),))

    def forward(self, entries: Tensor) -> Tensor:
        """Return the probabilities of entries in both directions."""
        return torch.stack([self.forward_lexicon[entries], self.reverse_lexicon[entries]])
