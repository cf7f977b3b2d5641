"""A sparsely gated mixture of experts in the place of a feed-forward network."""

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
    """y = Σ over the k best experts e of G_e(x)·FFN_e(x) (Shazeer et al. 2017, equations 1, 3 and 5, without noise).

    G is the softmax of xW_r over the k best; for k = 1 it is the probability among all, or the router would have no
    gradient (Fedus et al. 2022, equation 2). `encoder: {experts: {count: 8, active: 2}}`.
    """

    count: int = Field(8, ge=2, description="number of experts E, each a feed-forward network of its own")
    active: int = Field(2, ge=1, description="experts k that each token is given to (Switch Transformer: 1, GShard: 2)")
    capacity: float | None = Field(
        1.25,
        gt=0,
        description="in training an expert reads at most so many times its even share of the batch, k·tokens/E; for "
        "what is over that it gives zero, and the residual connection alone remains. null: no limit",
    )
    balance: float = Field(
        0.01, ge=0, description="weight in the loss of E·Σ share_e·mean G_e, which is 1 where all experts read alike"
    )

    def build(self, width: int, network: Callable[[], FeedForward]) -> "Mixture":
        """network: makes one expert. Raises ConfigError where more experts are active than there are."""
        if self.active > self.count:
            raise ConfigError(
                f"experts.active = {self.active} is more than experts.count = {self.count}: lower one, or raise the "
                "other"
            )
        return Mixture(self, width, network)


class Mixture(nn.Module):
    """Each token goes to the k experts that its router scores highest; among equals to the first ones.

    The router works in float32 at least. While the objective collects, it is told a penalty `balance` (Fedus et al.
    2022, equations 4 to 6; before capacity, real tokens alone), and counts: `experts`, the tokens given to each expert,
    and `over_capacity`, how many of them it did not read. A place in an expert is given by rank of choice, then by
    order in the batch (GShard, algorithm 1). Without an objective, and in evaluation, there is no capacity: a token's
    result depends on nothing but the token.

    reads_whole_batches: a part of a batch has other places and another penalty than the whole, so ranks do not cut it.
    """

    timed = (("forward", "feed-forward"),)

    reads_whole_batches = True

    def __init__(self, config: ExpertsConfig, width: int, network: Callable[[], FeedForward]) -> None:
        super().__init__()
        self.config = config
        self.router = nn.Parameter(torch.empty(config.count, width))
        nn.init.normal_(self.router, std=width**-0.5)
        self.experts = nn.ModuleList(network() for _ in range(config.count))

    @property
    def idle_parameters(self) -> int:
        """How many parameters a single token does not use."""
        one = sum(parameter.numel() for parameter in self.experts[0].parameters())
        return (self.config.count - self.config.active) * one

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        """(…, d) → (…, d). mask: (…) bool, False at padding, which no expert reads: zeros come out."""
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
        most = max(sizes)
        auxiliary = collector()
        if auxiliary is not None:
            if self.training and self.config.capacity is not None:
                most = max(1, ceil(self.config.capacity * sum(sizes) / count))
            real = probabilities if mask is None else probabilities[mask.flatten()]
            self._tell(auxiliary, real, sizes, most)
        return self._mixed(tokens, gates.t(), choices, sizes, most).view_as(states)

    def _probabilities(self, tokens: Tensor) -> Tensor:
        """(N, E), in float32 at least: rounded scores would send tokens elsewhere."""
        kind = torch.promote_types(tokens.dtype, torch.float32)
        with torch.autocast(tokens.device.type, enabled=False):
            return torch.softmax(functional.linear(tokens.to(kind), self.router.to(kind)), -1)

    def _tell(self, auxiliary: Auxiliary, probabilities: Tensor, sizes: list[int], most: int) -> None:
        count = self.config.count
        given = torch.tensor(sizes, device=probabilities.device)
        shares = given.to(probabilities.dtype) / max(sum(sizes), 1)
        total = count * (shares * probabilities.sum(0)).sum()
        auxiliary.penalise("balance", total, float(len(probabilities)), self.config.balance)
        auxiliary.count("experts", given)
        auxiliary.count("over_capacity", (given - most).clamp_min(0).sum().view(1))

    def _mixed(self, tokens: Tensor, gates: Tensor, choices: Tensor, sizes: list[int], most: int) -> Tensor:
        """tokens (N, d), gates (k, N), choices (k·N): experts, E for none, of which each reads the first `most`."""
        order = choices.argsort(stable=True)
        results, begin = [], 0
        for expert, size in zip(self.experts, sizes, strict=True):
            read = min(size, most)
            if read or self.training:  # in training each expert has a gradient, if only of zeros
                results.append(expert(tokens[order[begin : begin + read] % len(tokens)]))
            if size > read:
                results.append(results[-1].new_zeros(size - read, tokens.size(-1)))
            begin += size
        if begin < len(choices):
            results.append(tokens.new_zeros(len(choices) - begin, tokens.size(-1)))
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        together = torch.cat(results)[places].view(*gates.shape, -1)  # (k, N, d)
        return (together * gates.unsqueeze(-1)).sum(0).to(tokens.dtype)
