"""Hard attention: each step attends a few positions and no others."""

from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.soft import Queries, QueryKeyPairs, SoftAttention, SoftAttentionConfig, normalise
from dragoman.nn.auxiliary import Decisions, collector
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.randomness import generator

_SMALLEST = 1e-20
_REINFORCE_SETTINGS = {"entropy_weight", "baseline_weight", "discount"}


class HardAttentionConfig(SoftAttentionConfig):
    """Each head selects one position z and returns its value v_z (Xu et al. 2015, section 4.1).

    `straight_through` selects the position with the largest α, in training too, and passes the gradient as if α itself
    had been the weights (Bengio et al. 2013, section 4): ∂L/∂α_j = ∂L/∂o · v_j, for unselected positions too.

    `reinforce` draws z ~ α in training (the paper). The reward is the negative loss of the step's token plus that of
    later tokens discounted by γ (`discount`), minus a learned baseline; the entropy of α is encouraged. Translation
    selects the position with the largest α.

    YAML: `decoder: {cross_attention: {kind: hard}}`
    """

    kind: Literal["hard"] = "hard"  # type: ignore[assignment]
    gradient: Literal["straight_through", "reinforce"] = Field(
        "straight_through",
        description="How the selection is trained: straight_through, with the gradient of soft attention's weights, "
        "or reinforce, with the reward of the sampled positions.",
    )
    soft_updates: int = Field(
        0,
        ge=0,
        description="For straight_through: number of updates during which a share of the queries, falling from 1 to 0, "
        "uses the weighted mean over all keys, as in soft attention. 0: no queries do.",
    )
    looks: int | None = Field(
        None,
        ge=1,
        description="Number of distinct positions that a head reads per step; their values are averaged. null: 1, or "
        "3 if adaptive.",
    )
    adaptive: bool = Field(
        False,
        description="Decide after each read whether to read another position, up to `looks` in total (deck 003: "
        "discrete decisions, the number of steps).",
    )
    entropy_weight: float = Field(
        0.1,
        ge=0,
        description="For reinforce: weight of the entropy of the choices (nats) in the loss. If it is too low, a head "
        "settles on the first position that helps.",
    )
    baseline_weight: float = Field(
        1.0,
        ge=0,
        description="For reinforce: weight in the loss of (b − mean reward to go)², which trains the baseline b.",
    )
    discount: float = Field(
        0.0,
        ge=0,
        le=1,
        description="For reinforce: γ, discount per token of later rewards. At 1 the estimate is unbiased. Lower "
        "values reduce its variance and add a bias, except if no later state depends on the choice: in a "
        "Transformer decoder with one layer, or a recurrent decoder with luong wiring without input "
        "feeding.",
    )

    @model_validator(mode="before")
    @classmethod
    def _infer_reinforce(cls, values: Any) -> Any:
        """Read model folders that were written before `gradient` existed."""
        if isinstance(values, dict) and _REINFORCE_SETTINGS.intersection(values):
            return {"gradient": "reinforce", **values}
        return values

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. Raises ConfigError for mutually exclusive settings."""
        if positions is not None:
            raise ConfigError("attention of kind hard attends the source only: choose another kind for self-attention")
        if self.adaptive and self.looks == 1:
            raise ConfigError("with looks=1, adaptive has nothing to decide: raise looks, or set adaptive to false")
        return HardAttention(self, sizes)


class HardAttention(SoftAttention):
    """Values of selected positions instead of a mean over all. Built by `HardAttentionConfig.build`.

    A step may select several positions, one after another without replacement:
    P(z₁, …, z_n) = Π α_{z_i} / (1 − Σ_{j<i} α_{z_j}). Whether to select another one is a single decision for all heads,
    computed from the query and the mean of the values selected so far. Random decisions come from the thread's
    generator, so a seed fixes them, and no gradient flows through them. There is no dropout on the weights, because a
    selected value is either used as a whole or not at all.
    """

    def __init__(self, config: HardAttentionConfig, sizes: AttentionSizes) -> None:
        super().__init__(config, replace(sizes, dropout=0.0), None)
        self.looks = config.looks or (3 if config.adaptive else 1)
        self.drawn = config.gradient == "reinforce"
        self.soft_updates = 0 if self.drawn else config.soft_updates
        self.entropy_weight, self.baseline_weight = config.entropy_weight, config.baseline_weight
        self.discount = config.discount
        query, _, value = config.head_widths(sizes)
        self.baseline = nn.Linear(sizes.heads * query, 1) if self.drawn else None
        self.again = nn.Linear(sizes.heads * (query + value), 1) if config.adaptive else None

    def context(self, pairs: QueryKeyPairs) -> Tensor:
        """Return the mean of the values at the n positions that a query selects: (B, h, K·T, d_v)."""
        scores = self.scores(pairs)
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = normalise(exact, pairs.mask, self.config.normaliser)
        self.add_penalty(weights, pairs.queries.mask)  # of α: the selection itself has no gradient
        return self.mean(self._chosen(weights, pairs.queries, pairs.keys.values), pairs)

    def _chosen(self, weights: Tensor, queries: Queries, values: Tensor) -> Tensor:
        """Return 1/n at the n positions that a query selects and 0 elsewhere: (B, h, Q, S), Q = K·T."""
        sampling, through = self.training and self.drawn, self.training and not self.drawn
        states = queries.vectors.transpose(1, 2).flatten(2)  # (B, Q, h·d_q)
        decisions: list[tuple[Tensor, Tensor]] = []  # log-probability and entropy (B, Q) of each decision, in order
        seen = torch.zeros_like(weights)  # 1 at positions that were selected
        passed, gate = seen, torch.ones_like(weights[:, :1, :, :1])  # `seen` with gradients; (B, 1, Q, 1)
        active_queries = torch.ones_like(weights[:, 0, :, 0], dtype=torch.bool)  # (B, Q)
        for number in range(self.looks):
            left = weights * (1 - seen)
            mass = left.sum(-1, keepdim=True)
            possible = mass > _SMALLEST  # (B, h, Q, 1)
            left = left / mass.clamp_min(_SMALLEST)
            positions = sampled(left.detach()) if sampling else left.argmax(-1)
            chosen = torch.zeros_like(left).scatter_(-1, positions.unsqueeze(-1), 1.0) * possible
            if through:  # also for inactive queries, whose gate is 0: the gate learns the effect of a further selection
                passed = passed + gate * _straight_through(chosen, left * possible)
            active = possible & active_queries[:, None, :, None]
            chosen = chosen * active
            seen = seen + chosen
            if sampling:
                logarithm = left.clamp_min(_SMALLEST).log()
                decisions.append(((chosen * logarithm).sum((1, 3)), -(active * left * logarithm).sum((1, 3))))
            if self.again is not None and number + 1 < self.looks:
                active_queries = active_queries & ((weights * (1 - seen)).sum(-1) > _SMALLEST).any(1)
                context = torch.matmul(_mean(seen), values.to(seen.dtype)).transpose(1, 2).flatten(2)  # (B, Q, h·d_v)
                logits = self.again(torch.cat((states, context.to(states.dtype)), 2)).squeeze(2).to(weights.dtype)
                probability = torch.sigmoid(logits)  # (B, Q)
                again = flipped(probability.detach()) if sampling else probability > 0.5
                if sampling:
                    decisions.append(_bernoulli_terms(logits, probability, again, active_queries))
                active_queries = active_queries & again
                if through:
                    gate = gate * _straight_through(active_queries.to(gate.dtype), probability)[:, None, :, None]
        if self.training:
            self._report(states, decisions, seen, queries.rows, queries.mask)
        found = _mean(passed if through else seen)
        if self.training and (share := self._soft_share()):
            soft = flipped(torch.full_like(weights[:, :1, :, :1], share))
            found = torch.where(soft, weights, found)
        return found.to(values.dtype)

    def _soft_share(self) -> float:
        """Return the share of queries that use soft attention's mean in the current update."""
        auxiliary = collector()
        if auxiliary is None or not self.soft_updates:
            return 0.0
        return max(0.0, 1 - (auxiliary.step - 1) / self.soft_updates)

    def _report(
        self, states: Tensor, parts: list[tuple[Tensor, Tensor]], seen: Tensor, rows: int, query_mask: Tensor | None
    ) -> None:
        auxiliary = collector()
        if auxiliary is None:
            return
        if self.baseline is not None:
            log_probability, entropy = (torch.stack(terms).sum(0) for terms in zip(*parts, strict=True))
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
            number = number if query_mask is None else number[query_mask]
            auxiliary.count("looks", torch.bincount(number.flatten(), minlength=self.looks + 1))


