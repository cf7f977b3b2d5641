"""A model that classifies the nodes of a graph: layers of graph attention (Veličković et al. 2018)."""

from typing import Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.heads.labelled import LabelledHead
from dragoman.models.interface import LengthLimit, Trial
from dragoman.models.settings import ModelSettings
from dragoman.nn.attention.graph import GraphAttention, SparseRows
from dragoman.nn.attention.scorers import LeakyReLUConfig, ScorerConfig
from dragoman.nn.precision import to_at_least_float32
from dragoman.text.tokenizers import VocabularySizes

_UNKNOWN_FEATURES = 2
"""Number of features of a model that is built before its data is known, to check or describe the settings."""


class NodeClassifierConfig(LabelledHead, ModelSettings):
    """A graph attention network. The defaults are those of the paper for Cora and Citeseer (section 3.3)."""

    kind: Literal["node_classifier"] = "node_classifier"
    features: int | None = Field(
        None, ge=1, description="Number of features of a node. null: the largest index in the training data, plus 1."
    )
    normalise_features: bool = Field(True, description="Divide the features of each node by their sum.")
    layers: int = Field(
        2, ge=1, description="Number of layers, so that a node sees its neighbours up to this distance."
    )
    heads: int = Field(8, ge=1, description="Number of attention heads of each layer except the last.")
    width: int = Field(8, ge=1, description="Width of a head of each layer except the last.")
    output_heads: int = Field(1, ge=1, description="Number of attention heads of the last layer, which are averaged.")
    scorer: ScorerConfig = Field(LeakyReLUConfig(), description="Function that scores a neighbour for a node.")
    self_loops: bool = Field(True, description="Whether each node attends to itself, too.")
    dropout: float = Field(
        0.6, ge=0, lt=1, description="Dropout rate on the inputs of each layer, and on the values of the neighbours."
    )
    attention_dropout: float = Field(0.6, ge=0, lt=1, description="Dropout rate on the attention weights (0 to 1).")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings with the features and labels of a stored run, unless they are set."""
        features, labels = self.features or stored.features, self.labels or stored.labels
        return self.model_copy(update={"features": features, "labels": labels})

    def build_for(self, sizes: VocabularySizes) -> "NodeClassifier":
        """Build the model, initialised from torch's default generator. The model has no vocabulary."""
        return NodeClassifier(self)


class NodeClassifier(nn.Module):
    """Graph attention with an ELU between the layers. Built by `NodeClassifierConfig.build_for`."""

    limits: tuple[LengthLimit, ...] = ()

    def __init__(self, config: NodeClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList()
        width = config.features or _UNKNOWN_FEATURES
        for number in range(1, config.layers + 1):
            last = number == config.layers
            layer = GraphAttention(
                width,
                config.output_heads if last else config.heads,
                config.classes if last else config.width,
                scorer=config.scorer,
                combine="mean" if last else "concatenate",
                dropout=config.dropout,
                attention_dropout=config.attention_dropout,
            )
            self.layers.append(layer)
            width = layer.output_width

    def trial(self, length: int) -> Trial:
        """Return the model inputs for a ring of `length` nodes with one feature each."""
        device = next(self.parameters()).device
        nodes = torch.arange(length, device=device)
        edges = torch.stack([nodes, nodes.roll(1)])
        return Trial((torch.zeros_like(nodes), torch.ones(length, device=device), nodes, edges))

    def attended_edges(self, edges: Tensor, nodes: int) -> Tensor:
        """Return the edges (2, E) with the self-loops of all nodes, if the model has them."""
        if not self.config.self_loops:
            return edges
        return torch.cat([edges, torch.arange(nodes, device=edges.device).expand(2, -1)], 1)

    def forward(self, columns: Tensor, values: Tensor, starts: Tensor, edges: Tensor) -> Tensor:
        """Return the logits (N, C) of all nodes, in float32 or wider.

        columns, values, starts: the features of the N nodes, as in `SparseRows`. edges: (2, E) int64, both directions
        of each edge, without self-loops.
        """
        features = SparseRows(columns, values, starts)
        if self.config.normalise_features:
            features = features.scale_to_sum_1()
        edges = self.attended_edges(edges, len(starts))
        first, *others = self.layers
        states: Tensor = first(features, edges)
        for layer in others:
            states = layer(functional.elu(states), edges)
        return to_at_least_float32(states)
