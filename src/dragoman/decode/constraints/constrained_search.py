"""`ConstrainedSearch`: a beam search with outputs that contain all required phrases."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.beam.beam_search import BeamSearch, best
from dragoman.decode.beam.hypotheses import Continuations, LiveHypotheses, RankedContinuations, Selection
from dragoman.decode.constraints.constraint import Constraints, constrained_beam_size, tokens_needed
from dragoman.decode.constraints.progress import Outlook, Progress
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import FixedBeamSizes
from dragoman.decode.rules.rule import BeamSizes, Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS


class ConstrainedSearch(BeamSearch):
    """Dynamic beam allocation (Post & Vilar 2018, section 3).

    Hypotheses are grouped into banks by the number of constraint tokens that they contain, from 0 to P. Candidates are
    the best continuations of each hypothesis and all tokens that begin or continue a phrase. Each bank has 1 / (P + 1)
    of the beam's slots, at least one, for its best continuations. The remaining and the unused slots are filled with
    the best of all other continuations. (In the paper, they are assigned to the most advanced banks, but then outputs
    of a small beam begin with their phrases.) The beam of a sentence is larger than requested, so that each bank has a
    slot (see `constrained_beam_size`).

    EOS may follow only after all phrases are met. The result for a sentence without constraints is that of a plain
    search. Close to the maximum length, only tokens that leave enough positions for the missing phrases may follow. A
    token that begins or continues a phrase may follow even if a restriction forbids it.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beams: Sequence[int],
        nbest: Sequence[int],
        rules: Sequence[Rule],
        *,
        constraints: Constraints,
        keeps_totals: bool = False,
    ) -> None:
        """beams: the requested beam size of each sentence; nbest, keeps_totals: as in `BeamSearch`.

        Raises ConfigError for constraints that exceed the maximum length, and for a rule that changes the beam size.
        """
        for rule in rules:
            if isinstance(rule, BeamSizes) and not isinstance(rule, FixedBeamSizes):
                raise ConfigError(f"{type(rule).__name__} changes the beam size, but constraints need a fixed size")
        for row, each in enumerate(constraints.of):
            room = int(prompts.limits[row] - prompts.prefix_lengths[row])
            if (needed := tokens_needed(each)) > room:
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
        super().__init__(decoder, prompts, widest, nbest, [self._progress, *others], keeps_totals=keeps_totals)
        self._banks = torch.zeros(0)
        """The banks of the step's continuations: in the order of `Continuations` after `expand`, and in the order of
        `RankedContinuations` after `rank`.
        """

    def expand(self, live: LiveHypotheses, step: Step) -> Continuations:
        """Return the best continuations of each hypothesis, and all tokens that begin or continue a phrase."""
        logits = step.output.last_logits().float()  # (B·K, V)
        normaliser = logits.logsumexp(1, keepdim=True)  # (B·K, 1)
        weighed = live.rule_states.add(logits, step)  # (B·K, V)
        room = (self.prompts.limits[step.sentences] - step.lengths).repeat(step.beam_size)  # (B·K,)
        outlook = self._progress.outlook(live.rule_states.states[0], room)
        required = outlook.tokens.clamp(min=0)  # (B·K, A)
        required_added = weighed.gather(1, required).masked_fill(~outlook.allowed, -torch.inf) - normaliser  # (B·K, A)
        live.rule_states.restrict(weighed, step)
        self._restrict(weighed, outlook)
        values, tokens = best(weighed, min(self._candidates, logits.size(1)))  # (B·K, C)
        banks = outlook.other_banks.gather(1, self._progress.kinds[tokens])  # (B·K, C)
        tokens, order = torch.cat([tokens, required], 1).sort(dim=1, stable=True)  # (B·K, C + A)
        added = torch.cat([values - normaliser, required_added], 1).gather(1, order)
        self._banks = torch.cat([banks, outlook.banks], 1).gather(1, order)
        return Continuations(tokens, added, added if weighed is logits else logits.gather(1, tokens) - normaliser)

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """Return all continuations of each sentence; ties are ordered by the slot of the hypothesis, then by token."""
        totals, order = continuations.totals(live).sort(dim=1, descending=True, stable=True)  # (B, N)
        self._banks = self._banks.view(len(live.sentences), -1).gather(1, order)
        return RankedContinuations.of(live, continuations, totals, order)

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Select finished hypotheses among the first continuations that meet all constraints, and live ones by bank."""
        device = ranked.totals.device
        beams, width, size = (
            torch.from_numpy(each[step.sentences]).to(device).unsqueeze(1)
            for each in (self._beams, self._sizes, self._progress.sizes)
        )  # (B, 1) each
        exists, ends = ranked.totals > -torch.inf, ranked.tokens == EOS  # (B, N)
        met = exists & (ends | (self._banks == size))
        finished = ranked.totals.masked_fill(~(ends & exists & (met.cumsum(1) <= beams)), -torch.inf)
        greedy = (width == 1) & (finished > -torch.inf).any(1, keepdim=True)  # greedy search stops at the first EOS
        can_live = exists & ~ends & ~greedy  # (B, N)
        order, empty = self._allocate(can_live, width, size)
        totals = ranked.totals.gather(1, order).masked_fill(empty, -torch.inf)  # (B, K)
        return Selection.of(live, ranked, finished, order, totals)

    def _restrict(self, weighed: Tensor, outlook: Outlook) -> None:
        """Set weighed (B·K, V) to −∞ at phrase tokens, which are added separately, and at forbidden tokens."""
        rows, columns = (outlook.tokens >= 0).nonzero(as_tuple=True)
        weighed[rows, outlook.tokens[rows, columns]] = -torch.inf
        weighed[~outlook.complete, EOS] = -torch.inf
        if not outlook.other_allowed.all():
            weighed.masked_fill_(~outlook.other_allowed[:, self._progress.kinds], -torch.inf)

    def _allocate(self, can_live: Tensor, width: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
        """Allocate the K slots. Return the sorted ranks of the chosen continuations and a mask of empty slots, (B, K).

        can_live: (B, N) bool, True for continuations that may become live hypotheses; width: (B, 1), number of slots;
        size: (B, 1), number of tokens of all phrases.
        """
        banks = self._banks.masked_fill(~can_live, -1)  # (B, N)
        shares = (width // (size + 1)).clamp(min=1)  # (B, 1)
        reserved = can_live & (_ranks_within(banks) < shares)  # (B, N)
        numbers = torch.arange(banks.size(1), device=banks.device).expand_as(banks)
        last = 2 * banks.size(1) + int(size.max())
        # reserved slots come first, starting with the most advanced banks, then the best of the other continuations
        priority = torch.where(reserved, size - banks, size + 1 + numbers).masked_fill(~can_live, last)
        chosen = priority.argsort(dim=1, stable=True)[:, : self.beam]  # (B, K)
        empty = ~can_live.gather(1, chosen) | (torch.arange(chosen.size(1), device=banks.device) >= width)
        order = chosen.masked_fill(empty, banks.size(1)).sort(dim=1).values
        empty = order == banks.size(1)
        return order.masked_fill(empty, 0), empty


def _ranks_within(banks: Tensor) -> Tensor:
    """Return (B, N), the rank of each continuation within its bank. banks: (B, N)."""
    order = banks.argsort(dim=1, stable=True)
    grouped = banks.gather(1, order)
    numbers = torch.arange(banks.size(1), device=banks.device).expand_as(banks)
    begins = torch.ones_like(grouped, dtype=torch.bool)
    begins[:, 1:] = grouped[:, 1:] != grouped[:, :-1]
    first = numbers.masked_fill(~begins, 0).cummax(1).values
    return torch.empty_like(numbers).scatter_(1, order, numbers - first)
