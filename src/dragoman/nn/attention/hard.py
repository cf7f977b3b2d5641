"""Hard attention: each step attends to a few selected positions only."""

from dataclasses import replace
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.soft import Queries, QueryKeyPairs, SoftAttention, SoftAttentionConfig
from dragoman.nn.attention.weights import normalise
from dragoman.nn.auxiliary import Decisions, collector, uses_expected_values
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.randomness import generator

_SMALLEST = 1e-20
_REINFORCE_SETTINGS = {"baseline", "entropy_weight", "baseline_weight", "discount"}


class HardAttentionConfig(SoftAttentionConfig):
    """Each head selects one position z and returns its value v_z (Xu et al. 2015, section 4.1).

    `straight_through` selects the position with the largest α, also in training. The backward pass treats α as the
    weights (Bengio et al. 2013, section 4): ∂L/∂α_j = ∂L/∂o · v_j, also for positions that were not selected.

    `reinforce` samples z ~ α in training, as in the paper. The reward is the negative loss of the current token plus
    the discounted negative losses of later tokens (γ is `discount`), minus a baseline. An entropy bonus encourages
    exploration. At inference, the position with the largest α is selected.

    YAML: `decoder: {cross_attention: {kind: hard}}`
    """

    kind: Literal["hard"] = "hard"  # type: ignore[assignment]
    gradient: Literal["straight_through", "reinforce"] = Field(
        "straight_through",
        description="Gradient estimator that trains the selection: straight_through uses the gradient of the soft "
        "attention weights; reinforce uses the reward of the sampled positions.",
    )
    soft_updates: int = Field(
        0,
        ge=0,
        description="Number of initial updates in which some queries use soft attention, the weighted mean over all "
        "keys. Their fraction falls linearly from 1 to `soft_fraction`. 0: the fraction is `soft_fraction` from the "
        "start.",
    )
    soft_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Fraction of the queries that use soft attention in training (Xu et al. 2015 use 0.5 with "
        "reinforce).",
    )
    max_positions: int | None = Field(
        None,
        ge=1,
        description="Maximum number of distinct positions that a head attends to per step. The values at these "
        "positions are averaged. null: 1, or 3 if `adaptive` is set.",
    )
    adaptive: bool = Field(
        False,
        description="Let the model decide after each position whether to attend to another position, up to "
        "`max_positions` in total (deck 003: discrete decisions, the number of steps).",
    )
    baseline: Literal["learned", "soft"] = Field(
        "learned",
        description="For reinforce: baseline of the rewards. learned: a linear function of the query. soft: in "
        "addition, the negative losses of the same model with soft attention, which takes a second forward pass (Deng "
        "et al. 2018).",
    )
    entropy_weight: float = Field(
        0.1,
        ge=0,
        description="For reinforce: weight of the entropy of the decisions (nats) in the loss. If it is too low, a "
        "head converges prematurely to the first useful position.",
    )
    baseline_weight: float = Field(
        1.0,
        ge=0,
        description="For reinforce: loss weight of (b − mean reward-to-go)², which trains the baseline b.",
    )
    discount: float = Field(
        0.0,
        ge=0,
        le=1,
        description="For reinforce: γ, discount per token of later rewards. With 1, the gradient estimate is unbiased. "
        "Lower values reduce its variance but introduce bias, unless no later state depends on the decision, as in a "
        "Transformer decoder with one layer, or in a recurrent decoder with luong wiring without input feeding.",
    )

    @model_validator(mode="before")
    @classmethod
    def _infer_reinforce(cls, values: Any) -> Any:
        """Select reinforce if one of its settings is given and `gradient` is not."""
        if isinstance(values, dict) and _REINFORCE_SETTINGS.intersection(values):
            return {"gradient": "reinforce", **values}
        return values

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. Raises ConfigError for mutually exclusive settings."""
        if positions is not None:
            raise ConfigError(
                "attention of kind hard is available over the source only: choose another kind for self-attention"
            )
        if self.adaptive and self.max_positions == 1:
            raise ConfigError(
                "adaptive has no effect with max_positions=1: raise max_positions, or set adaptive to false"
            )
        return HardAttention(self, sizes)


class HardAttention(SoftAttention):
    """Attention that returns the values of selected positions. Built by `HardAttentionConfig.build`.

    A step may select several positions one after another, without replacement:
    P(z₁, …, z_n) = Π α_{z_i} / (1 − Σ_{j<i} α_{z_j}). The decision to select another position is shared by all heads
    and computed from the query and the mean of the values selected so far. Random decisions are drawn from the thread's
    generator, so they are reproducible with a seed. No gradient flows through them. Dropout is not applied to the
    weights, because a position is either selected or not.
    """

    def __init__(self, config: HardAttentionConfig, sizes: AttentionSizes) -> None:
        super().__init__(config, replace(sizes, dropout=0.0), None)
        self.max_positions = config.max_positions or (3 if config.adaptive else 1)
        self.is_sampled = config.gradient == "reinforce"
        self.soft_updates, self.soft_fraction = config.soft_updates, config.soft_fraction
        self.has_soft_baseline = config.baseline == "soft"
        self.entropy_weight, self.baseline_weight = config.entropy_weight, config.baseline_weight
        self.discount = config.discount
        query, _, value = config.head_widths(sizes)
        self.baseline = nn.Linear(sizes.heads * query, 1) if self.is_sampled else None
        self.again = nn.Linear(sizes.heads * (query + value), 1) if config.adaptive else None

    def context(self, pairs: QueryKeyPairs) -> Tensor:
        """Return the mean of the values at the n positions that a query selects: (B, h, K·T, d_v)."""
        scores = self.scores(pairs)
        exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
        weights = normalise(exact, pairs.mask, self.config.normaliser)
        # The penalty is computed from α, because the selection itself has no gradient.
        self.add_penalty(weights, pairs.queries.mask)
        if uses_expected_values():
            return self.mean(weights.to(pairs.keys.values.dtype), pairs)
        return self.mean(self._selection_weights(weights, pairs.queries, pairs.keys.values), pairs)

    def _selection_weights(self, weights: Tensor, queries: Queries, values: Tensor) -> Tensor:
        """Return 1/n at the n positions that a query selects and 0 elsewhere: (B, h, Q, S), Q = K·T."""
        sampling, straight_through = self.training and self.is_sampled, self.training and not self.is_sampled
        states = queries.vectors.transpose(1, 2).flatten(2)  # (B, Q, h·d_q)
        decisions: list[tuple[Tensor, Tensor]] = []  # log-probability and entropy (B, Q) of each decision, in order
        selected = torch.zeros_like(weights)  # 1 at positions selected so far
        # The same values with straight-through gradients, and the gate (B, 1, Q, 1) of the next selection.
        differentiable, gate = selected, torch.ones_like(weights[:, :1, :, :1])
        active_queries = torch.ones_like(weights[:, 0, :, 0], dtype=torch.bool)  # (B, Q)
        for number in range(self.max_positions):
            remaining = weights * (1 - selected)
            mass = remaining.sum(-1, keepdim=True)
            possible = mass > _SMALLEST  # (B, h, Q, 1)
            remaining = remaining / mass.clamp_min(_SMALLEST)
            positions = sample_positions(remaining.detach()) if sampling else remaining.argmax(-1)
            selection = torch.zeros_like(remaining).scatter_(-1, positions.unsqueeze(-1), 1.0) * possible
            if straight_through:  # inactive queries have gate 0; their gradient trains the gate
                differentiable = differentiable + gate * _straight_through(selection, remaining * possible)
            active = possible & active_queries[:, None, :, None]
            selection = selection * active
            selected = selected + selection
            if sampling:
                logarithm = remaining.clamp_min(_SMALLEST).log()
                decisions.append(((selection * logarithm).sum((1, 3)), -(active * remaining * logarithm).sum((1, 3))))
            if self.again is not None and number + 1 < self.max_positions:
                active_queries = active_queries & ((weights * (1 - selected)).sum(-1) > _SMALLEST).any(1)
                average = torch.matmul(_normalise_counts(selected), values.to(selected.dtype))
                context = average.transpose(1, 2).flatten(2)  # (B, Q, h·d_v)
                logits = self.again(torch.cat((states, context.to(states.dtype)), 2)).squeeze(2).to(weights.dtype)
                probability = torch.sigmoid(logits)  # (B, Q)
                continues = sample_bernoulli(probability.detach()) if sampling else probability > 0.5
                if sampling:
                    decisions.append(_bernoulli_terms(logits, probability, continues, active_queries))
                active_queries = active_queries & continues
                if straight_through:
                    gate = gate * _straight_through(active_queries.to(gate.dtype), probability)[:, None, :, None]
        result = _normalise_counts(differentiable if straight_through else selected)
        if self.training and (fraction := self._soft_fraction()):
            is_soft = sample_bernoulli(torch.full_like(weights[:, :1, :, :1], fraction))
            result = torch.where(is_soft, weights, result)
            # The output of these queries does not depend on their decisions.
            decisions = [_mask_decision(terms, is_soft[:, 0, :, 0]) for terms in decisions]
        if self.training:
            self._report(states, decisions, selected, queries.rows, queries.mask)
        return result.to(values.dtype)

    def _soft_fraction(self) -> float:
        """Return the fraction of queries that use soft attention in the current update."""
        auxiliary = collector()
        if auxiliary is None:
            return 0.0
        if auxiliary.step > self.soft_updates:
            return self.soft_fraction
        return self.soft_fraction + (1 - self.soft_fraction) * (1 - (auxiliary.step - 1) / self.soft_updates)

    def _report(
        self, states: Tensor, parts: list[tuple[Tensor, Tensor]], selected: Tensor, rows: int, query_mask: Tensor | None
    ) -> None:
        """Report the random decisions and the numbers of selected positions to the training objective."""
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
                self.has_soft_baseline,
            )
            auxiliary.decide(self, decisions)
        if self.again is not None:
            numbers = selected.sum(-1).amax(1).reshape(rows, -1).long()
            numbers = numbers if query_mask is None else numbers[query_mask]
            auxiliary.count("looks", torch.bincount(numbers.flatten(), minlength=self.max_positions + 1))


def sample_positions(probabilities: Tensor) -> Tensor:
    """Draw one position from each distribution (…, S): (…) int64; 0 if all probabilities are zero."""
    # The argmax of p/E with E ~ Exp(1) is distributed as p, and takes a single pass on any device.
    exponentials = torch.empty_like(probabilities).exponential_(generator=generator(probabilities.device))
    exponentials.clamp_min_(torch.finfo(probabilities.dtype).tiny)
    return (probabilities / exponentials).argmax(-1)


def sample_bernoulli(probabilities: Tensor) -> Tensor:
    """Draw one Bernoulli variable per element of `probabilities`: bool, of the same shape."""
    draws = torch.empty_like(probabilities).uniform_(generator=generator(probabilities.device))
    return draws < probabilities


def _bernoulli_terms(logits: Tensor, probability: Tensor, continues: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probability and entropy of the decision whether to continue; both are 0 for inactive queries."""
    yes, no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    entropy = -probability * yes - (1 - probability) * no
    return torch.where(continues, yes, no) * active, entropy * active


def _mask_decision(terms: tuple[Tensor, Tensor], masked: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log-probability and entropy (B, Q) of a decision, with 0 where `masked` (B, Q) is True."""
    log_probability, entropy = terms
    return log_probability.masked_fill(masked, 0.0), entropy.masked_fill(masked, 0.0)


def _normalise_counts(selected: Tensor) -> Tensor:
    return selected / selected.sum(-1, keepdim=True).clamp_min(1)


def _straight_through(selection: Tensor, weights: Tensor) -> Tensor:
    """Return exactly `selection`, with the gradient of `weights`."""
    return _StraightThrough.apply(selection, weights)  # type: ignore[no-any-return,no-untyped-call]


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, selection: Tensor, weights: Tensor) -> Tensor:
        return selection.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, gradient
