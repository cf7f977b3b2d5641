"""Log-probabilities of texts of any length: window by window, or as a whole by a recurrent model."""

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
"""Tokens of each text that `WholeScorer` reads at a time, so that memory does not grow with the length."""


class _Window(NamedTuple):
    """The labels from `first` to `end` of a text, predicted from the tokens from `start` on."""

    text: int
    start: int
    first: int
    end: int


def windows(labels: int, window: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, first and end of each window of a text with `labels` labels; each label is predicted once.

    The first window predicts all its labels, each later window its last `stride` labels, which have a context of at
    least `window` − `stride` tokens.
    """
    first = 0
    while first < labels:
        start, end = (0, window) if first == 0 else (first + stride - window, first + stride)
        yield start, first, min(labels, end)
        first = end


@dataclass(frozen=True)
class WholeScorer:
    """Scores texts with a recurrent decoder without a source, which reads each text from beginning to end in pieces."""

    decoder: Decoder
    device: torch.device

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[float]:
        """See `WindowScorer`; batch_size: number of texts read together."""
        totals = [0.0] * len(texts)
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        with Progress("Scoring", "texts", len(order)) as progress:
            for begin in range(0, len(order), batch_size):
                some = order[begin : begin + batch_size]
                batch = collate_text([[BOS, *texts[row], EOS] for row in some], some).to(self.device)
                state = self.decoder.start(None)
                pieces = (torch.split(each, PIECE, 1) for each in (batch.inputs, batch.labels, batch.target_mask))
                for inputs, labels, mask in zip(*pieces, strict=True):
                    found, state = read_labels(self.decoder, state, inputs, labels, mask)
                    for row, value in zip(some, found.double().sum(1).tolist(), strict=True):
                        totals[row] += value
                progress.update(begin + len(some))
        return totals


@dataclass(frozen=True)
class WindowScorer:
    """Scores texts with a decoder without a source that reads at most `window` tokens; stride: as in `windows`."""

    decoder: Decoder
    device: torch.device
    window: int
    stride: int

    def __post_init__(self) -> None:
        """Raises ConfigError for an invalid stride."""
        if not 1 <= self.stride <= self.window:
            raise ConfigError(f"the stride is {self.stride} tokens, but must be from 1 to the window of {self.window}")

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[float]:
        """Return the log-probability of each text's ids and end, in order; the decoder must be in evaluation mode.

        batch_size: number of windows read together.
        """
        ids = [[BOS, *text, EOS] for text in texts]
        parts = [
            _Window(row, *each)
            for row, text in enumerate(ids)
            for each in windows(len(text) - 1, self.window, self.stride)
        ]
        parts.sort(key=lambda part: part.end - part.start)
        totals = [0.0] * len(texts)
        with Progress("Scoring", "windows", len(parts)) as progress:
            for begin in range(0, len(parts), batch_size):
                some = parts[begin : begin + batch_size]
                batch = collate_text([ids[part.text][part.start : part.end + 1] for part in some], range(len(some)))
                batch = batch.to(self.device)
                mask = batch.target_mask.clone()  # (B, T)
                for row, part in enumerate(some):
                    mask[row, : part.first - part.start] = False
                found = force(self.decoder, None, batch.inputs, batch.labels, mask).double().sum(1)
                for part, value in zip(some, found.tolist(), strict=True):
                    totals[part.text] += value
                progress.update(begin + len(some))
        return totals
