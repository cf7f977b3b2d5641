"""Tokens that are never written."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.models.interface import Tree


class ForbiddenTokens(Restriction):
    """Each sentence's own, or the same for all."""

    def __init__(self, tokens: Sequence[Collection[int]], device: torch.device) -> None:
        """tokens: ids, one collection a sentence."""
        sets = [sorted(set(each)) for each in tokens]
        self._same = all(each == sets[0] for each in sets)
        self._largest = max((each[-1] for each in sets if each), default=-1)
        longest = max(map(len, sets), default=0)
        padded = [each + [-1] * (longest - len(each)) for each in sets]
        self._tokens = torch.tensor(padded, dtype=torch.int64, device=device).view(len(sets), longest)

    def restrict(self, logits: Tensor, step: Step, state: Tree) -> None:
        """Raises ConfigError for a token that the vocabulary does not have."""
        if self._largest >= logits.size(1):
            raise ConfigError(f"forbid holds token {self._largest}, but the vocabulary has only {logits.size(1)}")
        if self._same:
            logits.index_fill_(1, self._tokens[0], -torch.inf)
            return
        tokens = step.of_hypotheses(self._tokens)
        rows, places = (tokens >= 0).nonzero(as_tuple=True)
        logits[rows, tokens[rows, places]] = -torch.inf
