"""`DiverseBeamSearch`: a beam in groups, each of which keeps away from what the groups before it write."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.decode.beam.beam_search import BeamSearch
from dragoman.decode.beam.hypotheses import (
    Continuations,
    FoundHypothesis,
    LiveHypotheses,
    RankedContinuations,
    Selection,
    StepTrace,
)
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.beam_sizes import considered
from dragoman.decode.rules.rule import Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

_NONE = -1
"""Stands where a group has no hypothesis."""


class DiversityConfig(Config):
    """Diverse beam search (Vijayakumar et al. 2018) with Hamming diversity."""

    groups: int = Field(default=5, ge=2, description="Number of groups of equal size that the beam is divided into.")
    strength: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description="λ (nats): penalty on a token for each hypothesis of an earlier group that continues with the "
        "same token in the same step. Usual values are 0.2 to 0.8.",
    )


class DiverseBeamSearch(BeamSearch):
    """Vijayakumar et al. 2018, algorithm 1: in each step the groups take their turns, each a beam search of its own.

    What a hypothesis has lost for tokens that it shares stays lost in the comparisons of its group, but belongs neither
    to its log-probability nor to its score. The first group is a plain beam search of its size.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beam: int,
        wanted: Sequence[int],
        rules: Sequence[Rule],
        keeps_totals: bool = False,
        watch: Callable[[StepTrace], None] | None = None,
        *,
        diversity: DiversityConfig,
    ) -> None:
        """beam: of all groups together, a multiple of their number. The others as of `BeamSearch`."""
        self.groups, self._strength = diversity.groups, diversity.strength
        super().__init__(decoder, prompts, beam, wanted, rules, keeps_totals, watch)
        self._considered = (
            int(considered(self._size)) + (self.groups - 1) * self._size
        )  # so many tokens may be penalised
        self._lost = torch.zeros(0)

    def start(self) -> LiveHypotheses:
        """The same hypothesis for each group, at the first of its places."""
        live = super().start()
        rows = torch.arange(len(live.totals), device=live.totals.device).repeat_interleave(self.beam)
        there = torch.arange(self.beam, device=rows.device) % self._size == 0
        totals = live.totals.masked_fill(~there, -torch.inf)
        self._lost = torch.zeros(totals.shape, device=totals.device)
        return replace(
            live,
            state=live.state.reorder(rows, self.beam),
            tokens=live.tokens[rows],
            totals=totals,
            own=totals,
            numbers=torch.arange(len(rows), device=rows.device),
            rule_states=live.rule_states.reorder(rows, self.beam),
        )

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """Of each group as many as it looks at, the groups one after another; `totals` without what is lost."""
        sentences, each = len(live.sentences), continuations.tokens.size(1)
        shape = sentences, self.groups, self._size * each
        tokens = continuations.tokens.view(shape)
        totals = (live.totals.view(-1, 1) + continuations.values).view(shape)
        compared = totals - self._lost.repeat_interleave(each, 1).view(shape)
        written, orders = tokens[:, 0, :0], []
        for group in range(self.groups):
            sums = compared[:, group] - self._strength * _shared(tokens[:, group], written)
            order = sums.sort(dim=1, descending=True, stable=True).indices[:, : int(considered(self._size))]
            lives = order.gather(1, self._first_lives(tokens[:, group].gather(1, order)))
            written = torch.cat(
                [written, _there(tokens[:, group].gather(1, lives), totals[:, group].gather(1, lives))], 1
            )
            orders.append(order)
        order = torch.stack(orders, 1)
        taken = totals.gather(2, order).flatten(1)
        own = taken
        if continuations.own is not continuations.values:
            own = (live.own.view(-1, 1) + continuations.own).view(shape).gather(2, order).flatten(1)
        first = torch.arange(self.groups, device=order.device).view(1, -1, 1) * self._size
        return RankedContinuations(taken, own, (first + order // each).flatten(1), tokens.gather(2, order).flatten(1))

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """In each group as in a beam of its size."""
        shape = len(live.sentences), self.groups, -1
        tokens, totals = ranked.tokens.view(shape), ranked.totals.view(shape)
        finished = totals.masked_fill(tokens != EOS, -torch.inf)
        finished[:, :, self._size :] = -torch.inf
        order = self._first_lives(tokens)
        living = totals.masked_fill(tokens == EOS, -torch.inf).gather(2, order).flatten(1)
        own = living if ranked.own is ranked.totals else ranked.own.view(shape).gather(2, order).flatten(1)
        first = torch.arange(len(live.sentences), device=order.device).unsqueeze(1) * self.beam
        rows = first + ranked.parents.view(shape).gather(2, order).flatten(1)
        return Selection(finished.flatten(1), rows, tokens.gather(2, order).flatten(1), living, own)

    def reorder(self, live: LiveHypotheses, chosen: Selection, stays: NDArray[np.int64]) -> LiveHypotheses:
        """Carry along what each hypothesis has lost."""
        kept = torch.from_numpy(stays).to(chosen.rows.device)
        written = _there(chosen.tokens, chosen.totals).view(len(chosen.tokens), self.groups, self._size)
        now = [_shared(written[:, group], written[:, :group].flatten(1)) for group in range(self.groups)]
        self._lost = (self._lost.flatten()[chosen.rows] + self._strength * torch.cat(now, 1))[kept]
        return super().reorder(live, chosen, stays)

    def gather(self, lists: list[list[FoundHypothesis]], wanted: int) -> list[FoundHypothesis]:
        """The best of each group, then the second of each, and so on, distinct ones; ordered as any list."""

        def order(found: FoundHypothesis) -> tuple[bool, float]:
            return not found.end.finished, -found.end.score

        distinct: dict[tuple[tuple[int, ...], bool], FoundHypothesis] = {}
        for rank in range(self._size):
            for found in sorted((each[rank] for each in lists if rank < len(each)), key=order):
                if len(distinct) < wanted:
                    distinct.setdefault((found.tokens, found.end.finished), found)
        return sorted(distinct.values(), key=order)

    def _first_lives(self, tokens: Tensor) -> Tensor:
        """The places of those of (…, N) tokens that live on: as many as a group keeps, the first that do not end."""
        return (tokens == EOS).int().argsort(dim=-1, stable=True)[..., : self._size]


def _shared(tokens: Tensor, written: Tensor) -> Tensor:
    """(B, N) float32: how many of written (B, P) are each of tokens (B, N)."""
    return (tokens.unsqueeze(2) == written.unsqueeze(1)).sum(2).float()


def _there(tokens: Tensor, totals: Tensor) -> Tensor:
    """The tokens of hypotheses that there are and that have not ended."""
    return tokens.masked_fill((totals == -torch.inf) | (tokens == EOS), _NONE)
