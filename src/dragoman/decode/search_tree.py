"""`SearchTree`: every hypothesis that a search has expanded, as data; `TreeRecorder` records it."""

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
from dragoman.decode.rules.beam_sizes import considered
from dragoman.decode.rules.rule import Endings
from dragoman.text.symbols import EOS


class Fate(StrEnum):
    """What became of a hypothesis. Those of the first four lived on, the last four were pruned."""

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
    """A hypothesis.

    parent: the number of the one that it continues, None for the root, which is the prefix. step: how many tokens
    follow the root; token: the last of them, None for the root. log_probability: of that token, natural, by the model
    alone; total: the sum over all tokens, the prefix's too. score: what it would be ranked by if it ended here. rank:
    its place among the continuations of its sentence in this step, of its group if there are several, from 0; None
    for the root and what is forbidden. group: of the beam, 0 where it is not divided.
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
    """Of one sentence: a sequence of nodes, parents first, the root at 0.

    prefix: ids that all of its outputs begin with. It holds what the search looked at: in each step the best
    continuations of a sentence, as many as decide what lives on, and those that would have been among them if no rule
    had forbidden them.
    """

    prefix: tuple[int, ...]
    _nodes: NDArray[np.void]

    @staticmethod
    def of(prefix: tuple[int, ...], nodes: Sequence[Node]) -> "SearchTree":
        """Kept in a tenth of the memory that the nodes take."""
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
        """The ids of a hypothesis, its prefix and its end among them."""
        tokens: list[int] = []
        node = self[number]
        while node.parent is not None:
            assert node.token is not None
            tokens.append(node.token)
            node = self[node.parent]
        return (*self.prefix, *reversed(tokens))

    def ends(self) -> list[int]:
        """The numbers of the hypotheses among which the result was chosen, the best first, finished ones before others.

        In groups the result has some of each; `group` says which are whose.
        """
        kinds = {_FATES.index(fate): fate is not Fate.FINISHED for fate in (Fate.FINISHED, Fate.LIMIT, Fate.STUCK)}
        fates, scores = self._nodes["fate"], self._nodes["score"]
        found = [number for number, fate in enumerate(fates.tolist()) if fate in kinds]
        return sorted(found, key=lambda number: (kinds[int(fates[number])], -float(scores[number])))


class TreeRecorder:
    """To be handed to a `BeamSearch`, which calls it after each step; then `trees` are those of its sentences.

    It computes again what it needs, above all the logits of a step, so that the search itself does nothing for it:
    recorded searches are slower, others are not.
    """

    def __init__(self, prompts: Prompts, beams: Sequence[int], groups: int) -> None:
        """beams: hypotheses kept, one number a sentence; groups: that the beam is divided into."""
        self._prefixes, self._lengths = prompts.prefixes(), prompts.prefix_lengths
        self._sizes, self._groups = [beam // groups for beam in beams], groups
        self._nodes: list[list[Node]] = [[] for _ in beams]
        self._finished = np.zeros((len(beams), groups), np.bool_)
        self._live = np.zeros((0, 0), np.int64)
        """The number of the node at each place of the beam of each sentence that is still searched."""
        self._steps = 0

    def trees(self) -> list[SearchTree]:
        """One a sentence."""
        return [SearchTree.of(prefix, nodes) for prefix, nodes in zip(self._prefixes, self._nodes, strict=True)]

    @torch.no_grad()
    def __call__(self, look: StepTrace) -> None:
        """After a step."""
        if not self._steps:
            self._begin(look.before)
        self._steps += 1
        ranked, forbidden = _candidates(look, look.ranked), _candidates(look, self._forbidden(look))
        after = np.zeros(look.chosen.totals.shape, np.int64)
        for place, sentence in enumerate(look.step.sentences.tolist()):
            nodes = self._nodes[sentence]
            chosen = _chosen(look, place)
            for at, group, rank, fate in self._fates(look, place, sentence, ranked, chosen):
                key = int(ranked.parents[place, at]), int(ranked.tokens[place, at])
                if key in chosen:
                    after[place, chosen[key]] = len(nodes)
                nodes.append(self._node(ranked, place, at, rank, group, fate))
            most = self._groups * self._considered(sentence)
            for at in np.flatnonzero(forbidden.totals[place] > -np.inf).tolist()[:most]:
                group = int(forbidden.parents[place, at]) // self._sizes[sentence]
                nodes.append(self._node(forbidden, place, at, None, group, Fate.FORBIDDEN))
            self._stick(look, place, sentence)
        self._live = after[look.stays]

    def _begin(self, before: LiveHypotheses) -> None:
        """The roots."""
        count, width = before.totals.shape
        self._live = np.zeros((count, width), np.int64)
        first = torch.arange(count, device=before.totals.device) * width
        totals, own = _host(before.totals)[:, 0], _host(before.own)[:, 0].tolist()
        scores = before.rule_states.scores(totals, first, Endings(before.sentences, self._lengths, False)).tolist()
        for nodes, total, score in zip(self._nodes, own, scores, strict=True):
            nodes.append(Node(None, 0, None, total, total, score, None, 0, Fate.CONTINUED))

    def _considered(self, sentence: int) -> int:
        """Continuations of a group that are looked at."""
        return int(considered(self._sizes[sentence]))

    def _fates(
        self, look: StepTrace, place: int, sentence: int, ranked: "_Candidates", chosen: dict[tuple[int, int], int]
    ) -> Iterator[tuple[int, int, int, Fate]]:
        """What became of the ranked of a sentence: where it stands among them, its group, its rank there, its fate."""
        size, each = self._sizes[sentence], ranked.totals.shape[1] // self._groups
        lived_on = Fate.LIMIT if look.full[place] else Fate.CONTINUED if place in look.stays else Fate.DONE
        lowest = _lowest(look.chosen.totals[place].view(self._groups, -1))
        for group in range(self._groups):
            lives = 0
            for rank in range(min(each, self._considered(sentence))):
                at = group * each + rank
                total, token = ranked.totals[place, at], int(ranked.tokens[place, at])
                if total == -np.inf:
                    break
                if token == EOS:
                    ended = at < look.finished.shape[1] and bool(look.finished[place, at])
                    self._finished[sentence, group] |= ended
                    fate = Fate.FINISHED if ended else Fate.NARROWED if rank < size else Fate.OUTSIDE
                elif (int(ranked.parents[place, at]), token) in chosen:
                    fate = lived_on
                elif lives < size and look.live.rule_states.narrows:
                    fate = Fate.NARROWED
                else:
                    fate = Fate.PASSED if lives < size or total > lowest[group] else Fate.OUTSIDE
                lives += token != EOS
                yield at, group, rank, fate

    def _node(self, candidates: "_Candidates", place: int, at: int, rank: int | None, group: int, fate: Fate) -> Node:
        return Node(
            parent=int(self._live[place, candidates.parents[place, at]]),
            step=self._steps,
            token=int(candidates.tokens[place, at]),
            log_probability=float(candidates.log_probabilities[place, at]),
            total=float(candidates.own[place, at]),
            score=float(candidates.scores[place, at]),
            rank=rank,
            group=group,
            fate=fate,
        )

    def _stick(self, look: StepTrace, place: int, sentence: int) -> None:
        """Where a group has nothing to go on with and none has finished, the hypotheses before are its result."""
        before = _host(look.before.totals[place]).reshape(min(self._groups, look.before.totals.size(1)), -1)
        lowest = _lowest(look.chosen.totals[place].view(self._groups, -1))
        for group, totals in enumerate(before):
            if lowest[group] == np.inf and not self._finished[sentence, group]:
                for at in np.flatnonzero(totals > -np.inf).tolist():
                    number = int(self._live[place, group * len(totals) + at])
                    self._nodes[sentence][number] = self._nodes[sentence][number]._replace(fate=Fate.STUCK)

    def _forbidden(self, look: StepTrace) -> RankedContinuations:
        """What would have been looked at, had no restriction forbidden it."""
        live, step, ranked = look.live, look.step, look.ranked
        logits = step.output.last_logits().float()
        normaliser = logits.logsumexp(1, keepdim=True)
        weighed = live.rule_states.add(logits, step)
        allowed = weighed.clone()
        live.rule_states.restrict(allowed, step)
        sentences, width = live.totals.shape
        groups = ranked.totals.view(sentences, self._groups, -1)
        last = [min(self._considered(sentence), groups.size(2)) - 1 for sentence in step.sentences.tolist()]
        at = torch.tensor(last, device=groups.device).view(-1, 1, 1).expand(-1, self._groups, 1)
        worst = groups.gather(2, at).expand(-1, -1, -(-width // self._groups)).reshape(sentences, -1)[:, :width]
        sums = live.totals.view(-1, 1) + (weighed - normaliser)
        unseen = (allowed > -torch.inf) | (sums <= worst.reshape(-1, 1))
        sums = sums.masked_fill(unseen, -torch.inf).view(sentences, -1)
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : ranked.totals.size(1)], order[:, : ranked.totals.size(1)]
        own = (live.own.view(-1, 1) + (logits - normaliser)).view(sentences, -1).gather(1, order)
        return RankedContinuations(totals, own, order // logits.size(1), order % logits.size(1))


class _Candidates(NamedTuple):
    """N continuations of each sentence, each (B, N): `RankedContinuations` with the scores that they would get now."""

    totals: NDArray[np.float32]
    own: NDArray[np.float32]
    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    scores: NDArray[np.float64]


def _candidates(look: StepTrace, ranked: RankedContinuations) -> _Candidates:
    sentences, width = look.live.totals.shape
    first = torch.arange(sentences, device=ranked.parents.device).unsqueeze(1) * width
    rows, totals, own = (first + ranked.parents).flatten(), _host(ranked.totals), _host(ranked.own)
    where, ends = np.arange(sentences).repeat(totals.shape[1]), (ranked.tokens == EOS).flatten()
    scores = np.zeros(totals.size)
    for finished in (True, False):
        which = (ends == finished).nonzero().squeeze(1)
        at = which.cpu().numpy()
        ended = Endings(look.step.sentences[where[at]], look.step.lengths[where[at]], finished)
        scores[at] = look.live.rule_states.scores(totals.ravel()[at], rows[which], ended)
    before = _host(look.live.own.flatten()[rows]).reshape(totals.shape)
    with np.errstate(invalid="ignore"):  # −∞ less −∞, where there is none
        log_probabilities = own - before
    parents, tokens = ranked.parents.cpu().numpy(), ranked.tokens.cpu().numpy()
    return _Candidates(totals, own, parents, tokens, log_probabilities, scores.reshape(totals.shape))


def _chosen(look: StepTrace, place: int) -> dict[tuple[int, int], int]:
    """The place in the beam of each that lives on, by the place of its parent and its token."""
    first = place * look.live.totals.size(1)
    parts = (look.chosen.rows[place] - first, look.chosen.tokens[place], look.chosen.totals[place])
    rows = zip(*(part.tolist() for part in parts), strict=True)
    return {(parent, token): at for at, (parent, token, total) in enumerate(rows) if total > -np.inf}


def _lowest(totals: Tensor) -> NDArray[np.float32]:
    """The least of each row that is there; ∞ where none is."""
    return _host(totals.masked_fill(totals == -torch.inf, torch.inf).amin(1))


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array
