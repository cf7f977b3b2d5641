"""A sparsely gated mixture of experts, used instead of a feed-forward network."""

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.nn.auxiliary import Auxiliary, collector
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.randomness import generator


class NoiseConfig(Config):
    """Noisy gating: H(x) = xW_r + ε ⊙ softplus(xW_n) with ε ~ N(0, 1) (Shazeer et al. 2017, equation 4).

    In training, the k experts with the highest H(x) are chosen, and G is the softmax of their H(x). In evaluation,
    there is no noise. Both matrices are initially zero, so that the first loads are equal (appendix A).
    """

    load: float = Field(
        0.01,
        ge=0,
        description="Loss weight of CV(Load)² (appendix A, equation 11), the squared coefficient of variation of the "
        "experts' loads. Load_e is the sum over the tokens of the probability that e would be chosen if its own noise "
        "were drawn again.",
    )


class ExpertsConfig(Config):
    """y = Σ over the top k experts e of G_e(x)·FFN_e(x) (Shazeer et al. 2017, equations 1 to 5).

    G is the softmax of xW_r over the top k experts. For k = 1, it is the softmax over all experts, so that the router
    receives a gradient (Fedus et al. 2022, equation 2).

    YAML: `encoder: {experts: {count: 8, active: 2}}`; the losses of Shazeer et al.:
    `experts: {noise: {load: 0.01}, importance: 0.01, balance: 0, capacity: null}`
    """

    count: int = Field(8, ge=2, description="Number of experts E, each a separate feed-forward network.")
    active: int = Field(
        2, ge=1, description="Number of experts k that process each token (Switch Transformer: 1, GShard: 2)."
    )
    capacity: float | None = Field(
        1.25,
        gt=0,
        description="Capacity factor c: in training, an expert processes at most c·k·tokens/E tokens of a batch. Its "
        "output for all further tokens is zero, so that only the residual connection remains. null: no limit.",
    )
    balance: float = Field(
        0.01,
        ge=0,
        description="Loss weight of the load-balancing term E·Σ share_e·mean G_e, which is 1 if all experts process "
        "the same number of tokens.",
    )
    noise: NoiseConfig | None = Field(
        None, description="Random noise on the router's scores in training (Shazeer et al. 2017). null: none."
    )
    importance: float = Field(
        0.0,
        ge=0,
        description="Loss weight of CV(Importance)² (Shazeer et al. 2017, equation 7), the squared coefficient of "
        "variation of the experts' importance. Importance_e is the sum of G_e over the tokens.",
    )
    sigmoid: bool = Field(
        False, description="Apply the sigmoid function to y, as in the models of Shazeer et al. 2017."
    )

    def check(self) -> None:
        """Raise ConfigError if `active` exceeds `count`."""
        if self.active > self.count:
            raise ConfigError(
                f"experts.active = {self.active} exceeds experts.count = {self.count}: lower the first or raise the "
                "second"
            )

    def build(self, width: int, build_expert: Callable[[], FeedForward]) -> "Mixture":
        """Build the module. build_expert: builds one expert. Raises ConfigError if `active` exceeds `count`."""
        self.check()
        return Mixture(self, width, build_expert)


