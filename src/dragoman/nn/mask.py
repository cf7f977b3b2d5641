"""Attention masks: which keys a query may attend. One mask is built per pass and shared by all layers."""

from functools import cached_property

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError


class Mask:
    """allowed: bool, broadcastable to (B, heads, T, S), True where a query may attend a key.

    A query without any allowed key attends nothing: its weights and its output are zero, never NaN. tokens: (B, S)
    bool, False at padding, or None if there is none. triangular: `allowed` is the square lower triangle, so that a
    kernel may use its own causal mask.
    """

    def __init__(self, allowed: Tensor, tokens: Tensor | None = None, triangular: bool = False) -> None:
        self.allowed, self.tokens, self.triangular = allowed, tokens, triangular
        self._hides_padding_only = False

    @staticmethod
    def padding(tokens: Tensor) -> "Mask":
        """Return the mask in which every query attends every token, from `tokens` (B, S) bool, False at padding."""
        mask = Mask(tokens[:, None, None, :], tokens)
        mask._hides_padding_only = True
        return mask

    @staticmethod
    def causal(new: int, total: int, device: torch.device) -> "Mask | None":
        """Return the mask of the last `new` of `total` positions over all of them, or None if it hides nothing.

        Each position attends itself and all earlier ones.
        """
        if new == 1:
            return None
        allowed = torch.ones(new, total, dtype=torch.bool, device=device).tril(total - new)
        return Mask(allowed[None, None], triangular=new == total)

    @staticmethod
    def graph(edges: Tensor, tokens: Tensor | None = None) -> "Mask":
        """Return the mask of a graph: node i attends node j where edges[…, i, j] is True (Veličković et al. 2018).

        edges: (S, S), one graph for the whole batch, or (B, S, S), bool. Add the diagonal for nodes that attend
        themselves. tokens: (B, S) bool, False at padding, whose edges are ignored. Only attention that compares all
        pairs, kinds soft and hard, takes such a mask.
        """
        allowed = edges[None, None] if edges.dim() == 2 else edges[:, None]
        return Mask(allowed if tokens is None else allowed & tokens[:, None, None, :], tokens)

    def token_mask(self, kind: str) -> Tensor:
        """Return (B, S) bool, False at padding, of a mask that hides only padding.

        Raises ConfigError, which names the attention's `kind`, for any other mask, such as a graph.
        """
        if not self._hides_padding_only or self.tokens is None:
            raise ConfigError(f"attention of kind {kind} cannot be restricted to the edges of a graph: use kind soft")
        return self.tokens

    @cached_property
    def bias(self) -> Tensor:
        """float32 of the shape of `allowed`, to be added to scores: 0 where attention is allowed, −inf elsewhere.

        A row without any allowed key is 0 throughout, so that its softmax and gradient stay finite until its weights
        are set to zero.
        """
        hidden = ~self.allowed if not self.has_empty_rows else ~self.allowed & self.allowed.any(-1, keepdim=True)
        return torch.zeros(self.allowed.shape, device=self.allowed.device).masked_fill_(hidden, float("-inf"))

    @cached_property
    def has_empty_rows(self) -> bool:
        """Return whether some query has no allowed key."""
        return not bool(self.allowed.any(-1).all())


class CausalSpan:
    """`new` tokens after `start` earlier ones; each attends itself and all earlier tokens.

    left_padding: (R,) int64, how many of the start + new positions are padding before a row's first token; None if
    there is no padding. A padding position attends only itself and is attended by no token. capacity: the largest
    number of positions that will be needed, for which caches allocate space; None if unknown, and nothing is allocated
    in advance. The mask is built on first use, so that mechanisms that never compare all pairs do not pay for it.
    Compiled layers build their own, which lets the compiler drop the parts that no kernel reads.
    """

    def __init__(
        self,
        start: int,
        new: int,
        device: torch.device,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
    ) -> None:
        self.start, self.new, self.device, self.left_padding, self.capacity = start, new, device, left_padding, capacity

    @property
    def mask(self) -> Mask | None:
        """The mask over all start + new keys, or None if it hides nothing."""
        return self._build() if torch.compiler.is_compiling() else self._built

    def token_mask(self, last: int) -> Tensor | None:
        """Return (R, last) bool for the last `last` positions, False at padding, or None if there is no padding."""
        if self.left_padding is None:
            return None
        end = self.start + self.new
        return torch.arange(end - last, end, device=self.device) >= self.left_padding[:, None]

    @cached_property
    def _built(self) -> Mask | None:
        return self._build()

    def _build(self) -> Mask | None:
        total = self.start + self.new
        causal = Mask.causal(self.new, total, self.device)
        tokens = self.token_mask(total)
        if tokens is None:
            return causal
        positions = torch.arange(total, device=self.device)
        allowed = tokens[:, None, :] | (positions == positions[self.start :, None])  # (R, T, start + T)
        return Mask(allowed[:, None] if causal is None else allowed[:, None] & causal.allowed)
