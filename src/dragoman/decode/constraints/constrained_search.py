"""`ConstrainedSearch`: a beam search whose outputs hold what they must hold."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.beam.beam_search import BeamSearch, best
from dragoman.decode.beam.hypotheses import Continuations, LiveHypotheses, RankedContinuations, Selection
from dragoman.decode.constraints.constraint import Constraints, constrained_beam_size, least
from dragoman.decode.constraints.progress import Progress
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import FixedBeamSizes
from dragoman.decode.rules.rule import BeamSizes, Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS


class ConstrainedSearch(BeamSearch):
    """Dynamic beam allocation (Post & Vilar 2018, section 3).

    A hypothesis belongs to the bank of the number of constraint tokens that it has met, from 0 to C. Continuations are
    the best of each hypothesis, and every token that begins or continues a phrase. Of the places of the beam each bank
    has its share, 1 / (C + 1) and at least one, for its best continuations; the rest, and what banks leave free, goes
    to the best of all that are left. (The paper gives it to the banks that are farthest on; there an output begins with
    its phrases where the beam is small.) So that each bank gets a place, the beam of a sentence is wider than what was
    asked for: `constrained_beam_size`.

    The end may follow only where all phrases are met. A sentence without constraints finds what it finds otherwise.
    Near the longest output only what leaves room for the rest may follow. A token that begins or continues a phrase may
    follow even where a restriction forbids it.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beams: Sequence[int],
        wanted: Sequence[int],
        rules: Sequence[Rule],
        constraints: Constraints,
        keeps_totals: bool = False,
    ) -> None:
        """beams: as asked for, one number a sentence; wanted, keeps_totals: as in `BeamSearch`.

        Raises ConfigError for constraints that do not fit the longest output, and with a rule that narrows the beam.
        """
        for rule in rules:
            if isinstance(rule, BeamSizes) and not isinstance(rule, FixedBeamSizes):
                raise ConfigError(f"{type(rule).__name__} narrows the beam and cannot be had with constraints")
        for row, each in enumerate(constraints.of):
            room = int(prompts.limits[row] - prompts.prefix_lengths[row])
            if (needed := least(each)) > room:
                raise ConfigError(
                    f"sentence {row}: its constraints need up to {needed} tokens, but only {room} may be written: "
                    "require less"
                )
        self._beams = np.array(beams, np.int64)
        self._places = np.array(
            [constrained_beam_size(*each) for each in zip(beams, constraints.of, strict=True)], np.int64
        )
        self._progress = Progress(constraints, prompts.tokens.device)
        others = [rule for rule in rules if not isinstance(rule, FixedBeamSizes)]
        widest = int(self._places.max(initial=1))
        super().__init__(decoder, prompts, widest, wanted, [self._progress, *others], keeps_totals)
        self._banks = torch.zeros(0)
        """Of the continuations of this step, as they stand in `Continuations`, then in `RankedContinuations`."""

    def expand(self, live: LiveHypotheses, step: Step) -> Continuations:
        """The best of each hypothesis, and all that begins or continues a phrase."""
        logits = step.output.last_logits().float()
        normaliser = logits.logsumexp(1, keepdim=True)
        weighed = live.rule_states.add(logits, step)
        room = (self.prompts.limits[step.sentences] - step.lengths).repeat(step.beam_size)
        ahead = self._progress.outlook(live.rule_states.states[0], room)
        rows, columns = (ahead.tokens >= 0).nonzero(as_tuple=True)
        required = ahead.tokens.clamp(min=0)
        given = weighed.gather(1, required).masked_fill(~ahead.allowed, -torch.inf) - normaliser
        live.rule_states.restrict(weighed, step)
        weighed[rows, required[rows, columns]] = -torch.inf
        weighed[~ahead.complete, EOS] = -torch.inf
        if not ahead.other_allowed.all():
            weighed.masked_fill_(~ahead.other_allowed[:, self._progress.kinds], -torch.inf)
        values, tokens = best(weighed, min(self._considered, logits.size(1)))
        values = values - normaliser
        banks = ahead.other_banks.gather(1, self._progress.kinds[tokens])
        tokens, order = torch.cat([tokens, required], 1).sort(dim=1, stable=True)
        added = torch.cat([values, given], 1).gather(1, order)
        self._banks = torch.cat([banks, ahead.banks], 1).gather(1, order)
        if weighed is logits:
            return Continuations(tokens, added, added)
        return Continuations(tokens, added, logits.gather(1, tokens) - normaliser)

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """All continuations of each sentence, equal ones by the place of their hypothesis, then by token."""
        sentences, each = len(live.sentences), continuations.tokens.size(1)
        sums = (live.totals.view(-1, 1) + continuations.values).view(sentences, -1)
        totals, order = sums.sort(dim=1, descending=True, stable=True)
        own = totals
        if continuations.own is not continuations.values:
            own = (live.own.view(-1, 1) + continuations.own).view(sentences, -1).gather(1, order)
        self._banks = self._banks.view(sentences, -1).gather(1, order)
        return RankedContinuations(
            totals, own, order // each, continuations.tokens.view(sentences, -1).gather(1, order)
        )

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Ends finish that are among the first of those that meet all; the others share the beam by their banks."""
        device = ranked.totals.device
        beams, width, size = (
            torch.from_numpy(each[step.sentences]).to(device).unsqueeze(1)
            for each in (self._beams, self._places, self._progress.sizes)
        )
        there, ends = ranked.totals > -torch.inf, ranked.tokens == EOS
        met = there & (ends | (self._banks == size))
        finished = ranked.totals.masked_fill(~(ends & there & (met.cumsum(1) <= beams)), -torch.inf)
        greedy = (width == 1) & (finished > -torch.inf).any(1, keepdim=True)  # as in a search that looks at one only
        living = there & ~ends & ~greedy
        banks = self._banks.masked_fill(~living, -1)
        shares = (width // (size + 1)).clamp(min=1)
        reserved = living & (_places_within(banks) < shares)
        numbers = torch.arange(banks.size(1), device=device).expand_as(banks)
        last = 2 * banks.size(1) + int(size.max())
        # reserved places first, those of the farthest banks where they are too many; then the best of the others
        turn = torch.where(reserved, size - banks, size + 1 + numbers).masked_fill(~living, last)
        taken = turn.argsort(dim=1, stable=True)[:, : self.beam]
        outside = ~living.gather(1, taken) | (torch.arange(taken.size(1), device=device) >= width)
        order = taken.masked_fill(outside, banks.size(1)).sort(dim=1).values
        outside = order == banks.size(1)
        order = order.masked_fill(outside, 0)
        totals = ranked.totals.gather(1, order).masked_fill(outside, -torch.inf)
        own = totals if ranked.own is ranked.totals else ranked.own.gather(1, order)
        first = torch.arange(len(live.sentences), device=device).unsqueeze(1) * live.totals.size(1)
        return Selection(finished, first + ranked.parents.gather(1, order), ranked.tokens.gather(1, order), totals, own)


def _places_within(banks: Tensor) -> Tensor:
    """(B, N): how many of the same bank stand before each."""
    order = banks.argsort(dim=1, stable=True)
    grouped = banks.gather(1, order)
    numbers = torch.arange(banks.size(1), device=banks.device).expand_as(banks)
    begins = torch.ones_like(grouped, dtype=torch.bool)
    begins[:, 1:] = grouped[:, 1:] != grouped[:, :-1]
    first = numbers.masked_fill(~begins, 0).cummax(1).values
    return torch.empty_like(numbers).scatter_(1, order, numbers - first)
