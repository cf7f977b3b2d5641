"""Multi-head soft attention: a mean of values, weighted by how well the keys fit the query."""

from functools import cached_property
from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.nn.attention.cache import Keys, KeyValueCache, extended
from dragoman.nn.attention.interface import Attention, AttentionSizes, TensorTree
from dragoman.nn.attention.recording import recorder
from dragoman.nn.auxiliary import collector
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions
from dragoman.nn.precision import for_products
from dragoman.nn.scorers import ScaledDotConfig, ScorerConfig

# On a CPU the fused kernel's bfloat16 backward is slow for short sentences; from here on the explicit path's B·h·T·S
# weights cost more memory than it saves time. What was measured, and what it leaves open, is in docs/EXPERIMENTS.md.
_FUSED_FROM_KEYS = 256

# Numbers of float32 in the widest vector register of a CPU.
_LANES = 16

# Below this ln softplus(x) is x − eˣ/2 to twelve digits, and softplus itself would soon vanish.
_FAR_BELOW = -15.0

Normaliser = Literal["softmax", "sum"]


class SoftAttentionConfig(Config):
    """Heads that each take a weighted mean over all keys (Vaswani et al. 2017, section 3.2)."""

    kind: Literal["soft"] = "soft"
    scorer: ScorerConfig = Field(ScaledDotConfig(), description="how well a key fits a query")
    normaliser: Normaliser = Field(
        "softmax",
        description="how scores become weights: softmax, or sum, each score made positive by softplus and divided by "
        "the sum of all (deck 002's norm_i, which leaves open what makes scores positive)",
    )
    projections: bool = Field(
        True,
        description="matrices W_q, W_k, W_v a head; false: states are compared and averaged as they are (deck 004)",
    )
    combine: Literal["project", "concatenate", "mean"] | None = Field(
        None,
        description="heads are concatenated and projected by W_O, only concatenated, or averaged; null: project, or "
        "concatenate where there are no projections",
    )
    key_width: int | None = Field(None, ge=1, description="width of a head's keys d_k; null: d/h")
    query_width: int | None = Field(
        None, ge=1, description="width of a head's queries; null: d_k. Other widths need scorer general or additive"
    )
    value_width: int | None = Field(None, ge=1, description="width of a head's values d_v; null: d/h, or d for mean")
    tie_keys_and_values: bool = Field(False, description="W_k is W_v too (needs d_k = d_v)")
    diversity: float = Field(
        0.0, ge=0, description="weight in the loss of ‖AAᵀ − I‖²_F over the heads' weights A of a query (deck 002)"
    )

    def build(self, sizes: AttentionSizes, positions: PositionScheme | None = None) -> Attention:
        """The module. Raises ConfigError for widths that do not fit. positions: the scheme, in self-attention."""
        return SoftAttention(self, sizes, positions)

    def head_widths(self, sizes: AttentionSizes) -> tuple[int, int, int]:
        """Widths of a head's query, key and value. Raises ConfigError when they do not fit."""
        if not self.projections:
            return (
                _share(sizes.query, sizes.heads),
                _share(sizes.memory, sizes.heads),
                _share(sizes.memory, sizes.heads),
            )
        key = self.key_width or _share(sizes.output, sizes.heads)
        value = self.value_width or (sizes.output if self.combine == "mean" else _share(sizes.output, sizes.heads))
        if self.tie_keys_and_values and key != value:
            raise ConfigError(
                f"tie_keys_and_values needs keys and values of one width, but they are {key} and {value} wide: set "
                "key_width and value_width alike"
            )
        return self.query_width or key, key, value


class Queries(NamedTuple):
    """vectors: (B, h, K·T, d_q), K rows a sentence one behind the other. rows: B·K.

    start: the first one's place among the keys. keep: (B·K, T) bool, False at padding; None where all are tokens.
    """

    vectors: Tensor
    rows: int
    start: int
    keep: Tensor | None


class Comparison:
    """Queries, the keys that each is compared with, and a mask of those that it may attend, None where it may all.

    relation: what positions do between the two, None for nothing.
    """

    def __init__(self, queries: Queries, keys: Keys, mask: Mask | None, relation: RelativePositions | None) -> None:
        self.queries, self.keys, self.mask, self.relation = queries, keys, mask, relation

    @cached_property
    def offsets(self) -> Tensor:
        """(K·T, S) int64: the key's place less the query's."""
        device, start = self.queries.vectors.device, self.queries.start
        places = torch.arange(start + self.queries.vectors.size(2), device=device)
        return torch.arange(self.keys.keys.size(2), device=device) - places[start:, None]


