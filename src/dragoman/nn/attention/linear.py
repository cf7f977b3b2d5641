"""Linear attention: a product of features replaces the softmax kernel, so that keys can be summed in advance."""

from contextlib import AbstractContextManager
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.nn.attention.heads import apply_head_mask
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree
from dragoman.nn.attention.recording import record, recorder
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions
from dragoman.nn.precision import to_at_least_float32

# Tokens per chunk. All pairs within a chunk are compared, and sums are passed from chunk to chunk.
_CHUNK = 64

_SMALLEST = 1e-12
"""Minimum denominator. If there are no keys or all features are zero, the result is zero and its gradient finite."""


class LinearAttentionConfig(Config):
    """Linear attention with weights φ(q)ᵀφ(k), where φ(x) = elu(x) + 1 (Katharopoulos et al. 2020, equations 5, 7, 12).

    The output is φ(q)ᵀ Σ φ(k)vᵀ / φ(q)ᵀ Σ φ(k). Time and memory are linear in the length, and the cache of a decoder
    consists of two sums of constant size. Rotary positions rotate only the features of the numerator (Su et al. 2021,
    section 3.3, equation 19). Position schemes that add terms to scores or values are not supported.

    YAML: `encoder: {attention: {kind: linear}}`; `attention` and `cross_attention` of the decoder are set the same way.
    """

    masks_pairs: ClassVar[bool] = False
    packs: ClassVar[bool] = False

    kind: Literal["linear"] = "linear"
    combine: Literal["project", "concatenate"] = Field(
        "project",
        description="Combination of the heads. project: concatenated and projected by W_O. concatenate: only "
        "concatenated.",
    )
    key_width: int | None = Field(None, ge=1, description="Width d_k of the queries and keys of a head; null: d/h.")
    value_width: int | None = Field(None, ge=1, description="Width d_v of the values of a head; null: d/h.")

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. positions: the position scheme, for self-attention.

        Raises ConfigError for incompatible widths, for dropout on attention weights, and for position schemes that
        change scores or values.
        """
        if sizes.dropout:
            raise ConfigError(
                "linear attention does not support dropout on attention weights: set dropout.attention to 0, or use "
                "attention of kind soft or window"
            )
        attention = LinearAttention(self, sizes, positions)
        relation = attention.relation
        if relation is not None and (relation.acts_on_scores or relation.acts_on_values):
            raise ConfigError(
                f"positions of kind {positions.kind} change the scores or values of pairs, which linear attention "  # type: ignore[union-attr]
                "does not compute: use rotary or absolute positions, or attention of kind soft or window"
            )
        return attention


class LinearAttention(Attention):
    """Multi-head attention with weights φ(q)ᵀφ(k). Built by `LinearAttentionConfig.build`.

    The result is computed from sums over the keys, in at least float32.
    """

    def __init__(self, config: LinearAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__()
        heads, share = sizes.heads, sizes.output // sizes.heads
        if sizes.output % heads and not (config.key_width and config.value_width):
            raise ConfigError(
                f"a width of {sizes.output} is not divisible by {heads} heads: change either, or set key_width and "
                "value_width"
            )
        key, value = config.key_width or share, config.value_width or share
        self.heads, self.combine = heads, config.combine
        self.relation = None if positions is None else positions.build_relative(heads, key, key, value)
        self.query = nn.Linear(sizes.query, heads * key)
        self.key = nn.Linear(sizes.memory, heads * key)
        self.value = nn.Linear(sizes.memory, heads * value)
        self.output_width = sizes.output if config.combine == "project" else heads * value
        if config.combine == "project":
            self.output = nn.Linear(heads * value, sizes.output)

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """See `Attention`: (B, S, d) → (B, S, output_width). Raises ConfigError for a graph mask."""
        memory = self._key_sums(states, padding)
        return self._read_sums(states, memory, states.size(0), self.relation)

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """See `Attention`. The cache contains Σ φ(k)vᵀ (R, h, d_k, d_v) and Σ φ(k) (R, h, d_k).

        While attention weights are being recorded, it also contains the keys. Raises ValueError if recording did not
        start at the first token.
        """
        rows, start = states.size(0), causal.start
        queries, rotated_queries = self._features(self.query(states), rows, self.relation, start)
        keys, rotated_keys = self._features(self.key(states), rows, self.relation, start)
        values = self._values(states)
        if (tokens := causal.token_mask(causal.new)) is not None:
            keys, rotated_keys = keys * tokens[:, None, :, None], rotated_keys * tokens[:, None, :, None]
        with _without_autocast(states):
            if cache is None:
                outer = torch.zeros(
                    (rows, self.heads, keys.size(-1), values.size(-1)), dtype=keys.dtype, device=keys.device
                )
                total = torch.zeros(outer.shape[:3], dtype=keys.dtype, device=keys.device)
            else:
                outer, total = cache[:2]
            means, normaliser, outer, total = _causal(
                queries,
                keys,
                rotated_queries=rotated_queries,
                rotated_keys=rotated_keys,
                values=values,
                outer=outer,
                total=total,
            )
            new_cache: tuple[Tensor, ...] = (outer, total)
            if recorder() is not None:
                if cache is not None:
                    if len(cache) == 2:
                        raise ValueError("recording the weights of linear attention must start at the first token")
                    rotated_keys = torch.cat((cache[2], rotated_keys), 2)
                weights = torch.matmul(rotated_queries, rotated_keys.transpose(-2, -1)).tril(start) / normaliser
                record(self, weights)
                new_cache = (outer, total, rotated_keys)
        return self._combine_heads(means.to(states.dtype), rows), new_cache

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """Return Σ φ(k)vᵀ (B, h, d_k, d_v), Σ φ(k) (B, h, d_k), and φ(k) (B, h, S, d_k) or None.

        φ(k) is returned only while attention weights are being recorded. Otherwise, the size of the memory does not
        depend on the length of the source.
        """
        outer, total, rotated_keys = self._key_sums(states, padding)
        return outer, total, None if recorder() is None else rotated_keys

    def cross_attend(
        self, states: Tensor, memory: TensorTree, padding: Mask, query_mask: Tensor | None = None
    ) -> Tensor:
        """See `Attention`: (B·K, T, d) → (B·K, T, output_width).

        Raises ValueError if attention weights are being recorded but were not recorded during `project_memory`.
        """
        return self._read_sums(states, memory, memory[0].size(0), None)

    def _key_sums(self, states: Tensor, padding: Mask) -> tuple[Tensor, Tensor, Tensor]:
        keys, rotated = self._features(self.key(states), states.size(0), self.relation, 0)
        tokens = padding.token_mask("linear")[:, None, :, None]
        keys, rotated = keys * tokens, rotated * tokens
        values = self._values(states)
        with _without_autocast(states):
            return torch.matmul(rotated.transpose(-2, -1), values), keys.sum(2), rotated

    def _read_sums(
        self, states: Tensor, memory: TensorTree, sentences: int, relation: RelativePositions | None
    ) -> Tensor:
        """Attend from the states (B·K, T, d) of B sentences with K rows each to the sums of each sentence.

        Returns the result (B·K, T, output_width).
        """
        outer, total, rotated_keys = memory
        queries, rotated = self._features(self.query(states), sentences, relation, 0)
        with _without_autocast(states):
            normaliser = torch.matmul(queries, total[..., None]).clamp_min(_SMALLEST)
            means = torch.matmul(rotated, outer) / normaliser
            if recorder() is not None:
                if rotated_keys is None:
                    raise ValueError(
                        "recording the weights of linear attention must include the encoding of the source"
                    )
                weights = torch.matmul(rotated, rotated_keys.transpose(-2, -1)) / normaliser
                record(self, weights)
        return self._combine_heads(means.to(states.dtype), states.size(0))

    def _features(
        self, projected: Tensor, sentences: int, relation: RelativePositions | None, start: int
    ) -> tuple[Tensor, Tensor]:
        """Return the features φ (B, h, T, d_k), at least float32, without and with rotation by their positions."""
        features = functional.elu(to_at_least_float32(self._split(projected, sentences))) + 1
        return features, features if relation is None else relation.rotate(features, start)

    def _values(self, states: Tensor) -> Tensor:
        return to_at_least_float32(self._split(self.value(states), states.size(0)))

    def _split(self, states: Tensor, sentences: int) -> Tensor:
        """Split states into heads: (rows, T, h·w) → (B, h, rows/B · T, w)."""
        return states.reshape(sentences, -1, self.heads, states.size(-1) // self.heads).transpose(1, 2)

    def _combine_heads(self, means: Tensor, rows: int) -> Tensor:
        """Combine the results of the heads: (B, h, K·T, d_v) → (rows, T, output_width)."""
        means = apply_head_mask(self, means)
        concatenated = means.transpose(1, 2).reshape(rows, -1, self.heads * means.size(-1))
        return self.output(concatenated) if self.combine == "project" else concatenated


def _causal(
    queries: Tensor,
    keys: Tensor,
    *,
    rotated_queries: Tensor,
    rotated_keys: Tensor,
    values: Tensor,
    outer: Tensor,
    total: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the causal means (R, h, T, d_v), their denominators (R, h, T, 1), and the updated `outer` and `total`.

    queries, keys: features (R, h, T, d_k) for the denominator. rotated_queries, rotated_keys: features for the
    numerator. outer: Σ φ(k)vᵀ over earlier tokens. total: Σ φ(k) over earlier tokens. Memory per head, in numbers:
    T · (d_k + chunk + d_k · d_v / chunk).
    """
    length = keys.size(2)
    totals = keys.cumsum(2) + total[:, :, None]
    normaliser = (queries * totals).sum(-1, keepdim=True).clamp_min(_SMALLEST)
    size = min(length, _CHUNK)
    rotated_queries, rotated_keys, values = (
        functional.pad(each, (0, 0, 0, -length % size)).unflatten(2, (-1, size))  # type: ignore[no-untyped-call]
        for each in (rotated_queries, rotated_keys, values)
    )
    sums = torch.cat((outer[:, :, None], torch.matmul(rotated_keys.transpose(-2, -1), values)), 2).cumsum(2)
    inside = torch.matmul(rotated_queries, rotated_keys.transpose(-2, -1)).tril()
    means = torch.matmul(rotated_queries, sums[:, :, :-1]) + torch.matmul(inside, values)
    # The last sums are copied, because views would keep the memory of the whole tensors allocated.
    return means.flatten(2, 3)[:, :, :length] / normaliser, normaliser, sums[:, :, -1].clone(), totals[:, :, -1].clone()


def _without_autocast(states: Tensor) -> AbstractContextManager[object]:
    """Return a context manager that disables autocast, so that values are not rounded to bfloat16."""
    return torch.autocast(states.device.type, enabled=False)
