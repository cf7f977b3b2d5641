"""No run of tokens twice."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.models.interface import Tree

_PADDING = -1


class NoRepeatedNgram(Restriction):
    """No n tokens in a row that the same output holds in a row already (Paulus et al. 2018, section 2.5).

    All that was read counts: a prefix, and of a language model its prompt. A step compares the last n − 1 tokens with
    those at each place that was read before.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: n, one a sentence; 0 for those without restriction."""
        self._sizes = np.array(sizes, np.int64)
        self._distinct = sorted({size for size in sizes if size})

    def start(self, prompts: Prompts) -> Tree:
        """(B, 0): the tokens read so far."""
        return prompts.tokens[:, :0]

    def read(self, state: Tree, step: Step) -> Tree:
        """(R, T + 1), −1 where there was padding."""
        tokens = step.tokens if step.left_padding is None else step.tokens.masked_fill(~step.read, _PADDING)
        return torch.cat([state, tokens], 1)

    def restrict(self, logits: Tensor, step: Step, state: Tree) -> None:
        """Forbid what would complete a run a second time."""
        for size in self._distinct:
            wanted = np.flatnonzero((self._sizes[step.sentences] == size).repeat(step.beam_size))
            if len(wanted) and state.size(1) >= size:
                rows = torch.from_numpy(wanted).to(state.device)
                read = state if len(rows) == len(state) else state[rows]
                where, tokens = _completing(read, size)
                logits[rows[where], tokens] = -torch.inf


def _completing(read: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The tokens that stand after an earlier copy of the last size − 1 tokens of each row of (R, T): rows, tokens."""
    places = read.size(1) - size + 1
    matches = read[:, size - 1 :] != _PADDING
    for offset in range(size - 1):
        matches &= read[:, offset : offset + places] == read[:, places + offset, None]
    rows, found = matches.nonzero(as_tuple=True)
    return rows, read[rows, found + size - 1]
