"""The log-probability of texts of any length: window by window, or as a whole where a recurrence carries its state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate_text
from dragoman.decode.forced import force, read_labels
from dragoman.models.interface import Decoder
from dragoman.text.symbols import BOS, EOS

PIECE = 256
"""Tokens of each text that `WholeScorer` reads at a time, so that the memory needed does not grow with its length."""


class _Window(NamedTuple):
    """Labels `first` to `end` of a text, predicted from what is read from `start` on."""

    text: int
    start: int
    first: int
    end: int


def windows(labels: int, window: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """start, first and end of each window that a text of so many labels is read in: every label in exactly one.

    The first window predicts all its labels, each later one its last `stride`, so that these have at least
    `window` − `stride` tokens before them.
    """
    first = 0
    while first < labels:
        start, end = (0, window) if first == 0 else (first + stride - window, first + stride)
        yield start, first, min(labels, end)
        first = end


@dataclass(frozen=True)
class WholeScorer:
    """A recurrent decoder without a source: reads each text from its beginning to its end, a piece at a time."""

    decoder: Decoder
    device: torch.device

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[float]:
        """As of `WindowScorer`. batch_size: texts that are read together."""
        totals = [0.0] * len(texts)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        with Progress("Scoring", "texts", len(order)) as progress:
            for begin in range(0, len(order), batch_size):
                some = order[begin : begin + batch_size]
                batch = collate_text([[BOS, *texts[place], EOS] for place in some], some).to(self.device)
                state = self.decoder.start(None)
                pieces = (torch.split(each, PIECE, 1) for each in (batch.inputs, batch.labels, batch.target_mask))
                for inputs, labels, keep in zip(*pieces, strict=True):
                    found, state = read_labels(self.decoder, state, inputs, labels, keep)
                    for place, value in zip(some, found.double().sum(1).tolist(), strict=True):
                        totals[place] += value
                progress.update(begin + len(some))
        return totals


@dataclass(frozen=True)
class WindowScorer:
    """A decoder without a source, and the window: how many tokens it reads at most. stride: as of `windows`."""

    decoder: Decoder
    device: torch.device
    window: int
    stride: int

    def __post_init__(self) -> None:
        """Raises ConfigError for a stride that is none."""
        if not 1 <= self.stride <= self.window:
            raise ConfigError(f"the stride is {self.stride} tokens, but must be from 1 to the window of {self.window}")

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[float]:
        """Of each text's ids and its end, given the beginning of a text, in order; the decoder in evaluation mode.

        batch_size: windows that are read together.
        """
        ids = [[BOS, *text, EOS] for text in texts]
        parts = [
            _Window(place, *each)
            for place, text in enumerate(ids)
            for each in windows(len(text) - 1, self.window, self.stride)
        ]
        parts.sort(key=lambda part: part.end - part.start)
        totals = [0.0] * len(texts)
        with Progress("Scoring", "windows", len(parts)) as progress:
            for begin in range(0, len(parts), batch_size):
                some = parts[begin : begin + batch_size]
                batch = collate_text([ids[part.text][part.start : part.end + 1] for part in some], range(len(some)))
                batch = batch.to(self.device)
                asked = batch.target_mask.clone()
                for row, part in enumerate(some):
                    asked[row, : part.first - part.start] = False
                found = force(self.decoder, None, batch.inputs, batch.labels, asked).double().sum(1)
                for part, value in zip(some, found.tolist(), strict=True):
                    totals[part.text] += value
                progress.update(begin + len(some))
        return totals