def sampled(probabilities: Tensor) -> Tensor:
    """Draw one position from each distribution (…, S): (…) int64; 0 if all probabilities are zero."""
    # argmax of p/E with E ~ Exp(1) has distribution p and takes one pass on any device
    waits = torch.empty_like(probabilities).exponential_(generator=generator(probabilities.device))
    waits.clamp_min_(torch.finfo(probabilities.dtype).tiny)
    return (probabilities / waits).argmax(-1)


def flipped(probabilities: Tensor) -> Tensor:
    """Draw Bernoulli variables with the given probabilities, of any shape."""
    draws = torch.empty_like(probabilities).uniform_(generator=generator(probabilities.device))
    return draws < probabilities


def _bernoulli_terms(logits: Tensor, probability: Tensor, again: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """Return log-probability and entropy of the decision to select again, 0 for inactive queries."""
    yes, no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    entropy = -probability * yes - (1 - probability) * no
    return torch.where(again, yes, no) * active, entropy * active


def _mean(seen: Tensor) -> Tensor:
    return seen / seen.sum(-1, keepdim=True).clamp_min(1)


def _straight_through(chosen: Tensor, weights: Tensor) -> Tensor:
    """Return exactly `chosen`, with the gradient of `weights`."""
    return _StraightThrough.apply(chosen, weights)  # type: ignore[no-any-return,no-untyped-call]


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, chosen: Tensor, weights: Tensor) -> Tensor:
        return chosen.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient
