"""The length that an output has at least."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.rules.rule import Restriction, Step
from dragoman.models.interface import Tree
from dragoman.text.symbols import EOS


class MinimumLength(Restriction):
    """No output ends before it has as many tokens as its sentence's has at least."""

    def __init__(self, lengths: Sequence[int]) -> None:
        """lengths: tokens, the end not counted, one number a sentence."""
        self._lengths = np.array(lengths, np.int64)

    def restrict(self, logits: Tensor, step: Step, state: Tree) -> None:
        """Forbid the end where it would come too soon."""
        short = step.lengths <= self._lengths[step.sentences]
        if short.all():
            logits[:, EOS] = -torch.inf
        elif short.any():
            rows = torch.from_numpy(short).to(logits.device).repeat_interleave(step.beam_size)
            logits[:, EOS].masked_fill_(rows, -torch.inf)
