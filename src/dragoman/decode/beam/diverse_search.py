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
    CompleteHypothesis,
    Continuations,
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
"""Placeholder for the token of a slot without a live hypothesis."""


class DiversityConfig(Config):
    """Diverse beam search (Vijayakumar et al. 2018) with Hamming diversity."""

    groups: int = Field(
        default=5, ge=2, le=10_000, description="Number of groups of equal size that the beam is divided into."
    )
    strength: float = Field(
        default=0.5,
        ge=0,
        le=1000,
        allow_inf_nan=False,
        description="λ (nats): penalty on a token for each hypothesis of an earlier group that has the same token at "
        "this step. Usual values are 0.2 to 0.8.",
    )


class DiverseBeamSearch(BeamSearch):
    """Diverse beam search (Vijayakumar et al. 2018, algorithm 1): each group is a separate beam search, and in each
    step the groups select their tokens one after another.

    The penalties of a hypothesis for shared tokens count in all later comparisons within its group, but not in its
    log-probability or its score. The first group is a plain beam search with the group's beam size.

    Shapes: B sentences, G groups of W hypotheses, so K = G · W slots; C continuations per hypothesis.
    """

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
        diversity: DiversityConfig,
    ) -> None:
        """beam: total size of all groups, a multiple of their number. Other arguments as in `BeamSearch`."""
        self.groups, self._strength = diversity.groups, diversity.strength
        super().__init__(decoder, prompts, beam, nbest, rules, keeps_totals=keeps_totals, observer=observer)
        self._ranked = int(candidates(self._size))
        # any token chosen by an earlier group may be penalised, and another candidate must replace it
        self._candidates = self._ranked + (self.groups - 1) * self._size
        self._penalties = torch.zeros(0)
        """(B, K), the accumulated penalty of each live hypothesis."""

    def start(self) -> LiveHypotheses:
        """Return the initial hypothesis of each sentence, in the first slot of each group."""
        live = super().start()
        rows = torch.arange(len(live.totals), device=live.totals.device).repeat_interleave(self.beam)  # (B·K,)
        is_first = torch.arange(self.beam, device=rows.device) % self._size == 0  # (K,)
        totals = live.totals.masked_fill(~is_first, -torch.inf)  # (B, K)
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
        """Return the best continuations of each group, ranked with penalties that `totals` do not include."""
        count = continuations.tokens.size(1)
        shape = len(live.sentences), self.groups, self._size * count
        tokens = continuations.tokens.view(shape)  # (B, G, W·C)
        all_totals = continuations.totals(live)  # (B, K·C)
        totals = all_totals.view(shape)
        penalties = self._penalties.repeat_interleave(count, 1).view(shape)
        written, orders = tokens[:, 0, :0], []  # (B, tokens of earlier groups)
        for group in range(self.groups):
            compared = totals[:, group] - penalties[:, group]
            compared = compared - self._strength * _count_shared(tokens[:, group], written)  # (B, W·C)
            order = compared.sort(dim=1, descending=True, stable=True).indices[:, : self._ranked]  # (B, N)
            live_order = order.gather(1, self._first_live_positions(tokens[:, group].gather(1, order)))  # (B, W)
            chosen = _live_tokens(tokens[:, group].gather(1, live_order), totals[:, group].gather(1, live_order))
            written = torch.cat([written, chosen], 1)
            orders.append(group * shape[2] + order)
        flat = torch.cat(orders, 1)  # (B, G·N)
        return RankedContinuations.of(live, continuations, all_totals.gather(1, flat), flat)

    def choose(self, live: LiveHypotheses, step: Step, ranked: RankedContinuations) -> Selection:
        """Select within each group as in a plain beam search."""
        shape = len(live.sentences), self.groups, -1
        tokens, totals = ranked.tokens.view(shape), ranked.totals.view(shape)  # (B, G, N)
        finished = totals.masked_fill(tokens != EOS, -torch.inf)
        finished[:, :, self._size :] = -torch.inf
        order = self._first_live_positions(tokens)  # (B, G, W)
        live_totals = totals.masked_fill(tokens == EOS, -torch.inf).gather(2, order).flatten(1)  # (B, K)
        first = torch.arange(self.groups, device=order.device).view(1, -1, 1) * tokens.size(2)
        return Selection.of(live, ranked, finished.flatten(1), (first + order).flatten(1), live_totals)

    def reorder(self, live: LiveHypotheses, chosen: Selection, stays: NDArray[np.int64]) -> LiveHypotheses:
        """Also reorder the penalties."""
        kept = torch.from_numpy(stays).to(chosen.rows.device)
        live_tokens = _live_tokens(chosen.tokens, chosen.totals)
        tokens = live_tokens.view(len(chosen.tokens), self.groups, self._size)  # (B, G, W)
        counts = [_count_shared(tokens[:, group], tokens[:, :group].flatten(1)) for group in range(self.groups)]
        penalties = self._penalties.flatten()[chosen.rows] + self._strength * torch.cat(counts, 1)  # (B, K)
        self._penalties = penalties[kept]
        return super().reorder(live, chosen, stays)

    def gather(self, lists: list[list[CompleteHypothesis]], nbest: int) -> list[CompleteHypothesis]:
        """Take distinct hypotheses from the groups in turn, best first, and sort them by score, finished ones first."""

        def order(found: CompleteHypothesis) -> tuple[bool, float]:
            return not found.end.finished, -found.end.score

        distinct: dict[tuple[tuple[int, ...], bool], CompleteHypothesis] = {}
        for rank in range(self._size):
            for found in sorted((each[rank] for each in lists if rank < len(each)), key=order):
                if len(distinct) < nbest:
                    distinct.setdefault((found.tokens, found.end.finished), found)
        return sorted(distinct.values(), key=order)

    def _first_live_positions(self, tokens: Tensor) -> Tensor:
        """Return (…, W), the positions of the first W of tokens (…, N) that are not EOS."""
        return (tokens == EOS).int().argsort(dim=-1, stable=True)[..., : self._size]


def _count_shared(tokens: Tensor, earlier: Tensor) -> Tensor:
    """Return (B, N) float32, the number of occurrences in `earlier` (B, P) of each of `tokens` (B, N)."""
    return (tokens.unsqueeze(2) == earlier.unsqueeze(1)).sum(2).float()


def _live_tokens(tokens: Tensor, totals: Tensor) -> Tensor:
    """Replace the tokens of empty slots and of ended hypotheses with `_NONE`."""
    return tokens.masked_fill((totals == -torch.inf) | (tokens == EOS), _NONE)
