"""Hard attention: a step looks at few positions, which are sampled while it learns and the most probable afterwards."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.soft import Comparison, Queries, SoftAttention, SoftAttentionConfig, normalise
from dragoman.nn.auxiliary import Decisions, collector
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.randomness import generator

_SMALLEST = 1e-20


class HardAttentionConfig(SoftAttentionConfig):
    """Heads that each look at one position, z ~ α, and take its value v_z (Xu et al. 2015, section 4.1).

    The choice is trained with REINFORCE: the reward is minus the loss of that step's token, and γ times as much of each
    later one (`discount`), less a learned baseline; the entropy of α is encouraged. Translation looks where α is
    largest.

    YAML: `decoder: {cross_attention: {kind: hard}}`
    """

    kind: Literal["hard"] = "hard"  # type: ignore[assignment]
    looks: int | None = Field(
        None,
        ge=1,
        description="positions that a head looks at in one step, each another one; their values are averaged; null: 1, "
        "or 3 where adaptive",
    )
    adaptive: bool = Field(
        False,
        description="after each look a step decides whether to look again, at most `looks` times in all (deck 003: "
        "discrete decisions, the number of steps)",
    )
    entropy_weight: float = Field(
        0.1,
        ge=0,
        description="weight of the choices' entropy (nats) in the loss; too little, and a head settles for the first "
        "position that helps",
    )
    baseline_weight: float = Field(
        1.0, ge=0, description="weight in the loss of (b − mean reward to go)², which trains the baseline b"
    )
    discount: float = Field(
        0.0,
        ge=0,
        le=1,
        description="γ, what a reward counts that comes a token later; 1: the estimate has no bias; below: less noise, "
        "and a bias, except where no later state reads the choice: in a Transformer decoder of one layer, or a "
        "recurrent one wired as luong without input feeding",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """The module. Raises ConfigError for settings that do not go together."""
        if positions is not None:
            raise ConfigError("attention of kind hard looks at the source only: choose another kind for self-attention")
        if self.adaptive and self.looks == 1:
            raise ConfigError("adaptive has nothing to decide with looks=1: raise looks, or set adaptive to false")
        return HardAttention(self, sizes)


class HardAttention(SoftAttention):
    """Values of sampled positions instead of a mean over all. Built by `HardAttentionConfig.build`.

    In training positions are drawn from torch's default generator, so a seed fixes them, and no gradient flows through
    what was drawn. Later looks of a step draw from the rest: P(z₁, …, z_n) = Π α_{z_i} / (1 − Σ_{j<i} α_{z_j}). Whether
    a step looks again is one decision for all heads, read off its query and the mean of what it saw so far.
    """

    def __init__(self, config: HardAttentionConfig, sizes: AttentionSizes) -> None:
        super().__init__(config, sizes, None)
        self.looks = config.looks or (3 if config.adaptive else 1)
        self.entropy_weight, self.baseline_weight = config.entropy_weight, config.baseline_weight
        self.discount = config.discount
        query, _, value = config.head_widths(sizes)
        self.baseline = nn.Linear(sizes.heads * query, 1)
        self.again = nn.Linear(sizes.heads * (query + value), 1) if config.adaptive else None

    def context(self, pairs: Comparison) -> Tensor:
        """The mean of the values at the n positions that a query looks at: (B, h, K·T, d_v)."""
        scores = self.scores(pairs)
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = normalise(exact, pairs.mask, self.config.normaliser)
        self.penalise(weights, pairs.queries.keep)  # and not what is drawn, which has no gradient
        return self.mean(self._chosen(weights, pairs.queries, pairs.keys.values), pairs)

    def _chosen(self, weights: Tensor, queries: Queries, values: Tensor) -> Tensor:
        """1/n at the n positions that a query looks at, 0 elsewhere: (B, h, Q, S), Q = K·T."""
        states = queries.vectors.transpose(1, 2).flatten(2)  # (B, Q, h·d_q)
        told: list[tuple[Tensor, Tensor]] = []  # log-probability and entropy (B, Q) of one decision after another
        seen = torch.zeros_like(weights)
        looking = torch.ones_like(weights[:, 0, :, 0], dtype=torch.bool)  # (B, Q)
        for look in range(self.looks):
            left = weights * (1 - seen)
            mass = left.sum(-1, keepdim=True)
            active = (mass > _SMALLEST) & looking[:, None, :, None]  # (B, h, Q, 1)
            left = left / mass.clamp_min(_SMALLEST)
            places = sampled(left.detach()) if self.training else left.argmax(-1)
            chosen = torch.zeros_like(left).scatter_(-1, places.unsqueeze(-1), 1.0) * active
            seen = seen + chosen
            if self.training:
                logarithm = left.clamp_min(_SMALLEST).log()
                told.append(((chosen * logarithm).sum((1, 3)), -(active * left * logarithm).sum((1, 3))))
            if self.again is not None and look + 1 < self.looks:
                looking = looking & ((weights * (1 - seen)).sum(-1) > _SMALLEST).any(1)
                met = torch.matmul(_mean(seen), values.to(seen.dtype)).transpose(1, 2).flatten(2)
                logits = self.again(torch.cat((states, met.to(states.dtype)), 2)).squeeze(2).to(weights.dtype)
                probability = torch.sigmoid(logits)
                again = flipped(probability.detach()) if self.training else probability > 0.5
                taken = torch.where(again, logits, -logits)
                uncertainty = -probability * functional.logsigmoid(logits) - (1 - probability) * functional.logsigmoid(
                    -logits
                )
                told.append((functional.logsigmoid(taken) * looking, uncertainty * looking))
                looking = looking & again
        if self.training:
            self._tell(states, told, seen, queries.rows, queries.keep)
        return _mean(seen).to(values.dtype)

    def _tell(
        self, states: Tensor, told: list[tuple[Tensor, Tensor]], seen: Tensor, rows: int, keep: Tensor | None
    ) -> None:
        auxiliary = collector()
        if auxiliary is None:
            return
        log_probability, entropy = (torch.stack(parts).sum(0) for parts in zip(*told, strict=True))
        baseline = self.baseline(states.detach()).squeeze(2)
        decisions = Decisions(
            log_probability.reshape(rows, -1),
            entropy.reshape(rows, -1),
            baseline.reshape(rows, -1),
            self.entropy_weight,
            self.baseline_weight,
            self.discount,
            "hard_attention",
        )
        auxiliary.decide(self, decisions)
        if self.again is not None:
            number = seen.sum(-1).amax(1).reshape(rows, -1).long()
            number = number if keep is None else number[keep]
            auxiliary.count("looks", torch.bincount(number.flatten(), minlength=self.looks + 1))


def sampled(probabilities: Tensor) -> Tensor:
    """One position of each distribution (…, S), by its probability: (…) int64; 0 where all are zero."""
    # argmax of p/E, E ~ Exp(1), is distributed as p, and takes one pass on any device
    waits = torch.empty_like(probabilities).exponential_(generator=generator(probabilities.device))
    waits.clamp_min_(torch.finfo(probabilities.dtype).tiny)
    return (probabilities / waits).argmax(-1)


def flipped(probabilities: Tensor) -> Tensor:
    """Coins that show True by their probabilities, of any shape."""
    draws = torch.empty_like(probabilities).uniform_(generator=generator(probabilities.device))
    return draws < probabilities


def _mean(seen: Tensor) -> Tensor:
    return seen / seen.sum(-1, keepdim=True).clamp_min(1)
