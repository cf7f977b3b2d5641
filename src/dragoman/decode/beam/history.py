"""What the hypotheses of a search have written, as links to those that they go on from."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class History:
    """One link a hypothesis and step: its token, and which hypothesis of the step before it goes on from.

    A step costs the same however much was written before; sequences are put together at the end, and only those that
    are wanted. Hypotheses of a step are numbered as they are handed to `extend`.
    """

    def __init__(self) -> None:
        self._links: list[Tensor] = []
        self._totals: list[Tensor] = []

    def extend(self, parents: Tensor, tokens: Tensor, totals: Tensor | None = None) -> None:
        """One more step: parents (R,) int64 numbers of hypotheses of the last step, tokens (R,) int64.

        totals: (R,) float32, in every step or in none: a sum that `totals` shall give again.
        """
        self._links.append(torch.stack((parents, tokens)))
        if totals is not None:
            self._totals.append(totals)

    def sequences(self, ends: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """The tokens of each of `ends`: how many steps, and which hypothesis of the last of them."""
        written = np.zeros((len(ends), _longest(ends)), np.int64)
        for step, rows, _, tokens in self._steps(ends):
            written[rows, step] = tokens
        return [tuple(row[:length]) for row, (length, _) in zip(written.tolist(), ends, strict=True)]

    def totals(self, ends: Sequence[tuple[int, int]]) -> list[tuple[float, ...]]:
        """The totals of each of `ends` after each of its steps."""
        found = np.zeros((len(ends), _longest(ends)), np.float64)
        totals = torch.cat(self._totals).cpu().numpy() if self._totals else np.zeros(0, np.float32)
        for step, rows, places, _ in self._steps(ends):
            found[rows, step] = totals[places]
        return [tuple(row[:length]) for row, (length, _) in zip(found.tolist(), ends, strict=True)]

    def _steps(
        self, ends: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """From the last step to the first: the step, which ends have it, their places among all links, their tokens."""
        lengths = np.array([steps for steps, _ in ends], np.int64)
        numbers = np.array([number for _, number in ends], np.int64)
        sizes = np.cumsum([0, *(links.size(1) for links in self._links)])
        links = torch.cat(self._links, 1).cpu().numpy() if self._links else np.zeros((2, 0), np.int64)
        for step in reversed(range(_longest(ends))):
            rows = np.flatnonzero(lengths > step)
            places = sizes[step] + numbers[rows]
            numbers[rows], tokens = links[:, places]
            yield step, rows, places, tokens


def _longest(ends: Sequence[tuple[int, int]]) -> int:
    return max((steps for steps, _ in ends), default=0)
