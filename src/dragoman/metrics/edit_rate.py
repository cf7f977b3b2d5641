"""The number of edits of TER (Snover et al. 2006), equal to sacrebleu's and fast for long lines.

Like Tercom, sacrebleu searches greedily for shifts of phrases, within limits on their size, distance and number, and
computes edit distances only near the diagonal. This module computes the same numbers, but scores all shifts of a round
together with NumPy.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int32]

# The limits of sacrebleu's `lib_ter`, the first two of which are Tercom's.
_LONGEST_SHIFT = 10
_FARTHEST_SHIFT = 50
_BEAM = 25
_MAX_SHIFTS = 1000

_INFINITY = 1 << 28


class Shift(NamedTuple):
    """A move of the words `start` to `start + length` of a hypothesis to `target`, as Tercom counts positions."""

    start: int
    length: int
    target: int

    @property
    def position(self) -> int:
        """The position of the phrase among the remaining words."""
        return self.target - self.length if self.target > self.start + self.length else self.target

    def apply(self, words: Words) -> Words:
        """Return the words (N,) in their new order."""
        phrase = words[self.start : self.start + self.length]
        rest = np.concatenate([words[: self.start], words[self.start + self.length :]])
        return np.concatenate([rest[: self.position], phrase, rest[self.position :]])


def count_edits(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Return the number of insertions, deletions, substitutions and shifts from a hypothesis to a reference."""
    if not reference:
        return len(hypothesis)
    numbers: dict[str, int] = {}
    words, target = (
        np.array([numbers.setdefault(word, len(numbers)) for word in text], np.int32)
        for text in (hypothesis, reference)
    )
    band = _Band(len(words), target)
    positions: dict[int, list[int]] = {}
    for position, word in enumerate(target.tolist()):
        positions.setdefault(word, []).append(position)
    shifts = tried = 0
    while True:
        rows = band.rows(words)
        distance = int(rows[-1][-1])
        candidates, tried = _list_shifts(words, target, positions, band.trace(words, rows), tried)
        if tried >= _MAX_SHIFTS or not candidates:
            return shifts + distance
        distances = band.shifted_distances(words, rows, candidates)
        gains = distance - distances
        best = max(
            range(len(candidates)),
            key=lambda row: (gains[row], candidates[row].length, -candidates[row].start, -candidates[row].target),
        )
        if gains[best] <= 0:
            return shifts + distance
        shifts += 1
        words = candidates[best].apply(words)


class _Alignment(NamedTuple):
    """The optimal edit operations between a hypothesis of N words and a reference of M words.

    hypothesis_of: for each reference word, the last hypothesis word that is not after it (M), or −1.
    hypothesis_errors (N + 1), reference_errors (M + 1): the cumulative numbers of words with an edit.
    """

    hypothesis_of: list[int]
    hypothesis_errors: NDArray[np.int64]
    reference_errors: NDArray[np.int64]


def _list_shifts(
    words: Words, target: Words, positions: dict[int, list[int]], alignment: _Alignment, tried: int
) -> tuple[list[Shift], int]:
    """Return the distinct shifts that may reduce the edit distance, and the number of tried shifts.

    tried: number of shifts in earlier rounds. The list ends after the phrase at which the number reaches the limit.
    """
    of, hypothesis_errors, reference_errors = alignment
    shifts: dict[Shift, None] = {}
    for start, position, length in _list_common_phrases(words.tolist(), target.tolist(), positions):
        if hypothesis_errors[start + length] == hypothesis_errors[start]:
            continue  # the phrase is correct in the hypothesis
        if reference_errors[position + length] == reference_errors[position]:
            continue  # the reference has the phrase at this position already
        if start <= of[position] < start + length:
            continue  # a shift within the phrase
        previous = -1
        for reference_word in range(position - 1, min(position + length, len(target))):
            index = 0 if reference_word == -1 else of[reference_word] + 1
            if index != previous:
                previous = index
                tried += 1
                shifts[Shift(start, length, index)] = None
        if tried >= _MAX_SHIFTS:
            break
    return list(shifts), tried


def _list_common_phrases(
    words: list[int], target: list[int], positions: dict[int, list[int]]
) -> Iterator[tuple[int, int, int]]:
    """Yield the start in the hypothesis, the start in the reference, and the length of each common phrase."""
    for start, word in enumerate(words):
        found = positions.get(word, [])
        nearest = bisect_left(found, start - _FARTHEST_SHIFT)
        for position in found[nearest : bisect_right(found, start + _FARTHEST_SHIFT)]:
            longest = min(_LONGEST_SHIFT, len(words) - start, len(target) - position)
            length = 0
            while length < longest and words[start + length] == target[position + length]:
                length += 1
                yield start, position, length


