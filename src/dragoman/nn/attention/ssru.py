"""SSRU, a recurrence without matrix products of the state, used instead of self-attention (Kim et al. 2019)."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.settings.config import Config
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree, reject_positions_inside_attention
from dragoman.nn.mask import CausalSpan
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.precision import to_at_least_float32


class SSRUConfig(Config):
    """The simpler simple recurrent unit, for decoders (Kim et al. 2019, "From Research to Production and Back").

    f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_(t−1) + (1 − f_t) ⊙ W x_t, c_0 = 0, and the output is relu(c_t). A step needs
    two d × d products, compared with four in self-attention. The cache is a single vector, whose size does not depend
    on the length. Position schemes that act inside attention are not supported. Positions added to the embeddings
    improved quality (docs/EXPERIMENTS.md), although the recurrence itself is sensitive to word order.

    YAML: `decoder: {attention: {kind: ssru}}`, with `target_positions: {kind: sinusoidal}` if the encoder uses rotary
    positions.
    """

    packs: ClassVar[bool] = False

    kind: Literal["ssru"] = "ssru"

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. Raises ConfigError for a position scheme that acts inside attention."""
        reject_positions_inside_attention(positions, self.kind)
        return SSRU(sizes)


class SSRU(Attention):
    """The recurrence over the tokens of a decoder. Built by `SSRUConfig.build`.

    The following equations define one step, for other implementations. x is the input of the sublayer: norm(h) in a
    pre-norm decoder layer, h in a post-norm layer. c is the state of a hypothesis in float32, zero before the first
    token.

        f = σ(forget.weight · x + forget.bias)
        c ← f ⊙ c + (1 − f) ⊙ (candidate.weight · x)
        y = relu(c)

    The residual connection is the same as around self-attention: h + y for pre-norm, norm(h + y) for post-norm. There
    are no heads, no output projection and no additional norm. Attention over the source follows as usual.
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
        forget = torch.sigmoid(to_at_least_float32(self.forget(states)))
        candidate = to_at_least_float32(self.candidate(states))
        if (tokens := causal.token_mask(causal.new)) is not None:
            forget = forget.masked_fill(~tokens[:, :, None], 1.0)
        before = torch.zeros_like(candidate[:, 0]) if cache is None else cache
        cells = recurrence(forget, candidate, before)
        return functional.relu(cells).to(states.dtype), cells[:, -1].clone()


def recurrence(forget: Tensor, candidate: Tensor, before: Tensor) -> Tensor:
    """Compute c_t = forget_t ⊙ c_(t−1) + (1 − forget_t) ⊙ candidate_t for T tokens, with c_0 = `before` (R, d).

    forget, candidate and the result: (R, T, d). The loop needs one operation per token in each of the forward and
    backward passes.
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
    """Return the state before the first token and the states after each token: (R, T + 1, d)."""
    rows, length, width = forget.shape
    cells = forget.new_empty(rows, length + 1, width)
    cells[:, 0] = before
    for time in range(length):
        torch.lerp(candidate[:, time], cells[:, time], forget[:, time], out=cells[:, time + 1])
    return cells
