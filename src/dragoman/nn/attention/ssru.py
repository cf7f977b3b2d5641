"""SSRU: a recurrence whose state is never multiplied by a matrix, in place of self-attention (Kim et al. 2019)."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree, check_outside
from dragoman.nn.mask import CausalSpan
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.precision import at_least_single


class SSRUConfig(Config):
    """The simpler simple recurrent unit, for decoders (Kim et al. 2019, "From Research to Production and Back").

    f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_(t−1) + (1 − f_t) ⊙ W x_t, c_0 = 0, and the output is relu(c_t). A step costs
    two d × d products instead of self-attention's four, and the cache is one vector, independent of the length.
    Positions inside attention do not apply. Added ones helped (docs/EXPERIMENTS.md), although the recurrence itself is
    sensitive to order.

    YAML: `decoder: {attention: {kind: ssru}}`, with `target_positions: {kind: sinusoidal}` if the encoder uses rotary.
    """

    kind: Literal["ssru"] = "ssru"

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. Raises ConfigError for a position scheme that compares pairs of tokens."""
        check_outside(positions, self.kind)
        return SSRU(sizes)


class SSRU(Attention):
    """The recurrence over a decoder's tokens. Built by `SSRUConfig.build`.

    The following defines one step, for other implementations. x is the sublayer's input: norm(h) in a pre-norm decoder
    layer, h itself in a post-norm one. c is the state of the hypothesis, float32, zero before the first token.

        f = σ(forget.weight · x + forget.bias)
        c ← f ⊙ c + (1 − f) ⊙ (candidate.weight · x)
        y = relu(c)

    The residual connection is that of self-attention: pre-norm h + y, post-norm norm(h + y). There is no output
    projection, no heads and no additional norm. Attention over the source follows as usual.
    """

    compilable = False
    weightless = "SSRU, a recurrence with a single state"

    def __init__(self, sizes: AttentionSizes) -> None:
        super().__init__()
        self.forget = nn.Linear(sizes.query, sizes.output)
        self.candidate = nn.Linear(sizes.query, sizes.output, bias=False)
        self.output_width = sizes.output

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """See `Attention`. The cache is c (R, d), at least float32."""
        forget = torch.sigmoid(at_least_single(self.forget(states)))
        candidate = at_least_single(self.candidate(states))
        if (tokens := causal.token_mask(causal.new)) is not None:
            forget = forget.masked_fill(~tokens[:, :, None], 1.0)
        before = torch.zeros_like(candidate[:, 0]) if cache is None else cache
        cells = recurrence(forget, candidate, before)
        return functional.relu(cells).to(states.dtype), cells[:, -1].clone()


def recurrence(forget: Tensor, candidate: Tensor, before: Tensor) -> Tensor:
    """Compute c_t = forget_t ⊙ c_(t−1) + (1 − forget_t) ⊙ candidate_t over T tokens, from c_0 = `before` (R, d).

    All others are (R, T, d). The loop takes one operation per token, forward and backward.
    """
    if torch.is_grad_enabled():
        return _Recurrence.apply(forget, candidate, before)  # type: ignore[no-any-return,no-untyped-call]
    return _cells(forget, candidate, before)[:, 1:]


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, forget: Tensor, candidate: Tensor, before: Tensor) -> Tensor:
        cells = _cells(forget, candidate, before)
        context.save_for_backward(forget, candidate, cells)
        return cells[:, 1:]

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        forget, candidate, cells = context.saved_tensors
        to_cells = gradient.clone(memory_format=torch.contiguous_format)
        for time in reversed(range(forget.size(1) - 1)):
            to_cells[:, time].addcmul_(forget[:, time + 1], to_cells[:, time + 1])
        through = to_cells * forget
        return to_cells * (cells[:, :-1] - candidate), to_cells - through, through[:, 0]


def _cells(forget: Tensor, candidate: Tensor, before: Tensor) -> Tensor:
    """Return the states before the first token and after each token: (R, T + 1, d)."""
    rows, length, width = forget.shape
    cells = forget.new_empty(rows, length + 1, width)
    cells[:, 0] = before
    for time in range(length):
        torch.lerp(candidate[:, time], cells[:, time], forget[:, time], out=cells[:, time + 1])
    return cells
