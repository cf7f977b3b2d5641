"""`BeamSearch`: beam search over any `Decoder`, one method per stage of a step."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ModelError
from dragoman.decode.beam.hypotheses import (
    CompleteHypothesis,
    Continuations,
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
from dragoman.decode.rules.beam_sizes import candidates
from dragoman.decode.rules.rule import Endings, Rule, RuleStates, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

_LOW_BITS = 0xFFFFFFFF


class BeamSearch:
    """Beam search as specified by `dragoman.decode.search.search`.

    Subclasses that select continuations differently, such as in groups or by constraints, override `expand`, `rank` or
    `choose`. Restrictions, additions, scores and beam sizes are rules.
    """

    groups = 1
    """Number of groups of a sentence's beam, each of which has its own list of ended hypotheses."""

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beam: int,
        nbest: Sequence[int],
        rules: Sequence[Rule],
        *,
        keeps_totals: bool = False,
        observer: Callable[[StepTrace], None] | None = None,
    ) -> None:
        """beam: hypotheses kept per sentence (K); nbest: number of hypotheses to return for each sentence.

        keeps_totals: whether to fill `CompleteHypothesis.totals`; observer: called after each step.
        """
        self.decoder, self.prompts, self.beam, self.rules = decoder, prompts, beam, rules
        self.nbest, self._keeps_totals, self._observer = nbest, keeps_totals, observer
        self._candidates = int(candidates(beam))
        self._lists = [[NBestList(min(count, self._size)) for _ in range(self.groups)] for count in nbest]
        self._history = History()
        self._steps = 0
        self.prefixes: NDArray[np.float32] = np.zeros((len(prompts), 0), np.float32)
        """(B, T), log-probabilities of the prefix tokens, right-aligned; empty unless `keeps_totals` is set."""
        self.bounds: list[float | None] = [None] * len(prompts)
        """For each sentence, an upper bound on the scores of all outputs that are not returned; None if unknown."""

    @torch.no_grad()
    def run(self) -> list[list[CompleteHypothesis]]:
        """Run the search. Return the best hypotheses of each sentence, finished ones first."""
        live = self.start() if len(self.prompts) else None
        while live is not None:
            check_cancelled()
            live = self.step(live)
        ends = [(end.steps, end.link) for lists in self._lists for each in lists for end in each.best]
        totals = self._history.totals(ends) if self._keeps_totals else [()] * len(ends)
        written = zip(self._history.sequences(ends), totals, strict=True)
        return [
            self.gather([[CompleteHypothesis(end, *next(written)) for end in each.best] for each in lists], nbest)
            for lists, nbest in zip(self._lists, self.nbest, strict=True)
        ]

    def start(self) -> LiveHypotheses:
        """Return the initial hypotheses, with the decoder state after all prompt tokens except the last."""
        start = read_prompts(self.decoder, self.prompts, self.rules)
        if self._keeps_totals:
            self.prefixes = _host(start.prefixes)
        sums = start.totals.unsqueeze(1)  # (B, 1)
        links = torch.arange(len(sums), device=sums.device)
        return LiveHypotheses(np.arange(len(sums)), start.state, start.tokens, sums, sums, links, start.rule_states)

    def step(self, before: LiveHypotheses) -> LiveHypotheses | None:
        """Continue every hypothesis by one token. Return None when the search of all sentences has ended."""
        output, state = self.decoder.step(before.tokens, before.state)
        self._steps += 1
        lengths = self.prompts.prefix_lengths[before.sentences] + self._steps
        step = Step(before.sentences, lengths, before.tokens, output)
        live = replace(before, state=state, rule_states=before.rule_states.read(step))
        ranked = self.rank(live, self.expand(live, step))
        chosen = self.choose(live, step, ranked)
        finished, best = self._to_host(chosen)
        kept = chosen.log_probabilities.flatten() if self._keeps_totals else None
        self._history.extend(live.links[chosen.rows.flatten()], chosen.tokens.flatten(), kept)
        self.finish(live, step, ranked, finished)
        full = self.prompts.limits[step.sentences] == step.lengths
        stays = self.leave(before, live, step, chosen=chosen, best=best, full=full)
        if self._observer is not None:
            self._observer(StepTrace(before, live, step, ranked, chosen, finished, stays, full))
        return self.reorder(live, chosen, stays) if len(stays) else None

    def expand(self, live: LiveHypotheses, step: Step) -> Continuations:
        """Return the best continuations of each hypothesis, limited to those that can affect the result."""
        logits = step.output.last_logits().float()  # (B·K, V)
        normaliser = logits.logsumexp(1, keepdim=True)  # (B·K, 1)
        weighed = live.rule_states.add(logits, step)  # (B·K, V)
        live.rule_states.restrict(weighed, step)
        values, tokens = best(weighed, min(self._candidates, logits.size(1)))  # (B·K, C)
        tokens, order = tokens.sort(dim=1)
        added = (values - normaliser).gather(1, order)  # (B·K, C)
        return Continuations(tokens, added, added if weighed is logits else logits.gather(1, tokens) - normaliser)

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """Return the best continuations of each sentence; ties are ordered by the slot of the hypothesis, then by
        token.
        """
        # the stable sort orders ties by slot, then by token
        totals, order = continuations.totals(live).sort(dim=1, descending=True, stable=True)  # (B, K·C)
        return RankedContinuations.of(
            live, continuations, totals[:, : self._candidates], order[:, : self._candidates]
        )  # (B, N)

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Select the continuations with EOS among the first `beam` as finished, and the first `beam` others as live."""
        ends = ranked.tokens == EOS  # (B, N)
        finished = ranked.totals.masked_fill(~ends, -torch.inf)[:, : self.beam]  # (B, M)
        order = ends.int().argsort(dim=1, stable=True)[:, : self.beam]  # (B, K)
        totals = ranked.totals.masked_fill(ends, -torch.inf).gather(1, order)  # (B, K)
        if live.rule_states.narrows:
            counts = np.array([sum(each.count for each in self._lists[sentence]) for sentence in live.sentences])
            sizes = live.rule_states.sizes(step, counts)
            considered, kept = (torch.from_numpy(each).to(order.device).unsqueeze(1) for each in sizes)  # (B, 1)
            outside = torch.arange(order.size(1), device=order.device) >= kept  # (B, K)
            finished = finished.masked_fill(outside, -torch.inf)
            totals = totals.masked_fill(outside | (order >= considered), -torch.inf)
        return Selection.of(live, ranked, finished, order, totals)

    def finish(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations, finished: NDArray[np.bool]) -> None:
        """Add the finished hypotheses to the n-best lists. finished: (B, M), True at finished ranked continuations."""
        where, ranks = np.nonzero(finished)
        if not len(where):
            return
        at = tuple(torch.from_numpy(each).to(live.totals.device) for each in (where, ranks))  # N sentences, ranks
        rows = at[0] * live.totals.size(1) + ranked.parents[at]  # (N,)
        totals, log_probabilities = ranked.totals[at], ranked.log_probabilities[at]
        leaving = _EndCandidates(live.rule_states, rows, live.links[rows], totals, log_probabilities, self._steps - 1)
        endings = Endings(live.sentences[where], step.lengths[where], True)
        for sentence, end in zip(endings.sentences, leaving.ends(endings), strict=True):
            self._lists[sentence][self._group(end)].add(end)

    def leave(
        self,
        before: LiveHypotheses,
        live: LiveHypotheses,
        step: Step,
        *,
        chosen: Selection,
        best: NDArray[np.float32],
        full: NDArray[np.bool],
    ) -> NDArray[np.int64]:
        """Return the positions of the sentences that stay in the batch because their results may still change.

        best: (B, groups), the largest of `Selection.totals`; full: (B,) bool, whether the maximum length is reached.
        """
        dead = best == -np.inf  # (B, groups)
        self._end_full(live, step, chosen, full & ~dead.all(1))
        self._end_stuck(before, step, dead)
        changes = np.zeros(len(full), np.bool_)
        for group in range(self.groups):
            thresholds = np.array([self._lists[sentence][group].threshold() for sentence in step.sentences])
            changes |= live.rule_states.bounds(best[:, group], step.sentences) > thresholds
        return np.flatnonzero(changes & ~full & ~dead.all(1))

    def reorder(self, live: LiveHypotheses, chosen: Selection, stays: NDArray[np.int64]) -> LiveHypotheses:
        """Expand, reorder and prune the hypotheses with a single gather of rows.

        A greedy step in which no sentence ends needs no gather. stays: (B',) int64, the positions of the sentences that
        stay in the batch.
        """
        count, width = chosen.rows.shape
        links = _numbers(chosen.rows)  # (B, K)
        if live.totals.size(1) == width == 1 and len(stays) == count:
            return replace(
                live,
                tokens=chosen.tokens,
                totals=chosen.totals,
                log_probabilities=chosen.log_probabilities,
                links=links.flatten(),
            )
        kept = torch.from_numpy(stays).to(chosen.rows.device)
        rows, totals = chosen.rows[kept].flatten(), chosen.totals[kept]  # (B'·K,), (B', K)
        return LiveHypotheses(
            live.sentences[stays],
            live.state.reorder(rows, width),
            chosen.tokens[kept].view(-1, 1),
            totals,
            totals if chosen.log_probabilities is chosen.totals else chosen.log_probabilities[kept],
            links[kept].flatten(),
            live.rule_states.reorder(rows, width),
        )

    def gather(self, lists: list[list[CompleteHypothesis]], nbest: int) -> list[CompleteHypothesis]:
        """Combine the n-best lists of a sentence's groups into its result."""
        return lists[0]

    def _to_host(self, chosen: Selection) -> tuple[NDArray[np.bool], NDArray[np.float32]]:
        """Return whether each continuation finishes (B, M), and the best total of each group (B, groups).

        This is the only transfer from the device in a step in which no hypothesis ends. Raises ModelError for NaN.
        """
        lead = chosen.totals.view(len(chosen.totals), self.groups, -1).amax(2)  # (B, groups)
        host = _host(torch.cat([chosen.finished, lead], 1))  # (B, M + groups)
        if np.isnan(host).any():
            raise ModelError("the model's log-probabilities are NaN: its parameters are damaged or have diverged")
        return host[:, : -self.groups] > -np.inf, host[:, -self.groups :]

    def _end_full(self, live: LiveHypotheses, step: Step, chosen: Selection, full: NDArray[np.bool]) -> None:
        """End the live hypotheses of sentences at the maximum length as unfinished."""
        for position in np.flatnonzero(full).tolist():
            links = _numbers(chosen.rows)
            ending = _EndCandidates(
                live.rule_states, chosen.rows, links, chosen.totals, chosen.log_probabilities, self._steps
            )
            self._fill(ending.of(position), step.sentences[position], step.lengths[position], range(self.groups))

    def _end_stuck(self, before: LiveHypotheses, step: Step, dead: NDArray[np.bool]) -> None:
        """End the previous hypotheses of groups in which no token may follow and no hypothesis has finished."""
        for position, group in np.argwhere(dead).tolist():
            if not self._lists[step.sentences[position]][group].best:
                rows, links = _numbers(before.totals), before.links.view(before.totals.shape)
                ending = _EndCandidates(
                    before.rule_states, rows, links, before.totals, before.log_probabilities, self._steps - 1
                )
                self._fill(ending.of(position), step.sentences[position], step.lengths[position] - 1, (group,))

    def _fill(self, ending: "_EndCandidates", sentence: int, length: int, groups: Iterable[int]) -> None:
        """Fill the n-best lists of these groups with unfinished hypotheses of one sentence."""
        count = len(ending.totals)
        ends = ending.ends(Endings(np.full(count, sentence), np.full(count, length), False))
        exists = (ending.totals > -torch.inf).tolist()
        live = [end for end, is_real in zip(ends, exists, strict=True) if is_real]
        for group in groups:
            self._lists[sentence][group].fill([end for end in live if self._group(end) == group])

    @property
    def _size(self) -> int:
        """Number of hypotheses per group."""
        return self.beam // self.groups

    def _group(self, end: LinkedHypothesis) -> int:
        """Return the group of a hypothesis, by its slot in the sentence's beam."""
        return end.link % self.beam // self._size


class _EndCandidates(NamedTuple):
    """N hypotheses that end after `steps` steps, each (N,) or (B, K). rows: their row indices in the rule states."""

    rule_states: RuleStates
    rows: Tensor
    links: Tensor
    totals: Tensor
    log_probabilities: Tensor
    steps: int

    def of(self, position: int) -> "_EndCandidates":
        """Return the hypotheses of one sentence."""
        rows, links, totals, log_probabilities = (each[position] for each in self[1:5])
        return _EndCandidates(self.rule_states, rows, links, totals, log_probabilities, self.steps)

    def ends(self, endings: Endings) -> list[LinkedHypothesis]:
        """With their scores."""
        scores = self.rule_states.scores(_host(self.totals), self.rows, endings).tolist()
        return [
            LinkedHypothesis(log_probability, score, endings.finished, self.steps, link)
            for log_probability, score, link in zip(
                self.log_probabilities.tolist(), scores, self.links.tolist(), strict=True
            )
        ]


def _numbers(slots: Tensor) -> Tensor:
    """Return the row numbers 0, 1, … in the shape of `slots` (B, K)."""
    return torch.arange(slots.numel(), device=slots.device).view(slots.shape)


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array


def best(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values of each row of (R, N) float32 and their indices, each (R, count), best first.

    Equal values are selected and sorted by ascending index, which `torch.topk` does not guarantee. NaN counts as the
    largest value. Rows are not sorted or copied as a whole.
    """
    rows, width = values.shape
    group = max(1, int((width / count) ** 0.5))
    groups = width // group
    if groups <= count:
        indices = _largest_positions(values, torch.arange(width, device=values.device).expand(rows, width), count)
    else:
        # The `count` largest elements are all in the `count` groups of neighbours with the largest maxima (ties: lower
        # groups first), because the maximum of each of these groups precedes every element of the other groups.
        body = groups * group
        maxima = values[:, :body].view(rows, groups, group).amax(2)  # (R, groups)
        chosen = _largest_positions(maxima, torch.arange(groups, device=values.device).expand(rows, groups), count)
        inside = (chosen.unsqueeze(2) * group + torch.arange(group, device=values.device)).flatten(1)
        tail = torch.arange(body, width, device=values.device).expand(rows, width - body)
        positions = torch.cat([inside, tail], 1)  # (R, count·group + rest)
        indices = _largest_positions(values.gather(1, positions), positions, count)
    return values.gather(1, indices), indices


def _largest_positions(values: Tensor, positions: Tensor, count: int) -> Tensor:
    """Return the `positions` (R, N) of the `count` largest values, by (value descending, position ascending).

    Each value is packed with its position into one integer that sorts in this order. The bits of float32 numbers sort
    like integers after the bits of negative numbers, except the sign, are flipped.
    """
    bits = (values + 0.0).contiguous().view(torch.int32)  # + 0.0 turns −0 into 0
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    keys = (ordered.long() << 32) | (_LOW_BITS - positions)
    return _LOW_BITS - (keys.topk(count, dim=1).values & _LOW_BITS)
