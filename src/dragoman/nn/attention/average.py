"""Average attention: a gated running mean that replaces self-attention in a decoder."""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from dragoman.base.settings.config import Config
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree, reject_positions_inside_attention
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.mask import CausalSpan
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.precision import to_at_least_float32


class AverageAttentionConfig(Config):
    """Average attention for decoders: the mean of a token and all earlier tokens (Zhang et al. 2018, equations 1, 2).

    g_t = FFN((x_1 + … + x_t)/t), [i_t; f_t] = σ(W[x_t; g_t] + b), and the output is i_t ⊙ x_t + f_t ⊙ g_t. The cache is
    a single sum, whose size does not depend on the length. A mean ignores word order, so positions must be added to the
    embeddings.

    YAML: `decoder: {attention: {kind: average}}`
    """

    packs: ClassVar[bool] = False

    kind: Literal["average"] = "average"
    inner: int | None = Field(
        None,
        ge=1,
        description="Inner width of the feed-forward network FFN (paper: d_ff); null: no network, so g is the mean.",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. Raises ConfigError for a position scheme that acts inside attention."""
        reject_positions_inside_attention(positions, self.kind)
        return AverageAttention(self, sizes)


class AverageAttention(Attention):
    """A gated running mean. Built by `AverageAttentionConfig.build`."""

    weightless = "average attention, which weights all earlier tokens equally"

    def __init__(self, config: AverageAttentionConfig, sizes: AttentionSizes) -> None:
        super().__init__()
        width = sizes.query
        self.network = None if config.inner is None else FeedForward(width, config.inner, "relu", 0.0)
        self.gates = nn.Linear(2 * width, 2 * width)
        self.output_width = width

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """See `Attention`. The cache is the sum of all states (R, d), at least float32."""
        wide = to_at_least_float32(states)
        count = torch.arange(causal.start + 1, causal.start + causal.new + 1, device=states.device)[None, :, None]
        if (tokens := causal.token_mask(causal.new)) is not None:
            assert causal.left_padding is not None
            wide = wide * tokens[:, :, None]
            count = (count - causal.left_padding[:, None, None]).clamp_min(1)
        total = wide.cumsum(1) if cache is None else wide.cumsum(1) + cache[:, None]
        mean = (total / count).to(states.dtype)
        average = mean if self.network is None else self.network(mean)
        input_gate, forget_gate = torch.sigmoid(self.gates(torch.cat((states, average), -1))).chunk(2, -1)
        return (input_gate * states + forget_gate * average).to(states.dtype), total[:, -1].clone()
