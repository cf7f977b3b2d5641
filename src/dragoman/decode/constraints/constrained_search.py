"""`ConstrainedSearch`: a beam search whose outputs contain the required phrases."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.beam.beam_search import BeamSearch, best
from dragoman.decode.beam.hypotheses import Continuations, LiveHypotheses, RankedContinuations, Selection
from dragoman.decode.constraints.constraint import Constraints, constrained_beam_size, least
from dragoman.decode.constraints.progress import Outlook, Progress
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import FixedBeamSizes
from dragoman.decode.rules.rule import BeamSizes, Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS


class ConstrainedSearch(BeamSearch):
    """Dynamic beam allocation (Post & Vilar 2018, section 3).

    Hypotheses are grouped into banks by the number of constraint tokens that they have met, from 0 to P. Candidates are
    the best continuations of each hypothesis, and every token that begins or continues a phrase. Each bank gets
    1 / (P + 1) of the beam's slots, at least one, for its best continuations; the remaining and the unused slots go to
    the best of all other continuations. (In the paper they go to the most advanced banks; with a small beam, outputs
    then begin with their phrases.) The beam of a sentence is larger than requested, so that each bank gets a slot: see
    `constrained_beam_size`.

    EOS may follow only after all phrases are met. A sentence without constraints gets the result of a plain search.
    Close to the maximum length, only tokens that leave room for the missing phrases may follow. A token that begins or
    continues a phrase may follow even if a restriction forbids it.
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
        """beams: the requested sizes, one number per sentence; wanted, keeps_totals: as in `BeamSearch`.

        Raises ConfigError for constraints that do not fit the maximum length, and for a rule that changes the beam
        size.
        """
        for rule in rules:
            if isinstance(rule, BeamSizes) and not isinstance(rule, FixedBeamSizes):
                raise ConfigError(f"{type(rule).__name__} changes the beam size, which constraints do not allow")
        for row, each in enumerate(constraints.of):
            room = int(prompts.limits[row] - prompts.prefix_lengths[row])
            if (needed := least(each)) > room:
                raise ConfigError(
                    f"sentence {row}: its constraints need up to {needed} tokens, but only {room} may be generated: "
                    "require fewer or shorter phrases, or raise the maximum length"
                )
        self._beams = np.array(beams, np.int64)
        self._sizes = np.array(
            [constrained_beam_size(*each) for each in zip(beams, constraints.of, strict=True)], np.int64
        )
        self._progress = Progress(constraints, prompts.tokens.device)
        others = [rule for rule in rules if not isinstance(rule, FixedBeamSizes)]
        widest = int(self._sizes.max(initial=1))
        super().__init__(decoder, prompts, widest, wanted, [self._progress, *others], keeps_totals)
        self._banks = torch.zeros(0)
        """Banks of this step's continuations, first in the order of `Continuations`, then of `RankedContinuations`."""

    def expand(self, live: LiveHypotheses, step: Step) -> Continuations:
        """The best continuations of each hypothesis, and all tokens that begin or continue a phrase."""
        logits = step.output.last_logits().float()  # (B·K, V)
        normaliser = logits.logsumexp(1, keepdim=True)  # (B·K, 1)
        weighed = live.rule_states.add(logits, step)  # (B·K, V)
        room = (self.prompts.limits[step.sentences] - step.lengths).repeat(step.beam_size)  # (B·K,)
        ahead = self._progress.outlook(live.rule_states.states[0], room)
        required = ahead.tokens.clamp(min=0)  # (B·K, A)
        given = weighed.gather(1, required).masked_fill(~ahead.allowed, -torch.inf) - normaliser  # (B·K, A)
        live.rule_states.restrict(weighed, step)
        self._restrict(weighed, ahead)
        values, tokens = best(weighed, min(self._candidates, logits.size(1)))  # (B·K, C)
        banks = ahead.other_banks.gather(1, self._progress.kinds[tokens])  # (B·K, C)
        tokens, order = torch.cat([tokens, required], 1).sort(dim=1, stable=True)  # (B·K, C + A)
        added = torch.cat([values - normaliser, given], 1).gather(1, order)
        self._banks = torch.cat([banks, ahead.banks], 1).gather(1, order)
        return Continuations(tokens, added, added if weighed is logits else logits.gather(1, tokens) - normaliser)

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """All continuations of each sentence; ties are ordered by the slot of the hypothesis, then by token."""
        totals, order = continuations.totals(live).sort(dim=1, descending=True, stable=True)  # (B, N)
        self._banks = self._banks.view(len(live.sentences), -1).gather(1, order)
        return RankedContinuations.of(live, continuations, totals, order)

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Finish EOS continuations that are among the first that meet all constraints; share the slots by banks."""
        device = ranked.totals.device
        beams, width, size = (
            torch.from_numpy(each[step.sentences]).to(device).unsqueeze(1)
            for each in (self._beams, self._sizes, self._progress.sizes)
        )  # (B, 1) each
        there, ends = ranked.totals > -torch.inf, ranked.tokens == EOS  # (B, N)
        met = there & (ends | (self._banks == size))
        finished = ranked.totals.masked_fill(~(ends & there & (met.cumsum(1) <= beams)), -torch.inf)
        greedy = (width == 1) & (finished > -torch.inf).any(1, keepdim=True)  # greedy search considers one token only
        living = there & ~ends & ~greedy  # (B, N)
        order, empty = self._allocate(living, width, size)
        totals = ranked.totals.gather(1, order).masked_fill(empty, -torch.inf)  # (B, K)
        return Selection.of(live, ranked, finished, order, totals)

    def _restrict(self, weighed: Tensor, ahead: Outlook) -> None:
        """Set weighed (B·K, V) to −∞ at required tokens, which are added separately, and at forbidden ones."""
        rows, columns = (ahead.tokens >= 0).nonzero(as_tuple=True)
        weighed[rows, ahead.tokens[rows, columns]] = -torch.inf
        weighed[~ahead.complete, EOS] = -torch.inf
        if not ahead.other_allowed.all():
            weighed.masked_fill_(~ahead.other_allowed[:, self._progress.kinds], -torch.inf)

    def _allocate(self, living: Tensor, width: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        """Allocate the K slots: ranks of the chosen continuations, ascending, and whether slots are empty, each (B, K).

        living: (B, N) bool, True for continuations that may live on; width: (B, 1), number of slots; size: (B, 1),
        number of tokens of all phrases.
        """
        banks = self._banks.masked_fill(~living, -1)  # (B, N)
        shares = (width // (size + 1)).clamp(min=1)  # (B, 1)
        reserved = living & (_ranks_within(banks) < shares)  # (B, N)
        numbers = torch.arange(banks.size(1), device=banks.device).expand_as(banks)
        last = 2 * banks.size(1) + int(size.max())
        # first reserved slots, starting with the most advanced banks, then the best of the other continuations
        turn = torch.where(reserved, size - banks, size + 1 + numbers).masked_fill(~living, last)
        taken = turn.argsort(dim=1, stable=True)[:, : self.beam]  # (B, K)
        empty = ~living.gather(1, taken) | (torch.arange(taken.size(1), device=banks.device) >= width)
        order = taken.masked_fill(empty, banks.size(1)).sort(dim=1).values
        empty = order == banks.size(1)
        return order.masked_fill(empty, 0), empty


def _ranks_within(banks: Tensor) -> Tensor:
    """(B, N): the rank of each continuation within its bank; banks: (B, N)."""
    order = banks.argsort(dim=1, stable=True)
    grouped = banks.gather(1, order)
    numbers = torch.arange(banks.size(1), device=banks.device).expand_as(banks)
    begins = torch.ones_like(grouped, dtype=torch.bool)
    begins[:, 1:] = grouped[:, 1:] != grouped[:, :-1]
    first = numbers.masked_fill(~begins, 0).cummax(1).values
    return torch.empty_like(numbers).scatter_(1, order, numbers - first)
