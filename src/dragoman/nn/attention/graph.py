"""Graph attention: each node attends to its neighbours, computed edge by edge (Veličković et al. 2018).

It equals soft attention whose mask is the graph (`Mask.graph`) and whose queries, keys and values have one projection.
Memory and time are proportional to the number of edges instead of the number of pairs of nodes.
"""

from math import sqrt
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.nn.attention.heads import apply_head_mask
from dragoman.nn.attention.recording import record
from dragoman.nn.attention.scorers import ScorerConfig
from dragoman.nn.dropout import Dropout


class SparseRows(NamedTuple):
    """A sparse matrix (N, F).

    columns: (K,) int64, the columns of the K values, row after row. values: (K,) float32. starts: (N,) int64, the index
    of the first value of each row.
    """

    columns: Tensor
    values: Tensor
    starts: Tensor

    def scale_to_sum_1(self) -> "SparseRows":
        """Return the rows divided by the sums of their values. Rows with the sum 0 remain unchanged."""
        lengths = torch.diff(self.starts, append=self.starts.new_tensor([len(self.columns)]))
        rows = torch.repeat_interleave(lengths)
        sums = torch.zeros_like(self.starts, dtype=self.values.dtype).index_add(0, rows, self.values)
        return self._replace(values=self.values / torch.where(sums == 0, 1.0, sums).index_select(0, rows))

    def project(self, weight: Tensor) -> Tensor:
        """Return the product with `weight` (F, d): (N, d)."""
        return functional.embedding_bag(
            self.columns, weight, self.starts, mode="sum", per_sample_weights=self.values.to(weight.dtype)
        )


class GraphAttention(nn.Module):
    """Multi-head attention over the edges of a graph. The queries, keys and values are the same projected states.

    output_width: width of the result.
    """

    timed = (("forward", "graph attention"),)

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        *,
        scorer: ScorerConfig,
        combine: Literal["concatenate", "mean"],
        dropout: float,
        attention_dropout: float,
    ) -> None:
        """width: width of the states. dropout: rate on the states and on the values of the neighbours, as in the code
        of the paper. attention_dropout: rate on the attention weights.
        """
        super().__init__()
        self.heads, self.combine = heads, combine
        self.projection = nn.Parameter(torch.empty(width, heads * head_width))
        bound = sqrt(6 / (width + heads * head_width))
        nn.init.uniform_(self.projection, -bound, bound)
        self.scorer = scorer.build(heads, head_width, head_width)
        self.output_width = head_width if combine == "mean" else heads * head_width
        self.bias = nn.Parameter(torch.zeros(self.output_width))
        self.dropout, self.attention_dropout = Dropout(dropout), Dropout(attention_dropout)

    def forward(self, states: Tensor | SparseRows, edges: Tensor) -> Tensor:
        """Return the weighted means of the neighbours' values: states (N, d) → (N, output_width).

        edges: (2, E) int64; the node in the first row of a column attends to the node in the second. The result of a
        node without edges is the bias.
        """
        projected = self._project(states)  # (N, h·w)
        nodes = projected.view(len(projected), self.heads, -1)  # (N, h, w)
        queries, neighbours = edges
        weights = self._weights(nodes, queries, neighbours)  # (E, h)
        record(self, weights)
        values = self.dropout(nodes).index_select(0, neighbours)  # (E, h, w)
        weighted = values * self.attention_dropout(weights).unsqueeze(2)
        context = apply_head_mask(self, torch.zeros_like(nodes).index_add(0, queries, weighted))
        return (context.mean(1) if self.combine == "mean" else context.flatten(1)) + self.bias

    def _project(self, states: Tensor | SparseRows) -> Tensor:
        """Return the projection of the states after dropout. Dropout of a zero has no effect, so zeros are skipped."""
        if isinstance(states, SparseRows):
            return states._replace(values=self.dropout(states.values)).project(self.projection)
        return torch.matmul(self.dropout(states), self.projection)

    def _weights(self, nodes: Tensor, queries: Tensor, neighbours: Tensor) -> Tensor:
        """Return the attention weight of each edge and head (E, h) for projected states (N, h, w)."""
        keys = self.scorer.prepare(nodes.transpose(0, 1).unsqueeze(0))[0].transpose(0, 1)  # (N, h, a)
        scores = self.scorer(_as_blocks(nodes, queries), _as_blocks(keys, neighbours))  # (1, h, E, 1, 1)
        return softmax_over_edges(scores.view(self.heads, -1).transpose(0, 1), queries, len(nodes))


def _as_blocks(nodes: Tensor, numbers: Tensor) -> Tensor:
    """Return the vectors of nodes as blocks of one query or key: (N, h, w) and numbers (E,) → (1, h, E, 1, w)."""
    return nodes.index_select(0, numbers).transpose(0, 1)[None, :, :, None]


def entropy_over_edges(weights: Tensor, queries: Tensor) -> Tensor:
    """Return the mean entropy (h,) of the weights (E, h) over the query nodes (E,) int64 with edges, in nats."""
    sums: Tensor = torch.special.entr(weights).sum(0)
    return sums / int((torch.bincount(queries) > 0).sum())


def softmax_over_edges(scores: Tensor, queries: Tensor, nodes: int) -> Tensor:
    """Return the softmax of scores (E, h) over the edges of each query node (E,) int64, in at least float32."""
    logits = scores.to(torch.promote_types(scores.dtype, torch.float32))
    index = queries.unsqueeze(1).expand_as(logits)
    largest = logits.new_full((nodes, logits.size(1)), float("-inf"))
    largest = largest.scatter_reduce(0, index, logits.detach(), "amax")
    exponentials = (logits - largest.index_select(0, queries)).exp()
    sums = exponentials.new_zeros(nodes, logits.size(1)).index_add(0, queries, exponentials)
    return (exponentials / sums.index_select(0, queries)).to(scores.dtype)
