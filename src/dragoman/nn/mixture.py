"""A sparsely gated mixture of experts, used instead of a feed-forward network."""

from collections.abc import Callable
from math import ceil

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.nn.auxiliary import Auxiliary, collector
from dragoman.nn.feedforward import FeedForward


class ExpertsConfig(Config):
    """y = Σ over the top k experts e of G_e(x)·FFN_e(x) (Shazeer et al. 2017, equations 1, 3 and 5, without noise).

    G is the softmax of xW_r over the top k experts. For k = 1, it is the softmax over all experts, so that the router
    receives a gradient (Fedus et al. 2022, equation 2).

    YAML: `encoder: {experts: {count: 8, active: 2}}`
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

    def build(self, width: int, build_expert: Callable[[], FeedForward]) -> "Mixture":
        """Build the module. build_expert: builds one expert. Raises ConfigError if `active` exceeds `count`."""
        if self.active > self.count:
            raise ConfigError(
                f"experts.active = {self.active} exceeds experts.count = {self.count}: lower the first or raise the "
                "second"
            )
        return Mixture(self, width, build_expert)


class Mixture(nn.Module):
    """Route each token to the k experts with the highest router scores. Ties are resolved by expert order.

    The router computes in at least float32. In training, it reports the penalty `balance` (Fedus et al. 2022, equations
    4 to 6), computed before the capacity limit and without padding, and two counts: `experts`, the number of tokens
    routed to each expert, and `over_capacity`, the number of those that exceeded its capacity. Capacity is assigned
    first by rank of choice, then by order in the batch (GShard, algorithm 1). In evaluation, there is no capacity
    limit, so the result of a token does not depend on other tokens.

    reads_whole_batches: True, because capacities and penalties are defined for whole batches, so that ranks must not
    divide a batch.
    """

    timed = (("forward", "feed-forward"),)

    reads_whole_batches = True

    def __init__(self, config: ExpertsConfig, width: int, build_expert: Callable[[], FeedForward]) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Parameter(torch.empty(config.count, width))
        nn.init.normal_(self.router, std=width**-0.5)
        self.experts = nn.ModuleList(build_expert() for _ in range(config.count))

    @property
    def idle_parameters(self) -> int:
        """Number of parameters that a single token does not use."""
        expert_size = sum(parameter.numel() for parameter in self.experts[0].parameters())
        return (self.config.count - self.config.active) * expert_size

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the experts: (…, d) → (…, d). mask: (…) bool, False at padding, for which the output is zero."""
        count, active = self.config.count, self.config.active
        tokens = states.flatten(0, -2)
        probabilities = self._probabilities(tokens)
        gates, chosen = (tensor[:, :active] for tensor in probabilities.sort(dim=-1, descending=True, stable=True))
        if active > 1:
            gates = gates / gates.sum(-1, keepdim=True)
        if mask is not None:
            chosen = chosen.masked_fill(~mask.flatten()[:, None], count)
        choices = chosen.t().flatten()  # all first choices, then all second ones
        sizes: list[int] = torch.bincount(choices, minlength=count + 1).tolist()[:count]
        capacity = max(sizes)
        auxiliary = collector()
        if auxiliary is not None:
            if self.training and self.config.capacity is not None:
                capacity = max(1, ceil(self.config.capacity * sum(sizes) / count))
            real = probabilities if mask is None else probabilities[mask.flatten()]
            self._report(auxiliary, real, sizes, capacity)
        return self._combine_experts(tokens, gates.t(), choices, sizes, capacity).view_as(states)

    def _probabilities(self, tokens: Tensor) -> Tensor:
        """Return the router's probabilities (N, E), in at least float32, because rounding would change the routing."""
        dtype = torch.promote_types(tokens.dtype, torch.float32)
        with torch.autocast(tokens.device.type, enabled=False):
            return torch.softmax(functional.linear(tokens.to(dtype), self.router.to(dtype)), -1)

    def _report(self, auxiliary: Auxiliary, probabilities: Tensor, sizes: list[int], capacity: int) -> None:
        count = self.config.count
        loads = torch.tensor(sizes, device=probabilities.device)
        fractions = loads.to(probabilities.dtype) / max(sum(sizes), 1)
        total = count * (fractions * probabilities.sum(0)).sum()
        auxiliary.penalise("balance", total, float(len(probabilities)), self.config.balance)
        auxiliary.count("experts", loads)
        auxiliary.count("over_capacity", (loads - capacity).clamp_min(0).sum().view(1))

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
