"""Multi-head soft attention: a mean of values, weighted by how well the keys fit the query."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.config import Config
from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import Attention, AttentionSizes, Tree
from dragoman.nn.attention.recording import recorder
from dragoman.nn.auxiliary import collector
from dragoman.nn.dropout import Dropout
from dragoman.nn.mask import Causal, Mask
from dragoman.nn.positions.scheme import PositionScheme
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
        "the sum of all (deck 002's norm)",
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


class SoftAttention(Attention):
    """A mean of values under normalised scores, a head; sizes and options as the config says.

    Built by `SoftAttentionConfig.build`.
    """

    def __init__(self, config: SoftAttentionConfig, sizes: AttentionSizes, positions: PositionScheme | None) -> None:
        super().__init__()
        self.config, self.heads = config, sizes.heads
        query, key, value = config.head_widths(sizes)
        self.relation = None if positions is None else positions.related(sizes.heads, query, key, value)
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

    def encode(self, states: Tensor, padding: Mask) -> Tensor:
        """(B, S, d) → (B, S, output_width)."""
        rows, states = states.size(0), for_products(states)
        keys, values = self._keys_and_values(states, 0)
        return self._attend(self._queries(states, rows, 0), keys, values, padding, rows, 0, padding.keep[:, 0, 0])

    def extend(
        self, states: Tensor, cache: Tree | None, causal: Causal, keep: Tensor | None = None
    ) -> tuple[Tensor, Tree]:
        """Cached keys and values (R, h, t, ·) grow by T."""
        states = for_products(states)
        keys, values = self._keys_and_values(states, causal.start)
        if cache is not None:
            keys, values = torch.cat((cache[0], keys), 2), torch.cat((cache[1], values), 2)
        rows = states.size(0)
        queries = self._queries(states, rows, causal.start)
        return self._attend(queries, keys, values, causal.mask, rows, causal.start, keep), (keys, values)

    def memorise(self, states: Tensor, padding: Mask) -> Tree:
        """Prepared keys (B, h, S, ·) and values (B, h, S, d_v)."""
        return self._keys_and_values(for_products(states), 0)

    def look(self, states: Tensor, memory: Tree, padding: Mask, keep: Tensor | None = None) -> Tensor:
        """(B·K, T, d) → (B·K, T, output_width)."""
        keys, values = memory
        return self._attend(self._queries(states, keys.size(0), 0), keys, values, padding, states.size(0), 0, keep)

    def _queries(self, states: Tensor, sentences: int, start: int) -> Tensor:
        queries = self._split((self.query(states) if self.config.projections else states), sentences)
        return queries if self.relation is None else self.relation.rotate(queries, start)

    def _keys_and_values(self, states: Tensor, start: int) -> tuple[Tensor, Tensor]:
        sentences = states.size(0)
        keys = self._split(self.key(states) if self.config.projections else states, sentences)
        values = keys
        if self.config.projections and not self.config.tie_keys_and_values:
            values = self._split(self.value(states), sentences)
        if self.relation is not None:
            keys = self.relation.rotate(keys, start)
        return self.scorer.prepare(keys), values

    def _split(self, states: Tensor, sentences: int) -> Tensor:
        """(rows, T, h·w) → (B, h, rows/B · T, w)."""
        return states.reshape(sentences, -1, self.heads, states.size(-1) // self.heads).transpose(1, 2)

    def _attend(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Mask | None,
        rows: int,
        start: int,
        keep: Tensor | None,
    ) -> Tensor:
        """Queries (B, h, K·T, ·) from position `start` on over keys from position 0 → (rows, T, output_width)."""
        offsets = None
        if self.relation is not None and (self.relation.acts_on_scores or self.relation.acts_on_values):
            places = torch.arange(start + queries.size(2), device=queries.device)
            offsets = torch.arange(keys.size(2), device=queries.device) - places[start:, None]
        context = self._fused(queries, keys, values, mask, offsets)
        if context is None:
            scores = self._scores(queries, keys, offsets)
            weights = self._weights(scores, values, mask, queries, rows, keep)
            context = self._context(weights, values, offsets, keep)
        return self._combined(context, rows)

    def _scores(self, queries: Tensor, keys: Tensor, offsets: Tensor | None) -> Tensor:
        scores = self.scorer(queries, keys)
        if offsets is not None and self.relation is not None and self.relation.acts_on_scores:
            scores = scores + self.relation.score(queries, offsets)
        return scores  # type: ignore[no-any-return]

    def _weights(
        self, scores: Tensor, values: Tensor, mask: Mask | None, queries: Tensor, rows: int, keep: Tensor | None
    ) -> Tensor:
        """Weights (B, h, K·T, S) from scores; a mechanism that does not average overrides this."""
        return normalise(scores, mask, self.config.normaliser)

    def _context(self, weights: Tensor, values: Tensor, offsets: Tensor | None, keep: Tensor | None) -> Tensor:
        if (recorded := recorder()) is not None:
            recorded.setdefault(self, []).append(weights.detach())
        self._penalise(weights, keep)
        weights = self.dropout(weights)
        context = torch.matmul(weights, values)
        if offsets is not None and self.relation is not None and self.relation.acts_on_values:
            context = context + self.relation.value(weights, offsets)
        return context

    def _penalise(self, weights: Tensor, keep: Tensor | None) -> None:
        if self.config.diversity and (auxiliary := collector()) is not None:
            total, count = head_diversity(weights, keep)
            auxiliary.penalise("head_diversity", total, count, self.config.diversity, additive=True)

    def _combined(self, context: Tensor, rows: int) -> Tensor:
        """(B, h, K·T, d_v) → (rows, T, output_width)."""
        if self.combine == "mean":
            return context.mean(1).reshape(rows, -1, self.output_width)
        together = context.transpose(1, 2).reshape(rows, -1, self.heads * context.size(-1))
        return self.output(together) if self.combine == "project" else together

    def _fused(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, offsets: Tensor | None
    ) -> Tensor | None:
        """The result of the fused kernel, or None where it is slower or cannot do what is asked for."""
        wanted = queries.device.type != "cpu" or keys.size(2) >= _FUSED_FROM_KEYS
        possible = (
            self.scorer.is_dot_product
            and self.config.normaliser == "softmax"
            and not self.config.diversity
            and recorder() is None
            and not (self.relation is not None and self.relation.acts_on_values)
        )
        if not (wanted and possible):
            return None
        triangular = mask is not None and mask.triangular and offsets is None
        keep = None if mask is None or triangular else mask.keep
        if offsets is not None and self.relation is not None:
            if mask is not None and mask.has_empty_rows:
                return None
            keep = self.relation.score(queries, offsets).to(queries.dtype)
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
