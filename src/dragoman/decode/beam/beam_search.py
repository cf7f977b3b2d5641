"""`BeamSearch`: beam search over any `Decoder`, a step a method."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.decode.beam.hypotheses import (
    Continuations,
    FoundHypothesis,
    History,
    LinkedHypothesis,
    LiveHypotheses,
    NBestList,
    RankedContinuations,
    Selection,
    StepTrace,
)
from dragoman.decode.forced import read_prompts
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import considered
from dragoman.decode.rules.rule import Endings, Rule, RuleStates, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS


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
        watch: Callable[[StepTrace], None] | None = None,
    ) -> None:
        """beam: hypotheses kept a sentence; wanted: how many are returned, one number a sentence.

        keeps_totals: for `FoundHypothesis.totals`; watch: is told of each step.
        """
        self.decoder, self.prompts, self.beam, self.rules = decoder, prompts, beam, rules
        self.wanted, self._keeps_totals, self._watch = wanted, keeps_totals, watch
        self._considered = int(considered(beam))
        self._ends = [[NBestList(min(count, self._size)) for _ in range(self.groups)] for count in wanted]
        self._history = History()
        self._steps = 0
        self.prefixes: NDArray[np.float32] = np.zeros((len(prompts), 0), np.float32)
        """(B, T), log-probabilities of the prefixes' tokens, on the right, where totals are kept."""

    @torch.no_grad()
    def run(self) -> list[list[FoundHypothesis]]:
        """The best of each sentence, finished ones first."""
        live = self.start() if len(self.prompts) else None
        while live is not None:
            live = self.step(live)
        ends = [(end.steps, end.number) for lists in self._ends for each in lists for end in each.best]
        totals = self._history.totals(ends) if self._keeps_totals else [()] * len(ends)
        written = zip(self._history.sequences(ends), totals, strict=True)
        return [
            self.gather([[FoundHypothesis(end, *next(written)) for end in each.best] for each in lists], wanted)
            for lists, wanted in zip(self._ends, self.wanted, strict=True)
        ]

    def start(self) -> LiveHypotheses:
        """One hypothesis a sentence, which has read all of its prompt but the last token."""
        beginning = read_prompts(self.decoder, self.prompts, self.rules)
        if self._keeps_totals:
            self.prefixes = _host(beginning.prefixes)
        sums = beginning.totals.unsqueeze(1)
        numbers = torch.arange(len(sums), device=sums.device)
        return LiveHypotheses(
            np.arange(len(sums)), beginning.state, beginning.tokens, sums, sums, numbers, beginning.rule_states
        )

    def step(self, before: LiveHypotheses) -> LiveHypotheses | None:
        """One token more for every hypothesis; None once all sentences have left."""
        output, state = self.decoder.step(before.tokens, before.state)
        self._steps += 1
        lengths = self.prompts.prefix_lengths[before.sentences] + self._steps
        step = Step(before.sentences, lengths, before.tokens, output)
        live = replace(before, state=state, rule_states=before.rule_states.read(step))
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
            self._watch(StepTrace(before, live, step, ranked, chosen, finished, stays, full))
        return self.reorder(live, chosen, stays) if len(stays) else None

    def expand(self, live: LiveHypotheses, step: Step) -> Continuations:
        """The best continuations of each hypothesis, as many as can matter."""
        logits = step.output.last_logits().float()
        normaliser = logits.logsumexp(1, keepdim=True)
        weighed = live.rule_states.add(logits, step)
        live.rule_states.restrict(weighed, step)
        values, tokens = best(weighed, min(self._considered, logits.size(1)))
        tokens, order = tokens.sort(dim=1)
        values = (values - normaliser).gather(1, order)
        return Continuations(tokens, values, values if weighed is logits else logits.gather(1, tokens) - normaliser)

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """The best continuations of each sentence, equal ones by the place of their hypothesis, then by token."""
        sentences, each = len(live.sentences), continuations.tokens.size(1)
        sums = (live.totals.view(-1, 1) + continuations.values).view(sentences, -1)
        # a stable sort leaves equal sums in the order of place, then token
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        totals, order = totals[:, : self._considered], order[:, : self._considered]
        own = totals
        if continuations.own is not continuations.values:
            own = (live.own.view(-1, 1) + continuations.own).view(sentences, -1).gather(1, order)
        return RankedContinuations(
            totals, own, order // each, continuations.tokens.view(sentences, -1).gather(1, order)
        )

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Of the first `beam`, those that end finish; the first `beam` that do not end live on."""
        ends = ranked.tokens == EOS
        finished = ranked.totals.masked_fill(~ends, -torch.inf)[:, : self.beam]
        order = ends.int().argsort(dim=1, stable=True)[:, : self.beam]
        totals = ranked.totals.masked_fill(ends, -torch.inf).gather(1, order)
        if live.rule_states.narrows:
            counts = np.array([sum(each.count for each in self._ends[sentence]) for sentence in live.sentences])
            sizes = live.rule_states.sizes(step, counts)
            seen, kept = (torch.from_numpy(each).to(order.device).unsqueeze(1) for each in sizes)
            outside = torch.arange(order.size(1), device=order.device) >= kept
            finished = finished.masked_fill(outside, -torch.inf)
            totals = totals.masked_fill(outside | (order >= seen), -torch.inf)
        own = totals if ranked.own is ranked.totals else ranked.own.gather(1, order)
        first = torch.arange(len(live.sentences), device=order.device).unsqueeze(1) * live.totals.size(1)
        return Selection(finished, first + ranked.parents.gather(1, order), ranked.tokens.gather(1, order), totals, own)

    def finish(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations, finished: NDArray[np.bool]) -> None:
        """Collect those that finish; finished: (B, M), where `Selection.finished` holds one."""
        where, ranks = np.nonzero(finished)
        if not len(where):
            return
        sentences, places = (torch.from_numpy(each).to(live.totals.device) for each in (where, ranks))
        rows = sentences * live.totals.size(1) + ranked.parents[sentences, places]
        totals, own = ranked.totals[sentences, places], ranked.own[sentences, places]
        leaving = _EndCandidates(live.rule_states, rows, live.numbers[rows], totals, own, self._steps - 1)
        ended = Endings(live.sentences[where], step.lengths[where], True)
        for sentence, end in zip(ended.sentences, leaving.ends(ended), strict=True):
            self._ends[sentence][self._group(end)].add(end)

    def leave(
        self,
        before: LiveHypotheses,
        live: LiveHypotheses,
        step: Step,
        chosen: Selection,
        best: NDArray[np.float32],
        full: NDArray[np.bool],
    ) -> NDArray[np.int64]:
        """The places of the sentences that stay: they may be longer, and their result may still change.

        best: (B, groups), the largest of `Selection.totals`; full: (B,) bool, where the longest output is reached.
        """
        dead = best == -np.inf
        for place in np.flatnonzero(full & ~dead.all(1)).tolist():
            numbers = _numbers(chosen.rows)
            now = _EndCandidates(live.rule_states, chosen.rows, numbers, chosen.totals, chosen.own, self._steps)
            self._fill(now.of(place), step.sentences[place], step.lengths[place], range(self.groups))
        for place, group in np.argwhere(dead).tolist():
            if not self._ends[step.sentences[place]][group].best:  # no token may follow any live hypothesis
                rows, numbers = _numbers(before.totals), before.numbers.view(before.totals.shape)
                last = _EndCandidates(before.rule_states, rows, numbers, before.totals, before.own, self._steps - 1)
                self._fill(last.of(place), step.sentences[place], step.lengths[place] - 1, (group,))
        changes = np.zeros(len(full), np.bool_)
        for group in range(self.groups):
            thresholds = np.array([self._ends[sentence][group].threshold() for sentence in step.sentences])
            changes |= live.rule_states.bounds(best[:, group], step.sentences) > thresholds
        return np.flatnonzero(changes & ~full & ~dead.all(1))

    def reorder(self, live: LiveHypotheses, chosen: Selection, stays: NDArray[np.int64]) -> LiveHypotheses:
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
        return LiveHypotheses(
            live.sentences[stays],
            live.state.reorder(rows, width),
            chosen.tokens[kept].view(-1, 1),
            totals,
            totals if chosen.own is chosen.totals else chosen.own[kept],
            numbers[kept].flatten(),
            live.rule_states.reorder(rows, width),
        )

    def _fill(self, leaving: "_EndCandidates", sentence: int, length: int, groups: Iterable[int]) -> None:
        """Let hypotheses of one sentence that have not finished fill the lists of these groups up."""
        count = len(leaving.totals)
        ends = leaving.ends(Endings(np.full(count, sentence), np.full(count, length), False))
        there = (leaving.totals > -torch.inf).tolist()
        live = [end for end, is_there in zip(ends, there, strict=True) if is_there]
        for group in groups:
            self._ends[sentence][group].fill([end for end in live if self._group(end) == group])

    def gather(self, lists: list[list[FoundHypothesis]], wanted: int) -> list[FoundHypothesis]:
        """What is returned of a sentence, from its lists."""
        return lists[0]

    @property
    def _size(self) -> int:
        """Hypotheses of a group."""
        return self.beam // self.groups

    def _group(self, end: LinkedHypothesis) -> int:
        """The one that a hypothesis is of: its place in the sentence's beam says it."""
        return end.number % self.beam // self._size


