"""Attention scorers for multi-head attention and, with a single head, for recurrent decoders."""

from math import sqrt
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import Config
from dragoman.base.settings.variants import Variants
from dragoman.nn.attention.additive_scores import additive_scores


class Scorer(nn.Module):
    """Compute scores (B, h, …, T, S) of queries (B, h, …, T, d_q) and keys (B, h, …, S, d_k).

    Dimension 1 is the heads; there may be block dimensions between it and the last two. `prepare` is applied to the
    keys once, and its result is cached. Dot-product scorers override `fold`. Other scorers override `forward`.
    """

    is_dot_product: bool = True

    def prepare(self, keys: Tensor) -> Tensor:
        """Return the cached form of the keys: (B, h, …, S, d_k) → (B, h, …, S, any width)."""
        return keys

    def fold(self, queries: Tensor) -> Tensor:
        """Return the queries, transformed so that their dot products with the prepared keys are the scores."""
        raise NotImplementedError

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Return the scores (B, h, …, T, S) of queries (B, h, …, T, d_q) and prepared keys."""
        return torch.matmul(self.fold(queries), prepared.transpose(-2, -1))


class DotConfig(Config):
    """q·k (Luong et al. 2015, "dot")."""

    kind: Literal["dot"] = "dot"

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Build the scorer for heads of the given widths. Raises ConfigError if they differ."""
        _require_equal_widths(self, query_width, key_width)
        return Dot()


class Dot(Scorer):
    """The scorer q·k."""

    def fold(self, queries: Tensor) -> Tensor:
        """Return the queries unchanged."""
        return queries


class ScaledDotConfig(Config):
    """q·k/√d_k (Vaswani et al. 2017, equation 1)."""

    kind: Literal["scaled_dot"] = "scaled_dot"

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Build the scorer for heads of the given widths. Raises ConfigError if they differ."""
        _require_equal_widths(self, query_width, key_width)
        return ScaledDot()


class ScaledDot(Scorer):
    """The scorer q·k/√d_k."""

    def fold(self, queries: Tensor) -> Tensor:
        """Return the scaled queries. They have fewer elements than the scores if S > d_k."""
        return queries * (1 / sqrt(queries.size(-1)))


class GeneralConfig(Config):
    """qᵀWk, also called bilinear or multiplicative attention (Luong et al. 2015, "general").

    Queries and keys may have different widths.
    """

    kind: Literal["general"] = "general"

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Build the scorer for heads of the given widths."""
        return General(heads, query_width, key_width)


class General(Scorer):
    """The scorer qᵀWk, with W (h, d_q, d_k)."""

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = _matrices(heads, query_width, key_width)

    def fold(self, queries: Tensor) -> Tensor:
        """Return Wᵀq."""
        return _project_heads(queries, self.weight)


class AdditiveConfig(Config):
    """wᵀtanh(Uq + Vk), also called "concat" attention (Bahdanau et al. 2015, appendix A.1.2).

    Queries and keys may have different widths.
    """

    kind: Literal["additive"] = "additive"
    width: int | None = Field(None, ge=1, description="Width of the hidden layer, per head; null: the width of a key.")

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Build the scorer for heads of the given widths."""
        return Additive(heads, query_width, key_width, self.width or key_width)


class Additive(Scorer):
    """The scorer wᵀtanh(Uq + Vk), with U (h, d_q, a), V (h, d_k, a) and w (h, a)."""

    is_dot_product = False

    def __init__(self, heads: int, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.query = _matrices(heads, query_width, width)
        self.key = _matrices(heads, key_width, width)
        self.vector = nn.Parameter(torch.empty(heads, width))
        bound = sqrt(3 / width)
        nn.init.uniform_(self.vector, -bound, bound)

    def prepare(self, keys: Tensor) -> Tensor:
        """Return Vk."""
        return _project_heads(keys, self.key)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Return the scores (B, h, …, T, S) of queries (B, h, …, T, d_q) and prepared keys Vk (B, h, …, S, a)."""
        blocks = [1] * (queries.dim() - 4)
        vector = self.vector.view(self.vector.size(0), *blocks, -1)
        return additive_scores(_project_heads(queries, self.query), prepared, vector)


class LeakyReLUConfig(Config):
    """LeakyReLU(uᵀq + vᵀk), the scorer of graph attention (Veličković et al. 2018, equation 3).

    Queries and keys may have different widths.
    """

    kind: Literal["leaky_relu"] = "leaky_relu"
    slope: float = Field(0.2, ge=0, lt=1, description="Slope of LeakyReLU for negative inputs (paper: 0.2).")

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Build the scorer for heads of the given widths."""
        return LeakyReLU(heads, query_width, key_width, self.slope)


class LeakyReLU(Scorer):
    """The scorer LeakyReLU(uᵀq + vᵀk), with u (h, d_q, 1) and v (h, d_k, 1)."""

    is_dot_product = False

    def __init__(self, heads: int, query_width: int, key_width: int, slope: float) -> None:
        super().__init__()
        self.query = _matrices(heads, query_width, 1)
        self.key = _matrices(heads, key_width, 1)
        self.slope = slope

    def prepare(self, keys: Tensor) -> Tensor:
        """Return vᵀk."""
        return _project_heads(keys, self.key)

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """Return the scores (B, h, …, T, S) of queries (B, h, …, T, d_q) and prepared keys vᵀk (B, h, …, S, 1)."""
        sums = _project_heads(queries, self.query) + prepared.transpose(-2, -1)
        return functional.leaky_relu(sums, self.slope)


SCORERS = Variants("scorer")
"""The registry of scorers: `SCORERS.register` adds a config whose `build` returns a `Scorer`."""
ScorerConfig = Annotated[DotConfig | ScaledDotConfig | GeneralConfig | AdditiveConfig | LeakyReLUConfig, SCORERS]
SCORERS.extend(ScorerConfig)


def _require_equal_widths(config: Any, query_width: int, key_width: int) -> None:
    if query_width != key_width:
        raise ConfigError(
            f"the {config.kind} scorer needs queries and keys of equal width, but a head has {query_width} and "
            f"{key_width}: make the widths equal, or use scorer kind general or additive"
        )


def _matrices(heads: int, rows: int, columns: int) -> nn.Parameter:
    """Return a parameter (heads, rows, columns), with each matrix initialised as in Glorot & Bengio 2010."""
    weight = nn.Parameter(torch.empty(heads, rows, columns))
    bound = sqrt(6 / (rows + columns))
    nn.init.uniform_(weight, -bound, bound)
    return weight


def _project_heads(vectors: Tensor, weight: Tensor) -> Tensor:
    """Project vectors (B, h, …, n, p) with weights (h, p, r) → (B, h, …, n, r).

    It computes one product per head. A broadcast matmul would compute one per sentence, each with a separate gradient
    of the weight.
    """
    if len(weight) == 1:
        return torch.matmul(vectors, weight[0])
    return torch.einsum("bh...p,hpr->bh...r", vectors, weight)