class SoftAttention(Attention):
    """A mean of values under normalised scores, a head; sizes and options as the config says.

    Built by `SoftAttentionConfig.build`. A mechanism that differs from it overrides what it does otherwise of these:
    `attend_text` and `attend_past`, which keys are compared with which queries; `kept` and `capacity`, what stays of
    the past; `context`, what comes of a comparison.
    """

    def __init__(self, config: SoftAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__()
        self.config, self.heads = config, sizes.heads
        query, key, value = config.head_widths(sizes)
        self.relation = None if positions is None else positions.build_relative(sizes.heads, query, key, value)
        self.combine = config.combine or ("project" if config.projections else "concatenate")
        if config.projections:
            self.query = nn.Linear(sizes.query, sizes.heads * query)
            self.key = nn.Linear(sizes.memory, sizes.heads * key)
            if not config.tie_keys_and_values:
                self.value = nn.Linear(sizes.memory, sizes.heads * value)
        self.output_width = {"project": sizes.output, "concatenate": sizes.heads * value, "mean": value}[self.combine]
        if self.combine == "project":
            self.output = nn.Linear(sizes.heads * value, sizes.output)
        self.scorer = config.scorer.build(sizes.heads, query, key)
        self.dropout = Dropout(sizes.dropout)

    def self_attend(self, states: Tensor, padding: Mask) -> Tensor:
        """(B, S, d) → (B, S, output_width)."""
        states, rows = self.converted(states), states.size(0)
        keys = self._keys(states, 0)
        return self.attend_text(Queries(self._queries(states, rows, 0), rows, 0, padding.keep[:, 0, 0]), keys, padding)

    def causal_self_attend(
        self, states: Tensor, cache: TensorTree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, TensorTree]:
        """The cache is a `KeyValueCache` of what is `kept`."""
        states, rows = self.converted(states), states.size(0)
        keys = self._keys(states, causal.start, causal.left_padding)
        queries = Queries(self._queries(states, rows, causal.start, causal.left_padding), rows, causal.start, keep)
        held = extended(cache, keys, self.capacity(causal))
        seen = self.attend_past(queries, keys if cache is None else held.read(), causal)
        return seen, self.kept(held)

    def project_memory(self, states: Tensor, padding: Mask) -> TensorTree:
        """`Keys` of (B, S, d)."""
        return self._keys(self.converted(states), 0)

    def cross_attend(self, states: Tensor, memory: TensorTree, padding: Mask, keep: Tensor | None = None) -> Tensor:
        """(B·K, T, d) → (B·K, T, output_width)."""
        sentences, rows = memory.keys.size(0), states.size(0)
        return self.attend(Queries(self._queries(states, sentences, 0), rows, 0, keep), memory, padding)

    def converted(self, states: Tensor) -> Tensor:
        """Of what queries, keys and values are made: the states, in the products' type once for all three."""
        return for_products(states)

    def attend_text(self, queries: Queries, keys: Keys, padding: Mask) -> Tensor:
        """Each token of whole texts over all others: (B, S, output_width)."""
        return self.attend(queries, keys, padding)

    def attend_past(self, queries: Queries, keys: Keys, causal: Causal) -> Tensor:
        """Each new token over itself and what is held of those before: (R, T, output_width)."""
        return self.attend(queries, keys, causal.mask)

    def kept(self, cache: KeyValueCache) -> KeyValueCache:
        """What later tokens may attend of all that is held."""
        return cache

    def capacity(self, causal: Causal) -> int | None:
        """How many places a cache shall have, None for those alone that it holds."""
        return causal.capacity

    def attend(self, queries: Queries, keys: Keys, mask: Mask | None) -> Tensor:
        """Compare, take what comes of it, and bring the heads together: (B·K, T, output_width)."""
        context = self.context(Comparison(queries, keys, mask, self.relation))
        if self.combine == "mean":
            return context.mean(1).reshape(queries.rows, -1, self.output_width)
        together = context.transpose(1, 2).reshape(queries.rows, -1, self.heads * context.size(-1))
        return self.output(together) if self.combine == "project" else together

    def context(self, pairs: Comparison) -> Tensor:
        """What each query gets of the values, a head: (B, h, K·T, d_v)."""
        context = self._fused(pairs)
        if context is not None:
            return context
        weights = normalise(self.scores(pairs), pairs.mask, self.config.normaliser)
        self.penalise(weights, pairs.queries.keep)
        return self.mean(weights, pairs)

    def scores(self, pairs: Comparison) -> Tensor:
        """How well the keys fit the queries, (B, h, K·T, S), whatever the mask."""
        scores = self.scorer(pairs.queries.vectors, pairs.keys.keys)
        if pairs.relation is not None and pairs.relation.acts_on_scores:
            scores = scores + pairs.relation.score(pairs.queries.vectors, pairs.offsets)
        return scores  # type: ignore[no-any-return]

    def penalise(self, weights: Tensor, keep: Tensor | None) -> None:
        """Tell the objective what weights (B, h, K·T, S) cost it beside their result; keep: of the queries."""
        if self.config.diversity and (auxiliary := collector()) is not None:
            total, count = head_diversity(weights, keep)
            auxiliary.penalise("head_diversity", total, count, self.config.diversity, additive=True)

    def mean(self, weights: Tensor, pairs: Comparison) -> Tensor:
        """Values under weights (B, h, K·T, S), which are recorded, after dropout: (B, h, K·T, d_v)."""
        if (recorded := recorder()) is not None:
            recorded.setdefault(self, []).append(weights.detach())
        weights = self.dropout(weights)
        context = torch.matmul(weights, pairs.keys.values)
        if pairs.relation is not None and pairs.relation.acts_on_values:
            context = context + pairs.relation.value(weights, pairs.offsets)
        return context

    def _queries(self, states: Tensor, sentences: int, start: int, left_padding: Tensor | None = None) -> Tensor:
        queries = self._split((self.query(states) if self.config.projections else states), sentences)
        return queries if self.relation is None else self.relation.rotate(queries, start, left_padding)

    def _keys(self, states: Tensor, start: int, left_padding: Tensor | None = None) -> Keys:
        sentences = states.size(0)
        keys = self._split(self.key(states) if self.config.projections else states, sentences)
        values = keys
        if self.config.projections and not self.config.tie_keys_and_values:
            values = self._split(self.value(states), sentences)
        if self.relation is not None:
            keys = self.relation.rotate(keys, start, left_padding)
        return Keys(self.scorer.prepare(keys), values)

    def _split(self, states: Tensor, sentences: int) -> Tensor:
        """(rows, T, h·w) → (B, h, rows/B · T, w)."""
        return states.reshape(sentences, -1, self.heads, states.size(-1) // self.heads).transpose(1, 2)

    def _fused(self, pairs: Comparison) -> Tensor | None:
        """The result of the fused kernel, or None where it is slower or cannot do what is asked for."""
        queries, (keys, values), mask, relation = pairs.queries.vectors, pairs.keys, pairs.mask, pairs.relation
        wanted = queries.device.type != "cpu" or keys.size(2) >= _FUSED_FROM_KEYS
        possible = (
            self.scorer.is_dot_product
            and self.config.normaliser == "softmax"
            and not self.config.diversity
            and recorder() is None
            and not (relation is not None and relation.acts_on_values)
        )
        if not (wanted and possible):
            return None
        biased = relation is not None and relation.acts_on_scores
        triangular = mask is not None and mask.triangular and not biased
        keep = None if mask is None or triangular else mask.keep
        if relation is not None and biased:
            if mask is not None and mask.has_empty_rows:
                return None
            keep = relation.score(queries, pairs.offsets).to(queries.dtype)
            keep = keep if mask is None else keep + mask.bias.to(queries.dtype)
        rate = self.dropout.rate if self.training else 0.0
        return functional.scaled_dot_product_attention(
            self.scorer.fold(queries), keys, values, attn_mask=keep, dropout_p=rate, is_causal=triangular, scale=1.0
        )


def normalise(scores: Tensor, mask: Mask | None, normaliser: Normaliser = "softmax") -> Tensor:
    """Scores (…, T, S) → weights that sum to 1, zero where masked; all zero where a query has no key."""
    if normaliser == "sum":  # p/Σp is the softmax of ln p, which no score is too low for
        near = functional.softplus(scores.clamp_min(_FAR_BELOW)).log()
        far = scores.clamp_max(_FAR_BELOW)
        scores = torch.where(scores < _FAR_BELOW, far - far.exp() / 2, near)
    weights = _softmax(scores, None if mask is None else mask.bias)
    if mask is None:
        return weights
    if mask.has_empty_rows:
        weights = weights.masked_fill(~mask.keep.any(-1, keepdim=True), 0.0)
    return weights


def _softmax(scores: Tensor, bias: Tensor | None) -> Tensor:
    """Over the last axis, of scores plus bias; computed in float32 or wider and rounded once, to the scores' type.

    torch's CPU kernels take rows that fill no vector register number by number, and those of bfloat16 up to four times
    as long as those of float32; so short rows are filled up, with numbers whose softmax is 0.
    """
    logits = scores.to(torch.promote_types(scores.dtype, torch.float32))
    logits = logits if bias is None else logits + bias
    keys = scores.size(-1)
    if scores.device.type != "cpu" or keys >= _LANES:
        return torch.softmax(logits, -1).to(scores.dtype)
    filled = functional.pad(logits, (0, _LANES - keys), value=float("-inf"))
    return torch.softmax(filled, -1)[..., :keys].to(scores.dtype)


def head_diversity(weights: Tensor, keep: Tensor | None) -> tuple[Tensor, Tensor | float]:
    """Σ over queries of ‖AAᵀ − I‖²_F, A (h, S) the heads' weights (B, h, T, S) of one query, and the queries' number.

    keep: as many bool, False at queries that are padding. Deck 002; Lin et al. 2017, equation 8.
    """
    rows = weights.float().transpose(1, 2)  # (B, T, h, S)
    gram = torch.matmul(rows, rows.transpose(2, 3))
    distance = (gram - torch.eye(gram.size(-1), device=gram.device)).square().sum((2, 3))
    if keep is None:
        return distance.sum(), float(distance.numel())
    return (distance * keep.reshape(distance.shape)).sum(), keep.sum()


def _share(width: int, heads: int) -> int:
    if width % heads:
        raise ConfigError(f"{heads} heads do not divide a width of {width}: choose heads that do, or set key_width")
    return width // heads