class _Band:
    """The part of the edit-distance matrix near the diagonal, for hypotheses of one length.

    Row i contains the distances of the first i words of a hypothesis to the first j words of the reference, for j in
    `range(*self.ranges[i])`. Distances outside of the band are infinite.
    """

    def __init__(self, length: int, reference: Words) -> None:
        """length: number of words N of the hypotheses. reference: (M,)."""
        self._reference, columns = reference, len(reference) + 1
        ratio = len(reference) / length if length else 1.0
        beam = math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM
        middles = [math.floor(row * ratio) for row in range(length + 1)]
        self.ranges = [(max(0, middle - beam), min(columns, middle + beam)) for middle in middles]
        self.ranges[length] = (self.ranges[length][0], columns)
        self.ranges[0] = (0, columns)

    def rows(self, words: Words) -> list[NDArray[np.int32]]:
        """Return all rows of a hypothesis (N,)."""
        rows = [np.arange(len(self._reference) + 1, dtype=np.int32)]
        for row in range(1, len(words) + 1):
            rows.append(self._next(row, rows[-1][None], words[row - 1 : row])[0])
        return rows

    def shifted_distances(
        self, words: Words, rows: Sequence[NDArray[np.int32]], shifts: Sequence[Shift]
    ) -> NDArray[np.int64]:
        """Return the edit distance of the hypothesis after each shift. rows: the rows of the unchanged hypothesis."""
        changed = np.array([min(shift.start, shift.position) for shift in shifts])  # the first changed word
        order = np.argsort(changed, kind="stable")
        texts = np.stack([shifts[number].apply(words) for number in order.tolist()])
        joining = np.searchsorted(changed[order], np.arange(len(words)), side="right")  # shifts that differ from here
        active = np.empty((0, 0), np.int32)
        for row in range(int(changed.min()) + 1, len(words) + 1):
            count = int(joining[row - 1])
            if count > len(active):
                new = np.broadcast_to(rows[row - 1], (count - len(active), len(rows[row - 1])))
                active = np.concatenate([active, new]) if len(active) else new
            active = self._next(row, active, texts[:count, row - 1])
        distances = np.empty(len(shifts), np.int64)
        distances[order] = active[:, -1]
        return distances

    def _next(self, row: int, previous: NDArray[np.int32], words: Words) -> NDArray[np.int32]:
        """Return row number `row` of several hypotheses (C, ·). previous: (C, ·) row before it. words: (C,)."""
        low, high = self.ranges[row]
        start, end = self.ranges[row - 1]
        above = np.full((len(previous), high - low + 1), _INFINITY, np.int32)  # of the columns low − 1 to high − 1
        first, last = max(start, low - 1), min(end, high)
        if first < last:
            above[:, first - low + 1 : last - low + 1] = previous[:, first - start : last - start]
        best = above[:, 1:] + 1
        skipped = int(low == 0)  # column 0 has no word of the reference
        differs = words[:, None] != self._reference[None, low - 1 + skipped : high - 1]
        np.minimum(best[:, skipped:], above[:, skipped:-1] + differs, out=best[:, skipped:])
        # An insertion costs 1 per column: the minimum over all columns to the left of best + distance.
        columns = np.arange(high - low, dtype=np.int32)
        best -= columns
        np.minimum.accumulate(best, axis=1, out=best)
        best += columns
        return best

    def trace(self, words: Words, rows: Sequence[NDArray[np.int32]]) -> _Alignment:
        """Return the alignment. Of several optimal operations, a match or substitution is preferred to a deletion of a
        hypothesis word, and a deletion to an insertion.
        """
        row, column = len(words), len(self._reference)
        hypothesis, reference = words.tolist(), self._reference.tolist()
        hypothesis_errors, reference_errors = np.zeros(row + 1, np.int64), np.zeros(column + 1, np.int64)
        of = [-1] * column
        while row or column:
            value = self._at(rows, row, column)
            differs = row > 0 and column > 0 and hypothesis[row - 1] != reference[column - 1]
            if row and column and value == self._at(rows, row - 1, column - 1) + differs:
                row, column = row - 1, column - 1
                of[column] = row
                hypothesis_errors[row + 1] = reference_errors[column + 1] = differs
            elif row and value == self._at(rows, row - 1, column) + 1:
                row -= 1
                hypothesis_errors[row + 1] = 1
            else:
                column -= 1
                of[column] = row - 1
                reference_errors[column + 1] = 1
        return _Alignment(of, hypothesis_errors.cumsum(), reference_errors.cumsum())

    def _at(self, rows: Sequence[NDArray[np.int32]], row: int, column: int) -> int:
        low, high = self.ranges[row]
        return int(rows[row][column - low]) if low <= column < high else _INFINITY
