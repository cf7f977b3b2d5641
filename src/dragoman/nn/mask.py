"""Attention masks, which define the keys that each query may attend to. All layers share one mask per forward pass."""

from functools import cached_property

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing


class Mask:
    """A mask of query–key pairs.

    If no key is allowed for a query, its attention weights and output are zero, never NaN.

    allowed: bool, broadcastable to (B, heads, T, S), True where a query may attend to a key. tokens: (B, S) bool, False
    at padding, or None if there is no padding. triangular: whether `allowed` is a square lower triangle, so that a
    kernel can use its built-in causal mask. complete: whether every query is known to have an allowed key. queries,
    keys: the packing of the states of queries and of keys, or None for padded states; the mask itself is always padded.
    """

    def __init__(
        self,
        allowed: Tensor,
        tokens: Tensor | None = None,
        *,
        triangular: bool = False,
        complete: bool = False,
        queries: Packing | None = None,
        keys: Packing | None = None,
    ) -> None:
        self.allowed, self.tokens, self.triangular, self.complete = allowed, tokens, triangular, complete
        self.queries, self.keys = queries, keys
        self._hides_padding_only = False

    @staticmethod
    def padding(tokens: Tensor, queries: Packing | None = None, keys: Packing | None = None) -> "Mask":
        """Return a mask that hides only padding. tokens: (B, S) bool, False at padding. queries, keys: see `Mask`."""
        mask = Mask(tokens[:, None, None, :], tokens, queries=queries, keys=keys)
        mask._hides_padding_only = True
        return mask

    @staticmethod
    def causal(new: int, total: int, device: torch.device) -> "Mask | None":
        """Return the causal mask (`new`, `total`) of the last `new` of `total` positions, or None if it hides nothing.

        Each position attends to itself and to all earlier positions.
        """
        if new == 1:
            return None
        allowed = torch.ones(new, total, dtype=torch.bool, device=device).tril(total - new)
        return Mask(allowed[None, None], triangular=new == total, complete=True)

    @staticmethod
    def graph(edges: Tensor, tokens: Tensor | None = None) -> "Mask":
        """Return the mask of a graph: node i attends to node j where edges[…, i, j] is True (Veličković et al. 2018).

        Only attention of kinds soft and hard supports graphs, because it compares all pairs of nodes.

        edges: bool, (S, S) for one graph shared by the batch, or (B, S, S). Set the diagonal for nodes that attend to
        themselves. tokens: (B, S) bool, False at padding, whose edges are ignored.
        """
        allowed = edges[None, None] if edges.dim() == 2 else edges[:, None]
        return Mask(allowed if tokens is None else allowed & tokens[:, None, None, :], tokens)

    @staticmethod
    def documents(starts: Tensor, tokens: Tensor) -> "Mask":
        """Return the mask of rows with several documents: a token attends to the tokens of its own document.

        starts: (B, S) int64, the first position of the document of each token. tokens: (B, S) bool, False at padding.
        """
        return Mask.graph(starts[:, :, None] == starts[:, None, :], tokens)

    def token_mask(self, kind: str) -> Tensor:
        """Return the tokens (B, S) bool, False at padding, of a mask that hides only padding.

        Raises ConfigError, with the attention `kind` in its message, for any other mask, such as a graph.
        """
        if not self._hides_padding_only or self.tokens is None:
            raise ConfigError(f"attention of kind {kind} cannot be restricted to the edges of a graph: use kind soft")
        return self.tokens

    @cached_property
    def bias(self) -> Tensor:
        """Term to add to scores, float32 of the shape of `allowed`: 0 where attention is allowed, −inf elsewhere.

        Rows without an allowed key are 0 throughout, so that their softmax and gradient are finite. Their weights must
        be set to zero afterwards.
        """
        hidden = ~self.allowed if not self.has_empty_rows else ~self.allowed & self.allowed.any(-1, keepdim=True)
        return torch.zeros(self.allowed.shape, device=self.allowed.device).masked_fill_(hidden, float("-inf"))

    @cached_property
    def has_empty_rows(self) -> bool:
        """Whether some query has no allowed key. On a GPU, True unless the mask is known to be complete.

        Reading the mask would wait for the GPU, and cannot be recorded as a CUDA graph.
        """
        if self.complete:
            return False
        return self.allowed.device.type != "cpu" or not bool(self.allowed.any(-1).all())

    def clear_empty_rows(self, values: Tensor) -> Tensor:
        """Return values (B, heads, T, n) with zeros for queries without an allowed key."""
        if not self.has_empty_rows:
            return values
        return values.masked_fill(~self.allowed.any(-1, keepdim=True), 0.0)


class CausalSpan:
    """`new` tokens that follow `start` earlier tokens. Each token attends to itself and to all earlier tokens.

    The mask is built on first use, so that mechanisms that do not compare all pairs avoid its cost. Compiled layers
    build their own mask, which allows the compiler to eliminate unused parts.

    left_padding: (R,) int64, number of padding positions before the first token of each row, within the start + new
    positions; None if there is no padding. A padding position attends only to itself, and no token attends to it.
    capacity: maximum number of positions, for which caches allocate space; None if unknown, in which case no space is
    reserved. packing: the packing of the states of the tokens, or None for padded states.
    """

    def __init__(
        self,
        start: int,
        new: int,
        device: torch.device,
        *,
        left_padding: Tensor | None = None,
        capacity: int | None = None,
        packing: Packing | None = None,
    ) -> None:
        self.start, self.new, self.device, self.left_padding, self.capacity = start, new, device, left_padding, capacity
        self.packing = packing

    @property
    def mask(self) -> Mask | None:
        """The mask over all start + new keys, or None if it hides nothing."""
        return self._build() if torch.compiler.is_compiling() else self._built

    def token_mask(self, last: int) -> Tensor | None:
        """Return the token mask (R, last) bool of the last `last` positions, or None if there is no padding."""
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
        return Mask(allowed[:, None] if causal is None else allowed[:, None] & causal.allowed, complete=True)
