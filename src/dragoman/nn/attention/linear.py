"""Linear attention: the softmax's kernel replaced by a product of features, so that keys can be summed beforehand."""

from contextlib import AbstractContextManager
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree
from dragoman.nn.attention.recording import recorder
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions
from dragoman.nn.precision import at_least_single

# Inside a chunk all pairs are compared, between chunks sums are passed on.
_CHUNK = 64

_SMALLEST = 1e-12
"""The least denominator: where no key is left, or all features vanish, the result is zero and its gradient finite."""


class LinearAttentionConfig(Config):
    """Heads that weigh values by φ(q)ᵀφ(k), φ(x) = elu(x) + 1 (Katharopoulos et al. 2020, equations 5, 7 and 12).

    out = φ(q)ᵀ Σ φ(k)vᵀ / φ(q)ᵀ Σ φ(k), so time and memory grow linearly with length, and a decoder's cache is two sums
    whose size does not depend on it. The positions `rotary` turn the features of the numerator only (Su et al. 2021,
    section 3.3, equation 19); schemes that add to scores or values have no place here.

    YAML: `encoder: {attention: {kind: linear}}`, and in the decoder `attention` and `cross_attention` likewise.
    """

    kind: Literal["linear"] = "linear"
    combine: Literal["project", "concatenate"] = Field(
        "project", description="heads are concatenated and projected by W_O, or only concatenated"
    )
    key_width: int | None = Field(None, ge=1, description="width of a head's queries and keys d_k; null: d/h")
    value_width: int | None = Field(None, ge=1, description="width of a head's values d_v; null: d/h")

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """The module. positions: the scheme, in self-attention.

        Raises ConfigError for widths that do not fit, dropout on weights, and schemes that need scores.
        """
        if sizes.dropout:
            raise ConfigError(
                "linear attention has no weights that could be dropped: set dropout.attention to 0, or use attention "
                "kind soft or window"
            )
        attention = LinearAttention(self, sizes, positions)
        relation = attention.relation
        if relation is not None and (relation.acts_on_scores or relation.acts_on_values):
            raise ConfigError(
                f"positions of kind {positions.kind} change the scores or values of single pairs, which linear "  # type: ignore[union-attr]
                "attention never makes: use rotary or absolute positions, or attention kind soft or window"
            )
        return attention


