"""`Mask`: which keys a query may attend, made once a pass and read by every layer."""

from functools import cached_property

import torch
from torch import Tensor


class Mask:
    """keep: bool, broadcastable to (B, heads, T, S), True where attention is allowed.

    A query with no key left attends nothing: its weights and its result are zero, never NaN. triangular: keep is
    square, and every query attends its own key and all before it, which a kernel can know without reading it.
    """

    def __init__(self, keep: Tensor, triangular: bool = False) -> None:
        self.keep, self.triangular = keep, triangular

    @staticmethod
    def padding(keep: Tensor) -> "Mask":
        """From keep (B, S): every query may attend every real token."""
        return Mask(keep[:, None, None, :])

    @staticmethod
    def causal(new: int, total: int, device: torch.device) -> "Mask | None":
        """The last `new` of `total` positions attend themselves and all before; None where that hides nothing."""
        if new == 1:
            return None
        keep = torch.ones(new, total, dtype=torch.bool, device=device).tril(total - new)
        return Mask(keep[None, None], triangular=new == total)

    @cached_property
    def bias(self) -> Tensor:
        """float32 of keep's shape: 0 where attention is allowed, −inf elsewhere; to be added to the scores.

        0 all along a row without any key: its softmax and gradient stay finite until the weights are set to zero.
        """
        hidden = ~self.keep if not self.has_empty_rows else ~self.keep & self.keep.any(-1, keepdim=True)
        return torch.zeros(self.keep.shape, device=self.keep.device).masked_fill_(hidden, float("-inf"))

    @cached_property
    def has_empty_rows(self) -> bool:
        """Whether some query has no key at all."""
        return not bool(self.keep.any(-1).all())


class Causal:
    """`new` tokens behind `start` others, each of which attends itself and all before it.

    left_padding: (R,) int64, how many of all these places hold padding that stands before a row's first token, None
    where none do. No token attends such a place, which attends itself alone. capacity: how many places there will be at
    most, for caches to make room; None: unknown, and no room is made. The mask is made when it is first asked for:
    mechanisms that never compare all pairs must not pay for all pairs. Compiled layers each make their own, of which
    the compiler leaves out what no kernel reads.
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
        """Over all start + new keys; None where it hides nothing."""
        return self._make() if torch.compiler.is_compiling() else self._made

    def real(self, last: int) -> Tensor | None:
        """(R, last) bool, False at padding: of the `last` places of all; None where all of them are tokens."""
        if self.left_padding is None:
            return None
        end = self.start + self.new
        return torch.arange(end - last, end, device=self.device) >= self.left_padding[:, None]

    @cached_property
    def _made(self) -> Mask | None:
        return self._make()

    def _make(self) -> Mask | None:
        total = self.start + self.new
        hidden = Mask.causal(self.new, total, self.device)
        real = self.real(total)
        if real is None:
            return hidden
        places = torch.arange(total, device=self.device)
        keep = real[:, None, :] | (places == places[self.start :, None])
        return Mask(keep[:, None] if hidden is None else keep[:, None] & hidden.keep)
