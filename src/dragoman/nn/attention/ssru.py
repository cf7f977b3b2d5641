"""SSRU: a recurrence without a product of the past, in the place of a decoder's self-attention (Kim et al. 2019)."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree, check_outside
from dragoman.nn.mask import Causal
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.precision import at_least_single


class SSRUConfig(Config):
    """The simpler simple recurrent unit, for decoders (Kim et al. 2019, "From Research to Production and Back").

    f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_(t−1) + (1 − f_t) ⊙ W x_t, c_0 = 0, and relu(c_t) is what comes out. A step
    costs two d × d products, where self-attention takes four, and the cache is one vector, however long the text is.
    Positions inside attention have no place here. Added ones helped (docs/EXPERIMENTS.md), though the recurrence knows
    the order of its tokens by itself.

    YAML: `decoder: {attention: {kind: ssru}}`, with `target_positions: {kind: sinusoidal}` beside a rotary encoder
    """

    kind: Literal["ssru"] = "ssru"

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """The module. Raises ConfigError for a scheme of positions that compares pairs of tokens."""
        check_outside(positions, self.kind)
        return SSRU(sizes)


class SSRU(Attention):
    """The recurrence over a decoder's tokens. Built by `SSRUConfig.build`.

    A step, for whoever writes it elsewhere. x is what the sublayer is given: in a pre-norm decoder layer norm(h), in a
    post-norm one h itself; c is the state of the hypothesis, float32, zeros before the first token.

        f = σ(forget.weight · x + forget.bias)
        c ← f ⊙ c + (1 − f) ⊙ (candidate.weight · x)
        y = relu(c)

    The residual connection stands around it as around self-attention: pre-norm h + y, post-norm norm(h + y). There is
    no output projection, no head and no norm of its own, and attention over the source follows as ever.
    """

    compilable = False
    weightless = "SSRU, a recurrence that carries one state on"

    def __init__(self, sizes: AttentionSizes) -> None:
        super().__init__()
        self.forget = nn.Linear(sizes.query, sizes.output)
        self.candidate = nn.Linear(sizes.query, sizes.output, bias=False)
        self.output_width = sizes.output

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """The cache is c (R, d), at least float32."""
        forget = torch.sigmoid(at_least_single(self.forget(states)))
        candidate = at_least_single(self.candidate(states))
        if (real := causal.real(causal.new)) is not None:
            forget = forget.masked_fill(~real[:, :, None], 1.0)
        before = torch.zeros_like(candidate[:, 0]) if cache is None else cache
        cells = recurrence(forget, candidate, before)
        return functional.relu(cells).to(states.dtype), cells[:, -1].clone()


def recurrence(forget: Tensor, candidate: Tensor, before: Tensor) -> Tensor:
    """c_t = forget_t ⊙ c_(t−1) + (1 − forget_t) ⊙ candidate_t over T tokens: (R, T, d) each, before (R, d) → (R, T, d).

    The loop has one operation a token, forward and backward.
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
    """The state before the first token and after each: (R, T + 1, d)."""
    rows, length, width = forget.shape
    cells = forget.new_empty(rows, length + 1, width)
    cells[:, 0] = before
    for time in range(length):
        torch.lerp(candidate[:, time], cells[:, time], forget[:, time], out=cells[:, time + 1])
    return cells