class Mixture(nn.Module):
    """Route each token to the k experts with the highest router scores. Ties are resolved by expert order.

    The router computes in at least float32. In training, it reports the penalties `balance` (Fedus et al. 2022,
    equations 4 to 6) and, if they are set, `importance` and `load`, all computed before the capacity limit and without
    padding, and two counts: `experts`, the number of tokens routed to each expert, and `over_capacity`, the number of
    those that exceeded its capacity. Capacity is assigned first by rank of choice, then by order in the batch (GShard,
    algorithm 1). In evaluation, there is no capacity limit and no noise, so the result of a token does not depend on
    other tokens.

    reads_whole_batches: True, because capacities and penalties are defined for whole batches, so that ranks must not
    divide a batch.
    """

    timed = (("forward", "feed-forward"),)

    reads_whole_batches = True

    def __init__(self, config: ExpertsConfig, width: int, build_expert: Callable[[], FeedForward]) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Parameter(torch.zeros(config.count, width))
        self.noise = None if config.noise is None else nn.Parameter(torch.zeros(config.count, width))
        if self.noise is None:
            nn.init.normal_(self.router, std=width**-0.5)
        self.experts = nn.ModuleList(build_expert() for _ in range(config.count))

    @property
    def idle_parameters(self) -> int:
        """Number of parameters that a single token does not use."""
        expert_size = sum(parameter.numel() for parameter in self.experts[0].parameters())
        return (self.config.count - self.config.active) * expert_size

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the experts: (…, d) → (…, d). mask: (…) bool, False at padding, where the weighted sum is zero."""
        count, active = self.config.count, self.config.active
        tokens = states.flatten(0, -2)
        real = None if mask is None else mask.flatten()
        routing = self._route(tokens, real)
        probabilities = torch.softmax(routing.scores, -1)
        gates, chosen = (tensor[:, :active] for tensor in probabilities.sort(dim=-1, descending=True, stable=True))
        if active > 1:
            gates = gates / gates.sum(-1, keepdim=True)
        choices = chosen if real is None else chosen.masked_fill(~real[:, None], count)
        choices = choices.t().flatten()  # all first choices, then all second ones
        sizes: list[int] = torch.bincount(choices, minlength=count + 1).tolist()[:count]
        capacity = max(sizes)
        auxiliary = collector()
        if auxiliary is not None:
            if self.training and self.config.capacity is not None:
                capacity = max(1, ceil(self.config.capacity * sum(sizes) / count))
            rows = slice(None) if real is None else real
            self._report(auxiliary, probabilities[rows], sizes, capacity)
            self._report_variation(auxiliary, gates[rows], chosen[rows], routing.select(rows))
        combined = self._combine_experts(tokens, gates.t(), choices, sizes, capacity).view_as(states)
        return torch.sigmoid(combined) if self.config.sigmoid else combined

    def _project(self, tokens: Tensor, weight: Tensor) -> Tensor:
        """Return the products (N, E) in at least float32, because rounding would change the routing."""
        dtype = torch.promote_types(tokens.dtype, torch.float32)
        with torch.autocast(tokens.device.type, enabled=False):
            return functional.linear(tokens.to(dtype), weight.to(dtype))

    def _route(self, tokens: Tensor, real: Tensor | None) -> "_Routing":
        """Return the scores of tokens (N, d), with noise in training. real: (N,) bool, False at padding."""
        means = self._project(tokens, self.router)
        if self.noise is None or not self.training:
            return _Routing(means, means)
        # The lower limit keeps the gradient of the load finite where softplus is rounded to zero.
        deviations = functional.softplus(self._project(tokens, self.noise)).clamp_min(1e-6)
        rows = slice(None) if real is None else real
        noise = torch.zeros_like(means)
        # Padding has no draws, so that the noise does not depend on it.
        noise[rows] = torch.randn(
            noise[rows].shape, dtype=means.dtype, device=means.device, generator=generator(means.device)
        )
        return _Routing(means + noise * deviations, means, deviations)

    def _report(self, auxiliary: Auxiliary, probabilities: Tensor, sizes: list[int], capacity: int) -> None:
        count = self.config.count
        loads = torch.tensor(sizes, device=probabilities.device)
        fractions = loads.to(probabilities.dtype) / max(sum(sizes), 1)
        total = count * (fractions * probabilities.sum(0)).sum()
        auxiliary.penalise("balance", total, float(len(probabilities)), self.config.balance)
        auxiliary.count("experts", loads)
        auxiliary.count("over_capacity", (loads - capacity).clamp_min(0).sum().view(1))

    def _report_variation(self, auxiliary: Auxiliary, gates: Tensor, chosen: Tensor, routing: "_Routing") -> None:
        """Report the penalties `importance` and `load`. gates, chosen: (N, k), the G and the indices of experts."""
        config, tokens = self.config, len(gates)
        if config.importance:
            importance = gates.new_zeros(tokens, config.count).scatter(1, chosen, gates).sum(0)
            auxiliary.penalise("importance", tokens * _variation(importance), float(tokens), config.importance)
        weight = 0.0 if config.noise is None or routing.deviations is None else config.noise.load
        if weight and config.active < config.count:  # otherwise, all experts process all tokens
            load = routing.probabilities(config.active).sum(0)
            auxiliary.penalise("load", tokens * _variation(load), float(tokens), weight)

    def _combine_experts(
        self, tokens: Tensor, gates: Tensor, choices: Tensor, sizes: list[int], capacity: int
    ) -> Tensor:
        """Return the gated sum (N, d) of the experts' outputs. Each expert processes its first `capacity` tokens.

        tokens: (N, d). gates: (k, N). choices: (k·N), the index of an expert, or E for padding. sizes: number of tokens
        routed to each expert.
        """
        order = choices.argsort(stable=True)
        results, start = [], 0
        for expert, size in zip(self.experts, sizes, strict=True):
            processed = min(size, capacity)
            if processed or self.training:  # in training, every expert needs a gradient, even if it is zero
                results.append(expert(tokens[order[start : start + processed] % len(tokens)]))
            if size > processed:
                results.append(results[-1].new_zeros(size - processed, tokens.size(-1)))
            start += size
        if start < len(choices):
            results.append(tokens.new_zeros(len(choices) - start, tokens.size(-1)))
        slots = torch.empty_like(order)
        slots[order] = torch.arange(len(order), device=order.device)
        combined = torch.cat(results)[slots].view(*gates.shape, -1)  # (k, N, d)
        return (combined * gates.unsqueeze(-1)).sum(0).to(tokens.dtype)


class _Routing(NamedTuple):
    """The scores (N, E) by which experts are chosen, and the mean and the standard deviation of their distribution."""

    scores: Tensor
    means: Tensor
    deviations: Tensor | None = None

    def select(self, rows: Tensor | slice) -> "_Routing":
        """Return the scores of some tokens."""
        return _Routing(*(None if tensor is None else tensor[rows] for tensor in self))  # type: ignore[arg-type]

    def probabilities(self, active: int) -> Tensor:
        """Return P(x, e) (N, E), the probability that expert e is among the `active` < E experts with the highest
        scores if its own noise is drawn again (Shazeer et al. 2017, equation 9).
        """
        assert self.deviations is not None
        highest = self.scores.topk(active + 1).values
        last, next_ = highest[:, active - 1 : active], highest[:, active:]
        thresholds = torch.where(self.scores >= last, next_, last)  # the k-th highest score of the other experts
        return torch.special.ndtr((self.means - thresholds) / self.deviations)  # type: ignore[no-any-return]


def _variation(values: Tensor) -> Tensor:
    """Return the squared coefficient of variation: the population variance over the squared mean; 0 for zeros."""
    return values.var(correction=0) / values.mean().square().clamp_min(1e-10)