class _EndCandidates(NamedTuple):
    """N hypotheses that leave, each (N,), or (B, w): their rows in what rules carry, numbers after so many steps."""

    rule_states: RuleStates
    rows: Tensor
    numbers: Tensor
    totals: Tensor
    own: Tensor
    steps: int

    def of(self, place: int) -> "_EndCandidates":
        """Those of one sentence."""
        rows, numbers, totals, own = (each[place] for each in self[1:5])
        return _EndCandidates(self.rule_states, rows, numbers, totals, own, self.steps)

    def ends(self, ended: Endings) -> list[LinkedHypothesis]:
        """With their scores."""
        scores = self.rule_states.scores(_host(self.totals), self.rows, ended).tolist()
        return [
            LinkedHypothesis(own, score, ended.finished, self.steps, number)
            for own, score, number in zip(self.own.tolist(), scores, self.numbers.tolist(), strict=True)
        ]


def _numbers(places: Tensor) -> Tensor:
    """0, 1, … in the shape of `places` (B, w)."""
    return torch.arange(places.numel(), device=places.device).view(places.shape)


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array


_LOW_BITS = 0xFFFFFFFF


def best(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row of values (R, N) float32: values and indices, each (R, count), best first.

    Equal values are taken and listed by ascending index, which `torch.topk` leaves open. NaN counts as the largest.
    """
    rows, width = values.shape
    group = max(1, int((width / count) ** 0.5))
    groups = width // group
    if groups <= count:
        indices = _keyed(values, torch.arange(width, device=values.device).expand(rows, width), count)
    else:
        # The `count` best elements lie in the `count` groups of neighbours with the best maxima (lower groups first
        # among equals): any element elsewhere is beaten by the best element of each of these.
        body = groups * group
        maxima = values[:, :body].view(rows, groups, group).amax(2)
        chosen = _keyed(maxima, torch.arange(groups, device=values.device).expand(rows, groups), count)
        inside = (chosen.unsqueeze(2) * group + torch.arange(group, device=values.device)).flatten(1)
        tail = torch.arange(body, width, device=values.device).expand(rows, width - body)
        positions = torch.cat([inside, tail], 1)
        indices = _keyed(values.gather(1, positions), positions, count)
    return values.gather(1, indices), indices


def _keyed(values: Tensor, positions: Tensor, count: int) -> Tensor:
    """The `positions` (R, N) of the `count` largest values, by (value descending, position ascending).

    Both are packed into one integer whose order is that order: a float32's bits compare as an integer's once those of
    negative numbers are flipped.
    """
    bits = (values + 0.0).contiguous().view(torch.int32)  # + 0.0 makes −0 and 0 one number
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) | (_LOW_BITS - positions)
    return _LOW_BITS - (keys.topk(count, dim=1).values & _LOW_BITS)
