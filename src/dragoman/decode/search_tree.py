"""`SearchTree`: all hypotheses that a search has considered. `TreeRecorder`: records the tree during the search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.decode.beam.hypotheses import LiveHypotheses, RankedContinuations, StepTrace
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import candidates
from dragoman.decode.rules.rule import Endings
from dragoman.text.symbols import EOS


class Fate(StrEnum):
    """The outcome of a hypothesis in a search. The last four are the reasons for pruning."""

    CONTINUED = "continued"
    LIMIT = "unfinished: longest output"
    STUCK = "unfinished: nothing may follow"
    DONE = "left: sentence done"
    FINISHED = "finished"
    OUTSIDE = "pruned: outside the beam"
    NARROWED = "pruned: the beam has shrunk"
    PASSED = "pruned: passed over"
    FORBIDDEN = "pruned: forbidden"


class Node(NamedTuple):
    """A node of a search tree: a hypothesis.

    parent: number of the parent node, None for the root, which is the prefix. step: number of tokens after the root.
    token: the last token, None for the root. log_probability: natural log-probability of this token under the model
    alone. total: the sum over all tokens, including the prefix. score: the score of an output that ends with this
    token. rank: rank among the continuations of the sentence (or of the group) in this step, from 0; None for the root
    and for forbidden continuations. group: group of the beam, 0 if the beam is not divided.
    """

    parent: int | None
    step: int
    token: int | None
    log_probability: float
    total: float
    score: float
    rank: int | None
    group: int
    fate: Fate


_FATES = tuple(Fate)
_NONE = -1
_FIELDS = np.dtype(
    [
        ("parent", np.int32),
        ("step", np.int32),
        ("token", np.int32),
        ("log_probability", np.float32),
        ("total", np.float32),
        ("score", np.float64),
        ("rank", np.int32),
        ("group", np.int32),
        ("fate", np.int8),
    ]
)


@dataclass(frozen=True, eq=False)
class SearchTree:
    """The tree of one sentence: a sequence of nodes, parents first, with the root at 0.

    prefix: token ids at the start of all outputs. The nodes are the continuations that the search considered: in each
    step, the best continuations, from which the live hypotheses were chosen, and the forbidden continuations that would
    otherwise have been among the best.
    """

    prefix: tuple[int, ...]
    _nodes: NDArray[np.void]

    @staticmethod
    def of(prefix: tuple[int, ...], nodes: Sequence[Node]) -> "SearchTree":
        """Create a tree that stores the nodes in an array, which needs a tenth of the memory."""
        rows = [
            (
                *(_NONE if value is None else value for value in node[:-1]),
                _FATES.index(node.fate),
            )
            for node in nodes
        ]
        return SearchTree(prefix, np.array(rows, _FIELDS))

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> Node:
        parent, step, token, log_probability, total, score, rank, group, fate = self._nodes[number].item()
        return Node(
            None if parent == _NONE else parent,
            step,
            None if token == _NONE else token,
            log_probability,
            total,
            score,
            None if rank == _NONE else rank,
            group,
            _FATES[fate],
        )

    def __iter__(self) -> Iterator[Node]:
        return (self[number] for number in range(len(self)))

    def path(self, number: int) -> tuple[int, ...]:
        """Return the token ids of a hypothesis, including the prefix and, if it is finished, the end of sentence."""
        tokens: list[int] = []
        node = self[number]
        while node.parent is not None:
            assert node.token is not None
            tokens.append(node.token)
            node = self[node.parent]
        return (*self.prefix, *reversed(tokens))

    def deepest(self, tokens: Sequence[int]) -> int:
        """Return the number of the last hypothesis in the tree that is a prefix of an output.

        tokens: the ids of the output, including the prefix and, if it is finished, the end of sentence.
        """
        number = 0
        for token in tokens[len(self.prefix) :]:
            children = (self._nodes["parent"] == number) & (self._nodes["token"] == token)
            if not children.any():
                break
            number = int(children.argmax())
        return number

    def ends(self) -> list[int]:
        """Return the numbers of the ended hypotheses, from which the search selected its result.

        Finished hypotheses come first; each kind is sorted by score. With several groups, the result contains
        hypotheses of each group (see `Node.group`).
        """
        order = {_FATES.index(fate): fate is not Fate.FINISHED for fate in (Fate.FINISHED, Fate.LIMIT, Fate.STUCK)}
        fates, scores = self._nodes["fate"], self._nodes["score"]
        ended = [number for number, fate in enumerate(fates.tolist()) if fate in order]
        return sorted(ended, key=lambda number: (order[int(fates[number])], -float(scores[number])))


class TreeRecorder:
    """An observer of a `BeamSearch`, called after each step; `trees` returns one search tree per sentence.

    Values such as the logits of each step are recomputed. This makes a recorded search slower, but adds no work to a
    search without a recorder.
    """

    def __init__(self, prompts: Prompts, beams: Sequence[int], groups: int) -> None:
        """beams: beam size of each sentence; groups: number of groups into which the beams are divided."""
        self._prefixes, self._lengths = prompts.prefixes(), prompts.prefix_lengths
        self._sizes, self._groups = [beam // groups for beam in beams], groups
        self._nodes: list[list[Node]] = [[] for _ in beams]
        self._finished = np.zeros((len(beams), groups), np.bool_)
        self._live = np.zeros((0, 0), np.int64)
        """(B, K): number of the node in each slot, for sentences whose search has not ended."""
        self._steps = 0

    def trees(self) -> list[SearchTree]:
        """Return one tree per sentence."""
        return [SearchTree.of(prefix, nodes) for prefix, nodes in zip(self._prefixes, self._nodes, strict=True)]

    @torch.no_grad()
    def __call__(self, trace: StepTrace) -> None:
        """Record one step of the search."""
        if not self._steps:
            self._add_roots(trace.before)
        self._steps += 1
        ranked, forbidden = _candidates(trace, trace.ranked), _candidates(trace, self._forbidden(trace))
        after = np.zeros(trace.chosen.totals.shape, np.int64)
        for position, sentence in enumerate(trace.step.sentences.tolist()):
            nodes = self._nodes[sentence]
            chosen = _chosen(trace, position)
            for at, group, rank, fate in self._fates(trace, position, sentence, ranked, chosen):
                key = int(ranked.parents[position, at]), int(ranked.tokens[position, at])
                if key in chosen:
                    after[position, chosen[key]] = len(nodes)
                nodes.append(self._node(ranked, position, at, rank=rank, group=group, fate=fate))
            most = self._groups * self._candidate_count(sentence)
            for at in np.flatnonzero(forbidden.totals[position] > -np.inf).tolist()[:most]:
                group = int(forbidden.parents[position, at]) // self._sizes[sentence]
                nodes.append(self._node(forbidden, position, at, rank=None, group=group, fate=Fate.FORBIDDEN))
            self._mark_stuck(trace, position, sentence)
        self._live = after[trace.stays]

    def _add_roots(self, before: LiveHypotheses) -> None:
        """Add the root node of each tree."""
        count, width = before.totals.shape
        self._live = np.zeros((count, width), np.int64)
        first = torch.arange(count, device=before.totals.device) * width
        totals, sums = _host(before.totals)[:, 0], _host(before.log_probabilities)[:, 0].tolist()
        scores = before.rule_states.scores(totals, first, Endings(before.sentences, self._lengths, False)).tolist()
        for nodes, total, score in zip(self._nodes, sums, scores, strict=True):
            nodes.append(Node(None, 0, None, total, total, score, None, 0, Fate.CONTINUED))

    def _candidate_count(self, sentence: int) -> int:
        """Return the number of continuations considered per group."""
        return int(candidates(self._sizes[sentence]))

    def _fates(
        self, trace: StepTrace, position: int, sentence: int, ranked: "_Candidates", chosen: dict[tuple[int, int], int]
    ) -> Iterator[tuple[int, int, int, Fate]]:
        """Yield the position, group, rank within the group, and fate of each ranked continuation of a sentence."""
        size, each = self._sizes[sentence], ranked.totals.shape[1] // self._groups
        live_fate = Fate.LIMIT if trace.full[position] else Fate.CONTINUED if position in trace.stays else Fate.DONE
        lowest = _lowest(trace.chosen.totals[position].view(self._groups, -1))
        for group in range(self._groups):
            live_count = 0
            for rank in range(min(each, self._candidate_count(sentence))):
                at = group * each + rank
                total, token = ranked.totals[position, at], int(ranked.tokens[position, at])
                if total == -np.inf:
                    break
                if token == EOS:
                    ended = at < trace.finished.shape[1] and bool(trace.finished[position, at])
                    self._finished[sentence, group] |= ended
                    fate = Fate.FINISHED if ended else Fate.NARROWED if rank < size else Fate.OUTSIDE
                elif (int(ranked.parents[position, at]), token) in chosen:
                    fate = live_fate
                elif live_count < size and trace.live.rule_states.narrows:
                    fate = Fate.NARROWED
                else:
                    fate = Fate.PASSED if live_count < size or total > lowest[group] else Fate.OUTSIDE
                live_count += token != EOS
                yield at, group, rank, fate

    def _node(
        self, candidates: "_Candidates", position: int, at: int, *, rank: int | None, group: int, fate: Fate
    ) -> Node:
        return Node(
            parent=int(self._live[position, candidates.parents[position, at]]),
            step=self._steps,
            token=int(candidates.tokens[position, at]),
            log_probability=float(candidates.log_probabilities[position, at]),
            total=float(candidates.sums[position, at]),
            score=float(candidates.scores[position, at]),
            rank=rank,
            group=group,
            fate=fate,
        )

    def _mark_stuck(self, trace: StepTrace, position: int, sentence: int) -> None:
        """Mark the previous hypotheses of a group as stuck if no token may follow and no hypothesis has finished."""
        before = _host(trace.before.totals[position]).reshape(min(self._groups, trace.before.totals.size(1)), -1)
        lowest = _lowest(trace.chosen.totals[position].view(self._groups, -1))
        for group, totals in enumerate(before):
            if lowest[group] == np.inf and not self._finished[sentence, group]:
                for at in np.flatnonzero(totals > -np.inf).tolist():
                    number = int(self._live[position, group * len(totals) + at])
                    self._nodes[sentence][number] = self._nodes[sentence][number]._replace(fate=Fate.STUCK)

    def _forbidden(self, trace: StepTrace) -> RankedContinuations:
        """Return the forbidden continuations that the search would otherwise have considered."""
        live, step, ranked = trace.live, trace.step, trace.ranked
        logits = step.output.last_logits().float()  # (B·K, V)
        normaliser = logits.logsumexp(1, keepdim=True)  # (B·K, 1)
        weighed = live.rule_states.add(logits, step)
        allowed = weighed.clone()
        live.rule_states.restrict(allowed, step)
        sentences, width = live.totals.shape
        groups = ranked.totals.view(sentences, self._groups, -1)  # (B, G, N)
        last = [min(self._candidate_count(sentence), groups.size(2)) - 1 for sentence in step.sentences.tolist()]
        at = torch.tensor(last, device=groups.device).view(-1, 1, 1).expand(-1, self._groups, 1)
        worst = (
            groups.gather(2, at).expand(-1, -1, -(-width // self._groups)).reshape(sentences, -1)[:, :width]
        )  # (B, K)
        sums = live.totals.view(-1, 1) + (weighed - normaliser)  # (B·K, V)
        excluded = (allowed > -torch.inf) | (sums <= worst.reshape(-1, 1))
        sums = sums.masked_fill(excluded, -torch.inf).view(sentences, -1)  # (B, K·V)
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : ranked.totals.size(1)], order[:, : ranked.totals.size(1)]
        sums = (live.log_probabilities.view(-1, 1) + (logits - normaliser)).view(sentences, -1).gather(1, order)
        return RankedContinuations(totals, sums, order // logits.size(1), order % logits.size(1))


class _Candidates(NamedTuple):
    """`RankedContinuations` on the host, each (B, N). scores: the scores of outputs that end with these tokens."""

    totals: NDArray[np.float32]
    sums: NDArray[np.float32]
    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    scores: NDArray[np.float64]


def _candidates(trace: StepTrace, ranked: RankedContinuations) -> _Candidates:
    sentences, width = trace.live.totals.shape
    first = torch.arange(sentences, device=ranked.parents.device).unsqueeze(1) * width
    rows, totals, sums = (first + ranked.parents).flatten(), _host(ranked.totals), _host(ranked.log_probabilities)
    positions, ends = np.arange(sentences).repeat(totals.shape[1]), (ranked.tokens == EOS).flatten()
    scores = np.zeros(totals.size)
    for finished in (True, False):
        indices = (ends == finished).nonzero().squeeze(1)
        at = indices.cpu().numpy()
        ended = Endings(trace.step.sentences[positions[at]], trace.step.lengths[positions[at]], finished)
        scores[at] = trace.live.rule_states.scores(totals.ravel()[at], rows[indices], ended)
    before = _host(trace.live.log_probabilities.flatten()[rows]).reshape(totals.shape)
    with np.errstate(invalid="ignore"):  # −∞ − −∞ for continuations that do not exist
        log_probabilities = sums - before
    parents, tokens = ranked.parents.cpu().numpy(), ranked.tokens.cpu().numpy()
    return _Candidates(totals, sums, parents, tokens, log_probabilities, scores.reshape(totals.shape))


def _chosen(trace: StepTrace, position: int) -> dict[tuple[int, int], int]:
    """Map the parent's slot and the token of each live hypothesis to its new slot."""
    first = position * trace.live.totals.size(1)
    parts = (trace.chosen.rows[position] - first, trace.chosen.tokens[position], trace.chosen.totals[position])
    rows = zip(*(part.tolist() for part in parts), strict=True)
    return {(parent, token): at for at, (parent, token, total) in enumerate(rows) if total > -np.inf}


def _lowest(totals: Tensor) -> NDArray[np.float32]:
    """Return the smallest finite value of each row, ∞ if there is none."""
    return _host(totals.masked_fill(totals == -torch.inf, torch.inf).amin(1))


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array
