"""Soft attention over packed states without unpacking them."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.base.packing import Packing
from dragoman.nn.attention.heads import has_masked_heads
from dragoman.nn.attention.recording import recorder
from dragoman.nn.attention.scorers import Dot, ScaledDot
from dragoman.nn.kernels.attention import packed_attention
from dragoman.nn.kernels.choice import uses_kernels
from dragoman.nn.kernels.interface import Geometry, Rotation
from dragoman.nn.positions.rotary import Rotary

_LONGEST, _LONGEST_ON_CPU = 128, 512
"""Maximum number of tokens of a sentence: its scores must fit into a GPU's registers, or into a CPU's cache."""


@dataclass(frozen=True)
class PackedKeys:
    """Keys and values of packed states side by side, (1, M, h · (d_k + d_v)), and the packing."""

    joint: Tensor
    packing: Packing

    def divided(self, attention: Any) -> tuple[Tensor, Tensor]:
        """Return the keys (1, M, h · d_k) and the values (1, M, h · d_v)."""
        width = attention.key.out_features
        return self.joint[..., :width], self.joint[..., width:]


def is_short(packing: Packing) -> bool:
    """Return whether `attend_packed` may compute the longest of the packed sentences."""
    on_cpu = packing.starts.device.type == "cpu"
    return packing.shape[1] <= (_LONGEST_ON_CPU if on_cpu else _LONGEST)


def attends_packed(attention: Any, states: Tensor, packing: Packing | None) -> bool:
    """Return whether an attention layer (`SoftAttention`) computes packed states by `attend_packed`."""
    config, relation = attention.config, attention.relation
    return bool(
        packing is not None
        and uses_kernels(states)
        and is_short(packing)
        and isinstance(attention.scorer, Dot | ScaledDot)
        and config.normaliser == "softmax"
        and config.projections
        and not (config.tie_keys_and_values or config.diversity or attention.kv_heads < attention.heads)
        and (relation is None or isinstance(relation, Rotary))
        and attention.dropout.split_rate[0] == 0
        and attention.combine != "mean"
        and recorder() is None
        and not has_masked_heads()
    )


def attend_packed(
    attention: Any,
    states: Tensor,
    packing: Packing,
    memory: PackedKeys | None = None,
    causal: bool = False,
) -> Tensor:
    """Attend from packed states (1, N, d) to themselves, or to a memory: (1, N, output_width).

    attention: the layer, a `SoftAttention`.
    causal: whether a token attends only to itself and to earlier tokens of its sentence.
    """
    heads, width = attention.heads, attention.query.out_features
    key_width, value_width = width // heads, attention.value.out_features // heads
    scale = float(attention.scorer.fold(torch.ones(key_width))[0])
    sources = packing if memory is None else memory.packing
    layers = [attention.query] if memory is not None else [attention.query, attention.key, attention.value]
    rotation = None
    if memory is None and attention.relation is not None:
        rotation = Rotation(attention.relation.rotations(packing.shape[1], key_width, states.device), packing.columns)
    result = packed_attention(
        states.squeeze(0),
        None if memory is None else memory.joint.squeeze(0),
        (packing.starts, sources.starts),
        Geometry((packing.shape[1], sources.shape[1]), heads, key_width, value_width, scale, causal),
        projections=[(each.weight, each.bias) for each in layers],
        output=(attention.output.weight, attention.output.bias) if attention.combine == "project" else None,
        rotation=rotation,
    )
    return result.unsqueeze(0)
