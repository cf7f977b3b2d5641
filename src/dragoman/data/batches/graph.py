"""`GraphBatch`: a whole graph as tensors, with the nodes whose labels are predicted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.graphs import Graph


@dataclass(frozen=True)
class GraphBatch:
    """A graph, and labels of some of its nodes.

    columns, values, starts: the features of the nodes, as in `Graph`. edges: (2, E) int64, both directions of each
    edge. nodes: (n,) int64, the nodes with labels. labels: (n,) int64, their classes.
    """

    columns: Tensor
    values: Tensor
    starts: Tensor
    edges: Tensor
    nodes: Tensor
    labels: Tensor
    task: str = ""
    rows: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, graph: Graph, nodes: NDArray[np.int64], labels: Sequence[int]) -> Self:
        """Return a graph with the labels of the nodes with these numbers."""
        features = torch.from_numpy(graph.columns), torch.from_numpy(graph.values), torch.from_numpy(graph.starts)
        chosen = torch.from_numpy(nodes), torch.tensor(labels, dtype=torch.int64)
        return cls(*features, torch.from_numpy(graph.edges), *chosen)

    @property
    def target_tokens(self) -> int:
        """Number of labels, over which the loss is summed."""
        return len(self.labels)

    @property
    def model_inputs(self) -> tuple[Tensor, ...]:
        """The arguments of the model: features and edges."""
        return self.columns, self.values, self.starts, self.edges

    def to(self, device: torch.device) -> Self:
        """Return the batch with its tensors on `device`."""
        names = ("columns", "values", "starts", "edges", "nodes", "labels")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})

    def split(self, count: int) -> list[Self]:
        """Return the batch as the only part: every node may depend on all others, so a graph cannot be divided."""
        return [self]