class LinearAttention(Attention):
    """A mean of values under weights φ(q)ᵀφ(k), a head, from sums over the keys. Sums are float32.

    Built by `LinearAttentionConfig.build`.
    """

    def __init__(self, config: LinearAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__()
        heads, share = sizes.heads, sizes.output // sizes.heads
        if sizes.output % heads and not (config.key_width and config.value_width):
            raise ConfigError(
                f"{heads} heads do not divide a width of {sizes.output}: choose heads that do, or set key_width and "
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
        """(B, S, d) → (B, S, output_width)."""
        memory = self._memorise(states, padding)
        return self._look(states, memory, states.size(0), self.relation)

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """The cache holds Σ φ(k)vᵀ (R, h, d_k, d_v) and Σ φ(k) (R, h, d_k), while weights are recorded the keys too.

        Raises ValueError where weights are to be recorded, but were not from the first token on.
        """
        rows, start = states.size(0), causal.start
        queries, turned_queries = self._features(self.query(states), rows, self.relation, start)
        keys, turned_keys = self._features(self.key(states), rows, self.relation, start)
        values = self._values(states)
        if (real := causal.real(causal.new)) is not None:
            keys, turned_keys = keys * real[:, None, :, None], turned_keys * real[:, None, :, None]
        with _exact(states):
            if cache is None:
                outer = torch.zeros(
                    (rows, self.heads, keys.size(-1), values.size(-1)), dtype=keys.dtype, device=keys.device
                )
                total = torch.zeros(outer.shape[:3], dtype=keys.dtype, device=keys.device)
            else:
                outer, total = cache[:2]
            means, normaliser, outer, total = _causal(queries, keys, turned_queries, turned_keys, values, outer, total)
            kept: tuple[Tensor, ...] = (outer, total)
            if (recorded := recorder()) is not None:
                if cache is not None:
                    if len(cache) == 2:
                        raise ValueError("weights of linear attention can be recorded from the first token on only")
                    turned_keys = torch.cat((cache[2], turned_keys), 2)
                weights = torch.matmul(turned_queries, turned_keys.transpose(-2, -1)).tril(start) / normaliser
                recorded.setdefault(self, []).append(weights.detach())
                kept = (outer, total, turned_keys)
        return self._combined(means.to(states.dtype), rows), kept

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """Σ φ(k)vᵀ (B, h, d_k, d_v), Σ φ(k) (B, h, d_k), and φ(k) (B, h, S, d_k) while weights are recorded, else None.

        So what is held does not grow with the source.
        """
        outer, total, turned_keys = self._memorise(states, padding)
        return outer, total, None if recorder() is None else turned_keys

    def cross_attend(self, states: Tensor, memory: TensorTree, padding: Mask, keep: Tensor | None = None) -> Tensor:
        """(B·K, T, d) → (B·K, T, output_width).

        Raises ValueError where weights are to be recorded, but were not when the source was memorised.
        """
        return self._look(states, memory, memory[0].size(0), None)

    def _memorise(self, states: Tensor, padding: Mask) -> tuple[Tensor, Tensor, Tensor]:
        keys, turned = self._features(self.key(states), states.size(0), self.relation, 0)
        real = padding.keep.transpose(-2, -1)
        keys, turned = keys * real, turned * real
        values = self._values(states)
        with _exact(states):
            return torch.matmul(turned.transpose(-2, -1), values), keys.sum(2), turned

    def _look(self, states: Tensor, memory: TensorTree, sentences: int, relation: RelativePositions | None) -> Tensor:
        """Queries of B sentences, K rows each, over sums of B: (B·K, T, d) → (B·K, T, output_width)."""
        outer, total, turned_keys = memory
        queries, turned = self._features(self.query(states), sentences, relation, 0)
        with _exact(states):
            normaliser = torch.matmul(queries, total[..., None]).clamp_min(_SMALLEST)
            means = torch.matmul(turned, outer) / normaliser
            if (recorded := recorder()) is not None:
                if turned_keys is None:
                    raise ValueError("weights of linear attention can be recorded from the source's beginning on only")
                weights = torch.matmul(turned, turned_keys.transpose(-2, -1)) / normaliser
                recorded.setdefault(self, []).append(weights.detach())
        return self._combined(means.to(states.dtype), states.size(0))

    def _features(
        self, projected: Tensor, sentences: int, relation: RelativePositions | None, start: int
    ) -> tuple[Tensor, Tensor]:
        """φ (B, h, T, d_k), at least float32, plain and as positions turn it."""
        features = functional.elu(at_least_single(self._split(projected, sentences))) + 1
        return features, features if relation is None else relation.rotate(features, start)

    def _values(self, states: Tensor) -> Tensor:
        return at_least_single(self._split(self.value(states), states.size(0)))

    def _split(self, states: Tensor, sentences: int) -> Tensor:
        """(rows, T, h·w) → (B, h, rows/B · T, w)."""
        return states.reshape(sentences, -1, self.heads, states.size(-1) // self.heads).transpose(1, 2)

    def _combined(self, means: Tensor, rows: int) -> Tensor:
        """(B, h, K·T, d_v) → (rows, T, output_width)."""
        together = means.transpose(1, 2).reshape(rows, -1, self.heads * means.size(-1))
        return self.output(together) if self.combine == "project" else together


def _causal(
    queries: Tensor,
    keys: Tensor,
    turned_queries: Tensor,
    turned_keys: Tensor,
    values: Tensor,
    outer: Tensor,
    total: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Means over each token and those before (R, h, T, d_v), what they were divided by (R, h, T, 1), and the new sums.

    queries, keys: φ (R, h, T, d_k), plain for the denominator, turned for the numerator. outer: Σ φ(k)vᵀ, total:
    Σ φ(k), of the tokens before. Memory a head: T · (d_k + chunk + d_k · d_v / chunk).
    """
    length = keys.size(2)
    totals = keys.cumsum(2) + total[:, :, None]
    normaliser = (queries * totals).sum(-1, keepdim=True).clamp_min(_SMALLEST)
    size = min(length, _CHUNK)
    turned_queries, turned_keys, values = (
        functional.pad(each, (0, 0, 0, -length % size)).unflatten(2, (-1, size))  # type: ignore[no-untyped-call]
        for each in (turned_queries, turned_keys, values)
    )
    sums = torch.cat((outer[:, :, None], torch.matmul(turned_keys.transpose(-2, -1), values)), 2).cumsum(2)
    inside = torch.matmul(turned_queries, turned_keys.transpose(-2, -1)).tril()
    means = torch.matmul(turned_queries, sums[:, :, :-1]) + torch.matmul(inside, values)
    # copies, because a part of a tensor would keep all of it
    return means.flatten(2, 3)[:, :, :length] / normaliser, normaliser, sums[:, :, -1].clone(), totals[:, :, -1].clone()


def _exact(states: Tensor) -> AbstractContextManager[object]:
    """Where autocast rounds nothing to bfloat16."""
    return torch.autocast(states.device.type, enabled=False)
