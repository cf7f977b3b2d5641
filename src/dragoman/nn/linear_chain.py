"""A linear-chain conditional random field over tags (Lafferty et al. 2001; Lample et al. 2016, section 2.2).

The score of a sequence of tags y for emissions e is start[y_1] + Σ e_t[y_t] + Σ transitions[y_t−1, y_t] + end[y_T], and
its probability is the softmax over all sequences.
"""

import torch
from torch import Tensor, nn

_IMPOSSIBLE = -1e4
"""Score of a forbidden transition. It is finite, so that sums and gradients are always defined."""


class LinearChain(nn.Module):
    """The parameters of a chain of C tags. With zeros, the initial values, each tag is predicted for itself."""

    allowed: Tensor
    allowed_start: Tensor
    allowed_end: Tensor

    def __init__(self, tags: int, allowed: tuple[Tensor, Tensor, Tensor] | None = None) -> None:
        """allowed: bool, whether tag j may follow tag i (C, C), and which tags may begin and end (C,) a chain.

        None: all tags.
        """
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.start, self.end = nn.Parameter(torch.zeros(tags)), nn.Parameter(torch.zeros(tags))
        everything = torch.ones(tags, tags, dtype=torch.bool)
        following, starts, ends = allowed or (everything, everything[0], everything[0])
        self.register_buffer("allowed", following, persistent=False)
        self.register_buffer("allowed_start", starts, persistent=False)
        self.register_buffer("allowed_end", ends, persistent=False)

    def scores(self) -> "ChainScores":
        """Return the scores, in which forbidden transitions are so low that no sequence with one is chosen."""
        return ChainScores(
            self.transitions.masked_fill(~self.allowed, _IMPOSSIBLE),
            self.start.masked_fill(~self.allowed_start, _IMPOSSIBLE),
            self.end.masked_fill(~self.allowed_end, _IMPOSSIBLE),
        )


class ChainScores:
    """The scores of a chain: transitions (C, C), start and end (C,).

    All methods accept chains of different lengths: emissions (B, T, C), and mask (B, T) bool, False after the last
    word. A chain without words has score 0.
    """

    def __init__(self, transitions: Tensor, start: Tensor, end: Tensor) -> None:
        self.transitions, self.start, self.end = transitions, start, end

    def on_cpu(self) -> "ChainScores":
        """Return the scores on the CPU in float64, without gradients."""
        return ChainScores(*(each.detach().cpu().double() for each in (self.transitions, self.start, self.end)))

    def log_likelihoods(self, emissions: Tensor, tags: Tensor, mask: Tensor, cut: Tensor | None = None) -> Tensor:
        """Return the log-probability (B,) of sequences of tags (B, T) int64.

        cut: (B, 2) bool, whether a chain is a part of a longer one, with words before its first or after its last word.
        Start and end scores do not apply there. None: all chains are whole.
        """
        return self.score(emissions, tags, mask, cut) - self.log_normaliser(emissions, mask, cut)

    def score(self, emissions: Tensor, tags: Tensor, mask: Tensor, cut: Tensor | None = None) -> Tensor:
        """Return the scores (B,) of sequences of tags."""
        start, end = self._ends(mask, cut)
        own = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0).sum(1)
        steps = self.transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(1)
        last = tags.gather(1, (mask.sum(1) - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
        rows = torch.arange(len(tags), device=tags.device)
        return own + steps + start[rows, tags[:, 0]] + end[rows, last]

    def log_normaliser(self, emissions: Tensor, mask: Tensor, cut: Tensor | None = None) -> Tensor:
        """Return the logarithm (B,) of the sum of exp(score) over all sequences, by the forward algorithm."""
        start, end = self._ends(mask, cut)
        forward = start + emissions[:, 0]
        for step in range(1, emissions.size(1)):
            following = torch.logsumexp(forward.unsqueeze(2) + self.transitions, 1) + emissions[:, step]
            forward = torch.where(mask[:, step, None], following, forward)
        return torch.logsumexp(forward + end, 1).masked_fill(~mask[:, 0], 0)

    def _ends(self, mask: Tensor, cut: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the start and end scores (B, C) of chains, 0 where a chain is cut and for a chain without words."""
        without = ~mask[:, :1].expand(-1, 2) if cut is None else cut | ~mask[:, :1]
        return (
            self.start.expand(len(mask), -1).masked_fill(without[:, :1], 0),
            self.end.expand(len(mask), -1).masked_fill(without[:, 1:], 0),
        )

    def best(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return the sequences of tags (B, T) int64 with the highest scores (Viterbi), undefined at padding."""
        best = self.start + emissions[:, 0]
        previous = []
        for step in range(1, emissions.size(1)):
            scores, origins = (best.unsqueeze(2) + self.transitions).max(1)
            present = mask[:, step, None]
            best = torch.where(present, scores + emissions[:, step], best)
            # a tag at padding stands for the last tag of the chain
            previous.append(torch.where(present, origins, torch.arange(emissions.size(2), device=mask.device)))
        tags = [(best + self.end).argmax(1)]
        for origins in reversed(previous):
            tags.append(origins.gather(1, tags[-1].unsqueeze(1)).squeeze(1))
        return torch.stack(tags[::-1], 1)

    def marginals(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Return the probability (B, T, C) of each tag of each word (forward–backward), undefined at padding."""
        count = emissions.size(1)
        forward = [self.start + emissions[:, 0]]
        for step in range(1, count):
            following = torch.logsumexp(forward[-1].unsqueeze(2) + self.transitions, 1) + emissions[:, step]
            forward.append(torch.where(mask[:, step, None], following, forward[-1]))
        backward = [self.end.expand_as(forward[0])]
        for step in range(count - 1, 0, -1):
            before = torch.logsumexp(self.transitions + (backward[-1] + emissions[:, step]).unsqueeze(1), 2)
            backward.append(torch.where(mask[:, step, None], before, backward[-1]))
        return (torch.stack(forward, 1) + torch.stack(backward[::-1], 1)).softmax(2)
