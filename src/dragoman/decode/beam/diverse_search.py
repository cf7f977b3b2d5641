"""`DiverseBeamSearch`: beam search in groups, each of which avoids the tokens chosen by earlier groups."""

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
from dragoman.decode.rules.beam_sizes import candidates
from dragoman.decode.rules.rule import Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

_NONE = -1
"""Placeholder for the token where a group has no hypothesis."""


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
    """Diverse beam search (Vijayakumar et al. 2018, algorithm 1): the groups take turns in each step, and each group is
    a beam search of its own.

    A hypothesis' penalty for shared tokens counts in all later comparisons within its group, but neither in its
    log-probability nor in its score. The first group is a plain beam search of its size.

    Shapes: B sentences, G groups of W hypotheses, so K = G · W slots; C continuations per hypothesis.
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
        """beam: total size of all groups, a multiple of their number. Other arguments as in `BeamSearch`."""
        self.groups, self._strength = diversity.groups, diversity.strength
        super().__init__(decoder, prompts, beam, wanted, rules, keeps_totals, watch)
        self._ranked = int(candidates(self._size))
        # every token chosen by earlier groups may be penalised
        self._candidates = self._ranked + (self.groups - 1) * self._size
        self._penalties = torch.zeros(0)
        """(B, K), the accumulated penalty of each live hypothesis."""

    def start(self) -> LiveHypotheses:
        """The same hypothesis for each group, in its first slot."""
        live = super().start()
        rows = torch.arange(len(live.totals), device=live.totals.device).repeat_interleave(self.beam)  # (B·K,)
        there = torch.arange(self.beam, device=rows.device) % self._size == 0  # (K,)
        totals = live.totals.masked_fill(~there, -torch.inf)  # (B, K)
        self._penalties = torch.zeros(totals.shape, device=totals.device)
        return replace(
            live,
            state=live.state.reorder(rows, self.beam),
            tokens=live.tokens[rows],
            totals=totals,
            log_probabilities=totals,
            links=torch.arange(len(rows), device=rows.device),
            rule_states=live.rule_states.reorder(rows, self.beam),
        )

    def rank(self, live: LiveHypotheses, continuations: Continuations) -> RankedContinuations:
        """The best continuations of each group in turn, compared with penalties; `totals` do not include them."""
        count = continuations.tokens.size(1)
        shape = len(live.sentences), self.groups, self._size * count
        tokens = continuations.tokens.view(shape)  # (B, G, W·C)
        all_totals = continuations.totals(live)  # (B, K·C)
        totals = all_totals.view(shape)
        penalties = self._penalties.repeat_interleave(count, 1).view(shape)
        written, orders = tokens[:, 0, :0], []  # (B, tokens of earlier groups)
        for group in range(self.groups):
            compared = totals[:, group] - penalties[:, group]
            compared = compared - self._strength * _shared(tokens[:, group], written)  # (B, W·C)
            order = compared.sort(dim=1, descending=True, stable=True).indices[:, : self._ranked]  # (B, N)
            lives = order.gather(1, self._first_lives(tokens[:, group].gather(1, order)))  # (B, W)
            chosen = _there(tokens[:, group].gather(1, lives), totals[:, group].gather(1, lives))
            written = torch.cat([written, chosen], 1)
            orders.append(group * shape[2] + order)
        flat = torch.cat(orders, 1)  # (B, G·N)
        return RankedContinuations.of(live, continuations, all_totals.gather(1, flat), flat)

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Select within each group as in a beam of its size."""
        shape = len(live.sentences), self.groups, -1
        tokens, totals = ranked.tokens.view(shape), ranked.totals.view(shape)  # (B, G, N)
        finished = totals.masked_fill(tokens != EOS, -torch.inf)
        finished[:, :, self._size :] = -torch.inf
        order = self._first_lives(tokens)  # (B, G, W)
        living = totals.masked_fill(tokens == EOS, -torch.inf).gather(2, order).flatten(1)  # (B, K)
        first = torch.arange(self.groups, device=order.device).view(1, -1, 1) * tokens.size(2)
        return Selection.of(live, ranked, finished.flatten(1), (first + order).flatten(1), living)

    def reorder(self, live: LiveHypotheses, chosen: Selection, stays: NDArray[np.int64]) -> LiveHypotheses:
        """Also reorder the penalties."""
        kept = torch.from_numpy(stays).to(chosen.rows.device)
        written = _there(chosen.tokens, chosen.totals).view(len(chosen.tokens), self.groups, self._size)  # (B, G, W)
        now = [_shared(written[:, group], written[:, :group].flatten(1)) for group in range(self.groups)]  # (B, W) each
        self._penalties = (self._penalties.flatten()[chosen.rows] + self._strength * torch.cat(now, 1))[kept]
        return super().reorder(live, chosen, stays)

    def gather(self, lists: list[list[FoundHypothesis]], wanted: int) -> list[FoundHypothesis]:
        """Take distinct hypotheses from the groups in turn, the best of each first, and order them like any list."""

        def order(found: FoundHypothesis) -> tuple[bool, float]:
            return not found.end.finished, -found.end.score

        distinct: dict[tuple[tuple[int, ...], bool], FoundHypothesis] = {}
        for rank in range(self._size):
            for found in sorted((each[rank] for each in lists if rank < len(each)), key=order):
                if len(distinct) < wanted:
                    distinct.setdefault((found.tokens, found.end.finished), found)
        return sorted(distinct.values(), key=order)

    def _first_lives(self, tokens: Tensor) -> Tensor:
        """(…, W): the positions of the first W of tokens (…, N) that are not EOS."""
        return (tokens == EOS).int().argsort(dim=-1, stable=True)[..., : self._size]


def _shared(tokens: Tensor, written: Tensor) -> Tensor:
    """(B, N) float32: the number of occurrences of each of tokens (B, N) in written (B, P)."""
    return (tokens.unsqueeze(2) == written.unsqueeze(1)).sum(2).float()


def _there(tokens: Tensor, totals: Tensor) -> Tensor:
    """The tokens of hypotheses that exist and have not ended; `_NONE` for others."""
    return tokens.masked_fill((totals == -torch.inf) | (tokens == EOS), _NONE)
