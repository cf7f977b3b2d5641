"""`BeamSearch`: beam search over any `Decoder`, a step a method."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.decode.beam.best import best
from dragoman.decode.beam.ends import End, Ends
from dragoman.decode.beam.history import History
from dragoman.decode.beginning import begin
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_size import looked_at
from dragoman.decode.rules.carried import Carried
from dragoman.decode.rules.rule import Ended, Rule, Step
from dragoman.models.interface import Decoder, State
from dragoman.text.symbols import EOS


@dataclass(frozen=True)
class Live:
    """The live hypotheses: R = B · w, w places for each of the B sentences that are still searched, best first.

    sentences: (B,) int64, which of the prompts these are. state: the decoder's, before it reads tokens (R, 1). totals:
    (B, w) float32, what they are compared by, summed log-probabilities and what rules add to them; −∞ at a place that
    holds none. own: (B, w), the log-probabilities alone; the same tensor where no rule adds. numbers: (R,) int64, in
    the history. carried: the rules with their states.
    """

    sentences: NDArray[np.int64]
    state: State
    tokens: Tensor
    totals: Tensor
    own: Tensor
    numbers: Tensor
    carried: Carried


class Continuations(NamedTuple):
    """C tokens that may follow each of R hypotheses, by ascending id, each (R, C).

    values: what they add to `Live.totals`, −∞ where a token must not follow; own: to `Live.own`.
    """

    tokens: Tensor
    values: Tensor
    own: Tensor


class Ranked(NamedTuple):
    """The N best continuations of each sentence, best first, each (B, N).

    totals, own: as in `Live`; parents: the place of the hypothesis that is continued; tokens: with what.
    """

    totals: Tensor
    own: Tensor
    parents: Tensor
    tokens: Tensor


class Chosen(NamedTuple):
    """Which of the ranked finish, and which live on.

    finished: (B, M) totals of the first M ranked, −∞ where one does not finish. The others, each (B, w), are of the
    hypotheses that live on, best first, −∞ for none: rows, which of the R before each continues; tokens, with what.
    """

    finished: Tensor
    rows: Tensor
    tokens: Tensor
    totals: Tensor
    own: Tensor


class Found(NamedTuple):
    """A hypothesis that is returned: the tokens that its prompt was continued with, their end not among them.

    totals: log-probabilities of the hypothesis after each of these tokens; empty where they are not kept.
    """

    end: End
    tokens: tuple[int, ...]
    totals: tuple[float, ...]


class Look(NamedTuple):
    """What a step has done, for whoever watches a search.

    before: the hypotheses before it; live: the same once they have read; finished: (B, M) bool, which of the ranked
    have; stays: (B',) int64, the places of the sentences that are searched on; full: (B,) bool, where the longest
    output is reached.
    """

    before: Live
    live: Live
    step: Step
    ranked: Ranked
    chosen: Chosen
    finished: NDArray[np.bool]
    stays: NDArray[np.int64]
    full: NDArray[np.bool]


class BeamSearch:
    """What is searched, `dragoman.decode.search.search` says precisely.

    A search that chooses otherwise among the continuations (in groups, or by the constraints that they meet) is a
    subclass with another `rank` or `choose`; what restricts, adds, scores or narrows is a rule.
    """

    groups = 1
    """Parts of a sentence's beam that are searched apart, each with a list of its own of what it has ended."""

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beam: int,
        wanted: Sequence[int],
        rules: Sequence[Rule],
        keeps_totals: bool = False,
        watch: Callable[[Look], None] | None = None,
    ) -> None:
        """beam: hypotheses kept a sentence; wanted: how many are returned, one number a sentence.

        keeps_totals: for `Found.totals`; watch: is told of each step.
        """
        self.decoder, self.prompts, self.beam, self.rules = decoder, prompts, beam, rules
        self.wanted, self._keeps_totals, self._watch = wanted, keeps_totals, watch
        self._looked_at = int(looked_at(beam))
        self._ends = [[Ends(min(count, self._size)) for _ in range(self.groups)] for count in wanted]
        self._history = History()
        self._steps = 0
        self.prefixes: NDArray[np.float32] = np.zeros((len(prompts), 0), np.float32)
        """(B, T), log-probabilities of the prefixes' tokens, on the right, where totals are kept."""

    @torch.no_grad()
    def run(self) -> list[list[Found]]:
        """The best of each sentence, finished ones first."""
        live = self.begin() if len(self.prompts) else None
        while live is not None:
            live = self.step(live)
        ends = [(end.steps, end.number) for lists in self._ends for each in lists for end in each.best]
        totals = self._history.totals(ends) if self._keeps_totals else [()] * len(ends)
        written = zip(self._history.sequences(ends), totals, strict=True)
        return [
            self.gather([[Found(end, *next(written)) for end in each.best] for each in lists], wanted)
            for lists, wanted in zip(self._ends, self.wanted, strict=True)
        ]

    def begin(self) -> Live:
        """One hypothesis a sentence, which has read all of its prompt but the last token."""
        beginning = begin(self.decoder, self.prompts, self.rules)
        if self._keeps_totals:
            self.prefixes = _host(beginning.prefixes)
        sums = beginning.totals.unsqueeze(1)
        numbers = torch.arange(len(sums), device=sums.device)
        return Live(np.arange(len(sums)), beginning.state, beginning.tokens, sums, sums, numbers, beginning.carried)

    def step(self, before: Live) -> Live | None:
        """One token more for every hypothesis; None once all sentences have left."""
        output, state = self.decoder.step(before.tokens, before.state)
        self._steps += 1
        lengths = self.prompts.prefix_lengths[before.sentences] + self._steps
        step = Step(before.sentences, lengths, before.tokens, output)
        live = replace(before, state=state, carried=before.carried.read(step))
        ranked = self.rank(live, self.expand(live, step))
        chosen = self.choose(live, step, ranked)
        lead = chosen.totals.view(len(chosen.totals), self.groups, -1).amax(2)
        host = _host(torch.cat([chosen.finished, lead], 1))  # the one transfer of a usual step
        if np.isnan(host).any():
            raise ModelError("the model's log-probabilities are not numbers (NaN): damaged or diverged parameters")
        kept = chosen.own.flatten() if self._keeps_totals else None
        self._history.extend(live.numbers[chosen.rows.flatten()], chosen.tokens.flatten(), kept)
        finished, best = host[:, : -self.groups] > -np.inf, host[:, -self.groups :]
        self.finish(live, step, ranked, finished)
        full = self.prompts.limits[step.sentences] == step.lengths
        stays = self.leave(before, live, step, chosen, best, full)
        if self._watch is not None:
            self._watch(Look(before, live, step, ranked, chosen, finished, stays, full))
        return self.reorder(live, chosen, stays) if len(stays) else None

    def expand(self, live: Live, step: Step) -> Continuations:
        """The best continuations of each hypothesis, as many as can matter."""
        logits = step.output.last_logits().float()
        normaliser = logits.logsumexp(1, keepdim=True)
        weighed = live.carried.add(logits, step)
        live.carried.restrict(weighed, step)
        values, tokens = best(weighed, min(self._looked_at, logits.size(1)))
        tokens, order = tokens.sort(dim=1)
        values = (values - normaliser).gather(1, order)
        return Continuations(tokens, values, values if weighed is logits else logits.gather(1, tokens) - normaliser)

    def rank(self, live: Live, continuations: Continuations) -> Ranked:
        """The best continuations of each sentence, equal ones by the place of their hypothesis, then by token."""
        sentences, each = len(live.sentences), continuations.tokens.size(1)
        sums = (live.totals.view(-1, 1) + continuations.values).view(sentences, -1)
        # a stable sort leaves equal sums in the order of place, then token
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : self._looked_at], order[:, : self._looked_at]
        own = totals
        if continuations.own is not continuations.values:
            own = (live.own.view(-1, 1) + continuations.own).view(sentences, -1).gather(1, order)
        return Ranked(totals, own, order // each, continuations.tokens.view(sentences, -1).gather(1, order))

    def choose(self, live: Live, step: Step, ranked: Ranked) -> Chosen:
        """Of the first `beam`, those that end finish; the first `beam` that do not end live on."""
        ends = ranked.tokens == EOS
        finished = ranked.totals.masked_fill(~ends, -torch.inf)[:, : self.beam]
        order = ends.int().argsort(dim=1, stable=True)[:, : self.beam]
        totals = ranked.totals.masked_fill(ends, -torch.inf).gather(1, order)
        if live.carried.narrows:
            counts = np.array([sum(each.count for each in self._ends[sentence]) for sentence in live.sentences])
            sizes = live.carried.sizes(step, counts)
            seen, kept = (torch.from_numpy(each).to(order.device).unsqueeze(1) for each in sizes)
            outside = torch.arange(order.size(1), device=order.device) >= kept
            finished = finished.masked_fill(outside, -torch.inf)
            totals = totals.masked_fill(outside | (order >= seen), -torch.inf)
        own = totals if ranked.own is ranked.totals else ranked.own.gather(1, order)
        first = torch.arange(len(live.sentences), device=order.device).unsqueeze(1) * live.totals.size(1)
        return Chosen(finished, first + ranked.parents.gather(1, order), ranked.tokens.gather(1, order), totals, own)

    def finish(self, live: Live, step: Step, ranked: Ranked, finished: NDArray[np.bool]) -> None:
        """Collect those that finish; finished: (B, M), where `Chosen.finished` holds one."""
        where, ranks = np.nonzero(finished)
        if not len(where):
            return
        sentences, places = (torch.from_numpy(each).to(live.totals.device) for each in (where, ranks))
        rows = sentences * live.totals.size(1) + ranked.parents[sentences, places]
        totals, own = ranked.totals[sentences, places], ranked.own[sentences, places]
        leaving = _Leaving(live.carried, rows, live.numbers[rows], totals, own, self._steps - 1)
        ended = Ended(live.sentences[where], step.lengths[where], True)
        for sentence, end in zip(ended.sentences, leaving.ends(ended), strict=True):
            self._ends[sentence][self._group(end)].add(end)

    def leave(
        self,
        before: Live,
        live: Live,
        step: Step,
        chosen: Chosen,
        best: NDArray[np.float32],
        full: NDArray[np.bool],
    ) -> NDArray[np.int64]:
        """The places of the sentences that stay: they may be longer, and their result may still change.

        best: (B, groups), the largest of `Chosen.totals`; full: (B,) bool, where the longest output is reached.
        """
        dead = best == -np.inf
        for place in np.flatnonzero(full & ~dead.all(1)).tolist():
            numbers = _numbers(chosen.rows)
            now = _Leaving(live.carried, chosen.rows, numbers, chosen.totals, chosen.own, self._steps)
            self._fill(now.of(place), step.sentences[place], step.lengths[place], range(self.groups))
        for place, group in np.argwhere(dead).tolist():
            if not self._ends[step.sentences[place]][group].best:  # no token may follow any live hypothesis
                rows, numbers = _numbers(before.totals), before.numbers.view(before.totals.shape)
                last = _Leaving(before.carried, rows, numbers, before.totals, before.own, self._steps - 1)
                self._fill(last.of(place), step.sentences[place], step.lengths[place] - 1, (group,))
        changes = np.zeros(len(full), np.bool_)
        for group in range(self.groups):
            thresholds = np.array([self._ends[sentence][group].threshold() for sentence in step.sentences])
            changes |= live.carried.bounds(best[:, group], step.sentences) > thresholds
        return np.flatnonzero(changes & ~full & ~dead.all(1))

    def reorder(self, live: Live, chosen: Chosen, stays: NDArray[np.int64]) -> Live:
        """Expansion, reordering and pruning in one row-take; a greedy step that loses no sentence needs none.

        stays: (B',) int64, the places of the sentences that stay.
        """
        count, width = chosen.rows.shape
        numbers = _numbers(chosen.rows)
        if live.totals.size(1) == width == 1 and len(stays) == count:
            tokens, totals, own = chosen.tokens, chosen.totals, chosen.own
            return replace(live, tokens=tokens, totals=totals, own=own, numbers=numbers.flatten())
        kept = torch.from_numpy(stays).to(chosen.rows.device)
        rows, totals = chosen.rows[kept].flatten(), chosen.totals[kept]
        return Live(
            live.sentences[stays],
            live.state.reorder(rows, width),
            chosen.tokens[kept].view(-1, 1),
            totals,
            totals if chosen.own is chosen.totals else chosen.own[kept],
            numbers[kept].flatten(),
            live.carried.reorder(rows, width),
        )

    def _fill(self, leaving: "_Leaving", sentence: int, length: int, groups: Iterable[int]) -> None:
        """Let hypotheses of one sentence that have not finished fill the lists of these groups up."""
        count = len(leaving.totals)
        ends = leaving.ends(Ended(np.full(count, sentence), np.full(count, length), False))
        there = (leaving.totals > -torch.inf).tolist()
        live = [end for end, is_there in zip(ends, there, strict=True) if is_there]
        for group in groups:
            self._ends[sentence][group].fill([end for end in live if self._group(end) == group])

    def gather(self, lists: list[list[Found]], wanted: int) -> list[Found]:
        """What is returned of a sentence, from its lists."""
        return lists[0]

    @property
    def _size(self) -> int:
        """Hypotheses of a group."""
        return self.beam // self.groups

    def _group(self, end: End) -> int:
        """The one that a hypothesis is of: its place in the sentence's beam says it."""
        return end.number % self.beam // self._size


class _Leaving(NamedTuple):
    """N hypotheses that leave, each (N,), or (B, w): their rows in what rules carry, numbers after so many steps."""

    carried: Carried
    rows: Tensor
    numbers: Tensor
    totals: Tensor
    own: Tensor
    steps: int

    def of(self, place: int) -> "_Leaving":
        """Those of one sentence."""
        rows, numbers, totals, own = (each[place] for each in self[1:5])
        return _Leaving(self.carried, rows, numbers, totals, own, self.steps)

    def ends(self, ended: Ended) -> list[End]:
        """With their scores."""
        scores = self.carried.scores(_host(self.totals), self.rows, ended).tolist()
        return [
            End(own, score, ended.finished, self.steps, number)
            for own, score, number in zip(self.own.tolist(), scores, self.numbers.tolist(), strict=True)
        ]


def _numbers(places: Tensor) -> Tensor:
    """0, 1, … in the shape of `places` (B, w)."""
    return torch.arange(places.numel(), device=places.device).view(places.shape)


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array
