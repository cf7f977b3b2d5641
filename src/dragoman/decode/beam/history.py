"""What the hypotheses of a search have written, as links to those that they go on from."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


class History:
    """One link a hypothesis and step: its token, and which hypothesis of the step before it goes on from.

    A step costs the same however much was written before; sequences are put together at the end, and only those that
    are wanted. Hypotheses of a step are numbered as they are handed to `extend`.
    """

    def __init__(self) -> None:
        self._links: list[Tensor] = []

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        """One more step: parents (R,) int64 numbers of hypotheses of the last step, tokens (R,) int64."""
        self._links.append(torch.stack((parents, tokens)))

    def sequences(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """The tokens of each of `ends`: how many steps, and which hypothesis of the last of them."""
        written = np.zeros((len(ends), max((steps for steps, _ in ends), default=0)), np.int64)
        lengths = np.array([steps for steps, _ in ends], np.int64)
        numbers = np.array([number for _, number in ends], np.int64)
        sizes = np.cumsum([0, *(links.size(1) for links in self._links)])
        links = torch.cat(self._links, 1).cpu().numpy() if self._links else np.zeros((2, 0), np.int64)
        for step in reversed(range(written.shape[1])):
            rows = np.flatnonzero(lengths > step)
            numbers[rows], written[rows, step] = links[:, sizes[step] + numbers[rows]]
        return [tuple(row[:length]) for row, length in zip(written.tolist(), lengths, strict=True)]
