"""Multi-head soft attention: the mean of the values, weighted by the match of their keys with the query."""

from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.packing import Packing
from dragoman.base.settings.config import Config
from dragoman.nn.attention.cache import Keys, KeyValueCache, extend_cache
from dragoman.nn.attention.heads import apply_head_mask, head_diversity
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree
from dragoman.nn.attention.packed import PackedKeys, attend_packed, attends_packed, is_short
from dragoman.nn.attention.recording import record, recorder
from dragoman.nn.attention.scorers import ScaledDotConfig, ScorerConfig
from dragoman.nn.attention.weights import Normaliser, normalise
from dragoman.nn.auxiliary import collector
from dragoman.nn.dropout import Dropout
from dragoman.nn.linear import Linear, joint_product
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions
from dragoman.nn.precision import cast_for_matmul

# Minimum number of keys for the fused kernel on a CPU. Its bfloat16 backward pass is slow for short sentences, but for
# longer ones, the B·h·T·S weights of the explicit path need too much memory (measured in docs/EXPERIMENTS.md).
_FUSED_FROM_KEYS = 256


class SoftAttentionConfig(Config):
    """Multi-head attention: each head returns a weighted mean of all values (Vaswani et al. 2017, section 3.2)."""

    masks_pairs: ClassVar[bool] = True
    """Whether the mask may hide any pair of tokens, as in a graph (`Mask.graph`)."""

    packs: ClassVar[bool] = True
    """Whether states may be packed; see `Packing`."""

    kind: Literal["soft"] = "soft"
    scorer: ScorerConfig = Field(ScaledDotConfig(), description="Function that scores a key for a query.")
    normaliser: Normaliser = Field(
        "softmax",
        description="Conversion of scores into weights. softmax: the softmax. sum: softplus(score) divided by the sum "
        "over all keys (norm_i of deck 002, which does not specify how scores are made positive).",
    )
    projections: bool = Field(
        True,
        description="Use projection matrices W_q, W_k, W_v per head. If false, states are compared and averaged "
        "without projection (deck 004).",
    )
    combine: Literal["project", "concatenate", "mean"] | None = Field(
        None,
        description="Combination of the heads. project: concatenated and projected by W_O. concatenate: only "
        "concatenated. mean: averaged. null: project, or concatenate if there are no projections.",
    )
    key_width: int | None = Field(None, ge=1, description="Width d_k of the keys of a head; null: d/h.")
    query_width: int | None = Field(
        None,
        ge=1,
        description="Width of the queries of a head; null: d_k. Other widths require the general, additive or "
        "leaky_relu scorer.",
    )
    value_width: int | None = Field(
        None, ge=1, description="Width d_v of the values of a head; null: d/h, or d if heads are averaged."
    )
    kv_heads: int | None = Field(
        None,
        ge=1,
        description="Number of heads of keys and values, a divisor of h. Each is used by h/kv_heads consecutive heads "
        "of queries, so that the cache is smaller (grouped-query attention). null: h; 1: multi-query attention.",
    )
    bias: bool = Field(True, description="Add learned biases to the projections, including W_O.")
    tie_keys_and_values: bool = Field(False, description="Use W_k as W_v (requires d_k = d_v).")
    diversity: float = Field(
        0.0,
        ge=0,
        description="Loss weight of the penalty ‖AAᵀ − I‖²_F, where the rows of A are the attention weights of the "
        "heads for one query (deck 002).",
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """Build the module. positions: the position scheme, for self-attention.

        Raises ConfigError for incompatible widths.
        """
        return SoftAttention(self, sizes, positions)

    def head_widths(self, sizes: AttentionSizes) -> tuple[int, int, int]:
        """Return the widths of a query, a key and a value of a head. Raises ConfigError for incompatible widths."""
        if not self.projections:
            if self.kv_heads is not None:
                raise ConfigError("kv_heads needs projections, which projections=false removes: remove either setting")
            return (
                _share(sizes.query, sizes.heads),
                _share(sizes.memory, sizes.heads),
                _share(sizes.memory, sizes.heads),
            )
        key = self.key_width or _share(sizes.output, sizes.heads)
        value = self.value_width or (sizes.output if self.combine == "mean" else _share(sizes.output, sizes.heads))
        if self.tie_keys_and_values and key != value:
            raise ConfigError(
                f"tie_keys_and_values needs keys and values of equal width, but their widths are {key} and {value}: "
                "set key_width and value_width to the same number"
            )
        return self.query_width or key, key, value

    def shared_heads(self, heads: int) -> int:
        """Return the number of heads of keys and values. Raises ConfigError for incompatible settings."""
        if self.kv_heads is None:
            return heads
        if heads % self.kv_heads:
            raise ConfigError(f"kv_heads is {self.kv_heads}, which does not divide the {heads} heads: change either")
        return self.kv_heads


class Queries(NamedTuple):
    """The queries of an attention layer.

    vectors: (B, h, K·T, d_q), in which the K rows of a sentence are concatenated. rows: B·K. start: position of the
    first query among the keys. mask: (B·K, T) bool, False at padding, or None. packing: the packing of the result, or
    None if it is padded.
    """

    vectors: Tensor
    rows: int
    start: int
    mask: Tensor | None
    packing: Packing | None = None


class QueryKeyPairs:
    """Queries, the keys that they are compared with, and the mask of allowed pairs.

    mask: None if all pairs are allowed. relation: the terms of the position scheme inside attention, or None.
    """

    def __init__(self, queries: Queries, keys: Keys, mask: Mask | None, relation: RelativePositions | None) -> None:
        self.queries, self.keys, self.mask, self.relation = queries, keys, mask, relation

    @cached_property
    def offsets(self) -> Tensor:
        """The position of each key minus that of each query: (K·T, S) int64."""
        device, start = self.queries.vectors.device, self.queries.start
        positions = torch.arange(start + self.queries.vectors.size(2), device=device)
        return torch.arange(self.keys.keys.size(2), device=device) - positions[start:, None]


class SoftAttention(Attention):
    """Multi-head attention as configured. Built by `SoftAttentionConfig.build`.

    kv_heads: number of heads of keys and values (Ainslie et al. 2023, "GQA"). Head i of the queries uses head
    ⌊i · kv_heads / h⌋ of keys and values. Queries that share keys are folded into the query axis, so that keys and
    values are never repeated.

    Subclasses override any of these methods: `attend_full` and `attend_causal` select the keys that are compared with a
    query, `retain` and `capacity` define the contents and size of the cache, and `context` computes the result.
    """

    def __init__(self, config: SoftAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__()
        self.config, self.heads, self.kv_heads = config, sizes.heads, config.shared_heads(sizes.heads)
        query, key, value = config.head_widths(sizes)
        self.relation = None if positions is None else positions.build_relative(sizes.heads, query, key, value)
        self.combine = config.combine or ("project" if config.projections else "concatenate")
        if config.projections:
            self.query = Linear(sizes.query, sizes.heads * query, config.bias)
            self.key = Linear(sizes.memory, self.kv_heads * key, config.bias)
            if not config.tie_keys_and_values:
                self.value = Linear(sizes.memory, self.kv_heads * value, config.bias)
        self.output_width = {"project": sizes.output, "concatenate": sizes.heads * value, "mean": value}[self.combine]
        if self.combine == "project":
            self.output = Linear(sizes.heads * value, sizes.output, config.bias)
        self.scorer = config.scorer.build(sizes.heads, query, key)
        if self.kv_heads < self.heads and not self.scorer.is_dot_product:
            raise ConfigError(
                f"kv_heads is {self.kv_heads}, but the scorer {config.scorer.kind} transforms the keys of each of the "
                f"{self.heads} heads: choose the scorer dot, scaled_dot or general, or remove kv_heads"
            )
        self.dropout = Dropout(sizes.dropout)
        self.attends_all = type(self) is SoftAttention  # subclasses select keys

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """See `Attention`: (B, S, d) → (B, S, output_width)."""
        states = self.cast(states)
        if self.attends_all and attends_packed(self, states, padding.queries):
            assert padding.queries is not None
            return attend_packed(self, states, padding.queries)
        queries = self._queries(states, states.size(0), 0, packing=padding.queries)
        keys = self._keys(states, 0, packing=padding.keys)
        return self.attend_full(Queries(queries, queries.size(0), 0, padding.tokens, padding.queries), keys, padding)

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: CausalSpan, query_mask: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """See `Attention`. The cache is the `KeyValueCache` that `retain` returns."""
        states, packing = self.cast(states), causal.packing
        if cache is None and self.attends_all and attends_packed(self, states, packing):
            assert packing is not None
            return attend_packed(self, states, packing, causal=True), None
        keys = self._keys(states, causal.start, causal.left_padding, packing)
        vectors = self._queries(states, states.size(0), causal.start, causal.left_padding, packing)
        queries = Queries(vectors, vectors.size(0), causal.start, query_mask, packing)
        new_cache = extend_cache(cache, keys, self.capacity(causal))
        result = self.attend_causal(queries, keys if cache is None else new_cache.read(), causal)
        return result, self.retain(new_cache)

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """Return the `Keys` of states (B, S, d), or the `PackedKeys` of packed states."""
        states = self.cast(states)
        if self.attends_all and attends_packed(self, states, padding.keys):
            assert padding.keys is not None
            return PackedKeys(joint_product(states, self.key, self.value), padding.keys)
        return self._keys(states, 0, packing=padding.keys)

    def cross_attend(
        self, states: Tensor, memory: TensorTree, padding: Mask, query_mask: Tensor | None = None
    ) -> Tensor:
        """See `Attention`: (B·K, T, d) → (B·K, T, output_width)."""
        packing = padding.queries
        if isinstance(memory, PackedKeys):
            if packing is not None and is_short(packing):
                return attend_packed(self, states, packing, memory)
            memory = Keys(*(self._split(each, 1, self.heads, memory.packing) for each in memory.divided(self)))
        vectors = self._queries(states, memory.keys.size(0), 0, packing=packing)
        rows = states.size(0) if packing is None else vectors.size(0)
        return self.attend(Queries(vectors, rows, 0, query_mask, packing), memory, padding)

    def cast(self, states: Tensor) -> Tensor:
        """Cast the states to the dtype of matrix products, once for queries, keys and values."""
        return cast_for_matmul(states)

    def attend_full(self, queries: Queries, keys: Keys, padding: Mask) -> Tensor:
        """Attend from each token of whole texts to all tokens: (B, S, output_width)."""
        return self.attend(queries, keys, padding)

    def attend_causal(self, queries: Queries, keys: Keys, causal: CausalSpan) -> Tensor:
        """Attend from each new token to itself and to the cached earlier tokens: (R, T, output_width)."""
        return self.attend(queries, keys, causal.mask)

    def retain(self, cache: KeyValueCache) -> KeyValueCache:
        """Return the part of the cache that later tokens may attend to."""
        return cache

    def capacity(self, causal: CausalSpan) -> int | None:
        """Return the number of positions to allocate for the cache, or None for no spare capacity."""
        return causal.capacity

    def attend(self, queries: Queries, keys: Keys, mask: Mask | None) -> Tensor:
        """Compare queries with keys and combine the heads' contexts: (B·K, T, output_width)."""
        context = apply_head_mask(self, self.context(QueryKeyPairs(queries, keys, mask, self.relation)))
        if self.combine == "mean":
            result = context.mean(1).reshape(queries.rows, -1, self.output_width)
        else:
            result = context.transpose(1, 2).reshape(queries.rows, -1, self.heads * context.size(-1))
        if queries.packing is not None:
            result = queries.packing.pack(result)
        return self.output(result) if self.combine == "project" else result

    def context(self, pairs: QueryKeyPairs) -> Tensor:
        """Return the weighted mean of the values per query and head: (B, h, K·T, d_v)."""
        context = self._fused(pairs)
        if context is not None:
            return context
        weights = normalise(self.scores(pairs), pairs.mask, self.config.normaliser)
        self.add_penalty(weights, pairs.queries.mask)
        return self.mean(weights, pairs)

    def scores(self, pairs: QueryKeyPairs) -> Tensor:
        """Return the scores of all pairs, (B, h, K·T, S), before masking."""
        queries, keys = pairs.queries.vectors, pairs.keys.keys
        if self.kv_heads == self.heads:
            scores = self.scorer(queries, keys)
        else:  # (B, h, T, d_k) · (B, kv_heads, d_k, S)
            scores = self._per_key_head(self.scorer.fold(queries), keys.transpose(-2, -1))
        if pairs.relation is not None and pairs.relation.acts_on_scores:
            scores = scores + pairs.relation.score_bias(pairs.queries.vectors, pairs.offsets)
        return scores  # type: ignore[no-any-return]

    def add_penalty(self, weights: Tensor, query_mask: Tensor | None) -> None:
        """Report the penalty on attention weights (B, h, K·T, S) to the objective."""
        if self.config.diversity and (auxiliary := collector()) is not None:
            total, count = head_diversity(weights, query_mask)
            auxiliary.penalise("head_diversity", total, count, self.config.diversity, additive=True)

    def mean(self, weights: Tensor, pairs: QueryKeyPairs) -> Tensor:
        """Record the weights (B, h, K·T, S), apply dropout and average the values: (B, h, K·T, d_v)."""
        record(self, weights)
        weights = self.dropout(weights)
        context = self._per_key_head(weights, pairs.keys.values)
        if pairs.relation is not None and pairs.relation.acts_on_values:
            context = context + pairs.relation.value_bias(weights, pairs.offsets)
        return context

    def _per_key_head(self, rows: Tensor, shared: Tensor) -> Tensor:
        """Multiply rows (B, h, T, m) of each head with the matrices (B, kv_heads, m, n) of its keys: (B, h, T, n)."""
        if self.kv_heads == self.heads:
            return torch.matmul(rows, shared)
        batch, heads, count, width = rows.shape
        folded = rows.reshape(batch, self.kv_heads, heads // self.kv_heads * count, width)
        return torch.matmul(folded, shared).reshape(batch, heads, count, -1)

    def _queries(
        self,
        states: Tensor,
        sentences: int,
        start: int,
        left_padding: Tensor | None = None,
        packing: Packing | None = None,
    ) -> Tensor:
        vectors = self.query(states) if self.config.projections else states
        queries = self._split(vectors, sentences, self.heads, packing)
        return queries if self.relation is None else self.relation.rotate(queries, start, left_padding)

    def _keys(
        self, states: Tensor, start: int, left_padding: Tensor | None = None, packing: Packing | None = None
    ) -> Keys:
        sentences, vectors = states.size(0), self.key(states) if self.config.projections else states
        values = keys = self._split(vectors, sentences, self.kv_heads, packing)
        if self.config.projections and not self.config.tie_keys_and_values:
            values = self._split(self.value(states), sentences, self.kv_heads, packing)
        if self.relation is not None:
            keys = self.relation.rotate(keys, start, left_padding)
        return Keys(self.scorer.prepare(keys), values)

    def _split(self, states: Tensor, sentences: int, heads: int, packing: Packing | None) -> Tensor:
        """Split states into heads: (rows, T, h·w) → (B, h, rows/B · T, w). Packed states are unpacked."""
        if packing is not None:
            states = packing.unpack(states)
            sentences = states.size(0)
        return states.reshape(sentences, -1, heads, states.size(-1) // heads).transpose(1, 2)

    def _fused(self, pairs: QueryKeyPairs) -> Tensor | None:
        """Return the result of the fused kernel, or None if the kernel is slower or does not support the settings."""
        queries, (keys, values), mask, relation = pairs.queries.vectors, pairs.keys, pairs.mask, pairs.relation
        is_faster = queries.device.type != "cpu" or keys.size(2) >= _FUSED_FROM_KEYS
        is_supported = (
            self.scorer.is_dot_product
            and self.config.normaliser == "softmax"
            and not self.config.diversity
            and recorder() is None
            and not (relation is not None and relation.acts_on_values)
        )
        if not (is_faster and is_supported):
            return None
        biased = relation is not None and relation.acts_on_scores
        triangular = mask is not None and mask.triangular and not biased
        allowed = None if mask is None or triangular else mask.allowed
        if relation is not None and biased:
            allowed = relation.score_bias(queries, pairs.offsets).to(queries.dtype)
            allowed = allowed if mask is None else allowed + mask.bias.to(queries.dtype)
        context = functional.scaled_dot_product_attention(
            self.scorer.fold(queries),
            keys,
            values,
            attn_mask=allowed,
            dropout_p=self.dropout.current_rate,
            is_causal=triangular,
            scale=1.0,
            enable_gqa=self.kv_heads < self.heads,
        )
        return mask.clear_empty_rows(context) if biased and mask is not None else context


def _share(width: int, heads: int) -> int:
    if width % heads:
        raise ConfigError(f"a width of {width} is not divisible by {heads} heads: change either, or set key_width")
    return width // heads
