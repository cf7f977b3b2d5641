"""Log-probabilities of texts of any length, computed in windows or, by a recurrent model, without windows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate_text
from dragoman.decode.forced import CHUNK, force, read_labels
from dragoman.inference.generation.writer import ScoredToken
from dragoman.models.interface import Decoder
from dragoman.text.symbols import BOS, EOS, UNK


class TextLogProbability(NamedTuple):
    """The log-probability (nats) of a text, and the part of its unknown tokens."""

    total: float
    unknown: float


PIECE = 256
"""Number of tokens of each text that `WholeScorer` reads at once. It limits memory, however long the texts are."""


class _Window(NamedTuple):
    """A window of a text, in which the tokens from `start` predict the labels from `first` to `end`.

    text: index of the text. start, first, end: as in `windows`.
    """

    text: int
    start: int
    first: int
    end: int


def windows(labels: int, window: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Yield start, first and end of each window of a text with `labels` labels.

    A window reads tokens from `start` and predicts the labels from `first` to `end` (exclusive). Each label is
    predicted once. The first window predicts all its labels. Each later window predicts its last `stride` labels, which
    have a context of at least `window` − `stride` tokens.
    """
    first = 0
    while first < labels:
        start, end = (0, window) if first == 0 else (first + stride - window, first + stride)
        yield start, first, min(labels, end)
        first = end


@dataclass(frozen=True)
class WholeScorer:
    """Scores texts with a recurrent decoder without a source.

    The decoder reads each text from beginning to end, in pieces of `PIECE` tokens.
    """

    decoder: Decoder
    device: torch.device

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[TextLogProbability]:
        """Return the log-probability of each text's ids and its end symbol, in order.

        The decoder must be in evaluation mode. batch_size: number of texts that are read together.
        """
        totals = np.zeros((len(texts), 2))
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        with Progress("Scoring", "texts", len(order)) as progress:
            for begin in range(0, len(order), batch_size):
                rows = order[begin : begin + batch_size]
                batch = collate_text([[BOS, *texts[row], EOS] for row in rows], rows).to(self.device)
                state = self.decoder.start(None)
                pieces = (torch.split(each, PIECE, 1) for each in (batch.inputs, batch.labels, batch.target_mask))
                for inputs, labels, mask in zip(*pieces, strict=True):
                    scores, state = read_labels(self.decoder, state, inputs, labels, mask)
                    totals[rows] += _sums(scores, labels)
                progress.update(begin + len(rows))
        return [TextLogProbability(*sums) for sums in totals.tolist()]


@dataclass(frozen=True)
class WindowScorer:
    """Scores texts with a decoder without a source that reads at most `window` tokens at once.

    stride: number of labels that each window after the first predicts.
    """

    decoder: Decoder
    device: torch.device
    window: int
    stride: int

    def __post_init__(self) -> None:
        """Raise ConfigError for an invalid stride."""
        if not 1 <= self.stride <= self.window:
            raise ConfigError(f"the stride is {self.stride} tokens, but must be from 1 to the window of {self.window}")

    def log_probabilities(self, texts: Sequence[Sequence[int]], batch_size: int) -> list[TextLogProbability]:
        """Return the log-probability of each text's ids and its end symbol, in order.

        The decoder must be in evaluation mode. batch_size: number of windows that are read together.
        """
        ids = [[BOS, *text, EOS] for text in texts]
        all_windows = [
            _Window(row, *limits)
            for row, text in enumerate(ids)
            for limits in windows(len(text) - 1, self.window, self.stride)
        ]
        all_windows.sort(key=lambda window: window.end - window.start)
        totals = np.zeros((len(texts), 2))
        with Progress("Scoring", "windows", len(all_windows)) as progress:
            for begin in range(0, len(all_windows), batch_size):
                some = all_windows[begin : begin + batch_size]
                tokens = [ids[window.text][window.start : window.end + 1] for window in some]
                batch = collate_text(tokens, range(len(some))).to(self.device)
                mask = batch.target_mask.clone()  # (B, T)
                for row, window in enumerate(some):
                    mask[row, : window.first - window.start] = False
                scores = force(self.decoder, None, batch.inputs, batch.labels, mask)
                np.add.at(totals, [window.text for window in some], _sums(scores, batch.labels))
                progress.update(begin + len(some))
        return [TextLogProbability(*sums) for sums in totals.tolist()]


@torch.no_grad()
def scored_tokens(decoder: Decoder, device: torch.device, ids: Sequence[int], best: int) -> list[ScoredToken]:
    """Return the log-probability of each token given the start symbol and the preceding tokens.

    best: number of most probable tokens per position. If `ids` begins with the start symbol, the latter has no
    log-probability. The decoder must be in evaluation mode.
    """
    first = [ScoredToken(BOS, None)] if ids[:1] == [BOS] else []
    rest = list(ids[len(first) :])
    if not rest:
        return first
    output, _ = decoder.step(torch.tensor([[BOS, *rest[:-1]]], device=device), decoder.start(None))
    tokens: list[ScoredToken] = []
    for start in range(0, len(rest), CHUNK):
        labels = torch.tensor(rest[start : start + CHUNK], device=device)  # (N,)
        logits = output.logits(torch.arange(start, start + len(labels), device=device)).float()
        scores = logits.log_softmax(1)  # (N, V)
        own = scores.gather(1, labels[:, None]).squeeze(1).tolist()
        values, indices = (each.tolist() for each in scores.topk(min(best, scores.size(1)), 1))
        tokens += [
            ScoredToken(token, score, tuple(zip(numbers, others, strict=True)))
            for token, score, numbers, others in zip(labels.tolist(), own, indices, values, strict=True)
        ]
    return [*first, *tokens]


def _sums(scores: Tensor, labels: Tensor) -> NDArray[np.float64]:
    """Return the summed log-probabilities of all labels and of the unknown labels of each row, (B, 2).

    scores: (B, T), 0 for labels that are not scored. labels: (B, T).
    """
    exact = scores.double()
    sums: NDArray[np.float64] = torch.stack([exact.sum(1), (exact * (labels == UNK)).sum(1)], 1).cpu().numpy()
    return sums
