"""`NodeInspection`: the attention weights of a node's neighbours, as arrays or as a folder of pictures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.base.errors import ConfigError
from dragoman.base.notebook import Card
from dragoman.base.table import Table
from dragoman.inference.prediction.heads.classification import softmax
from dragoman.inference.subject import GraphNode, Subject
from dragoman.inspection.inspection import ARRAYS, Inspection
from dragoman.inspection.page import page
from dragoman.models.attention_weights import AttentionMap, NeighbourWeights
from dragoman.nn.attention.recording import recording

_PICTURES = ("neighbours.png", "neighbours.svg")


@dataclass(frozen=True)
class NodeInspection(Inspection):
    """The prediction for a node, with the weights of its neighbours.

    source: the id of the node. target: the predicted label. gold: the label in the data, or None. probabilities: the
    probability of each class. layers: the weights of each layer, the lowest first.
    """

    gold: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    layers: tuple[NeighbourWeights, ...] = ()

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The weights (heads, n) float32 by layer, `layers.0` first, and the ids of the neighbours as `neighbours`."""
        weights = {f"layers.{number}": layer.weights for number, layer in enumerate(self.layers)}
        return weights | {"neighbours": np.array(self.layers[0].ids, dtype=np.str_)}

    def index(self) -> dict[str, Any]:
        """Return the contents of `index.json`."""
        layers = [
            [{"id": each.ids[i], "label": each.labels[i], "weight": float(each.mean[i])} for i in each.order]
            for each in self.layers
        ]
        prediction = {"node": self.source, "label": self.target, "gold": self.gold}
        return {
            **prediction,
            "probabilities": self.probabilities,
            "layers": layers,
            "pictures": list(_PICTURES),
            "arrays": ARRAYS,
        }

    @property
    def words(self) -> Iterator[str]:
        """The ids and labels in the picture."""
        for layer in self.layers:
            yield from (*layer.ids, *layer.labels)

    def _draw(self, folder: Path) -> None:
        from dragoman.figures.neighbour_weights import draw_neighbours

        draw_neighbours(str(self.source), self._title, self.layers, *(folder / name for name in _PICTURES))

    def card(self) -> Card:
        """Return the prediction, and the neighbours with the largest weights in each layer."""
        header = ("weight", "node", "predicted")
        tables = [
            Table([header, *((f"{each.mean[i]:.3f}", each.ids[i], each.labels[i]) for i in each.order[:10])])
            for each in self.layers
        ]
        layers = [Card(f"Layer {number}", [table]) for number, table in enumerate(tables, 1)]
        return Card(f"Node {self.source}", [self._title, *layers])

    def _map(self, kind: str, layer: int | None) -> AttentionMap:
        """Raise ConfigError, because the nodes of a graph are not a sequence."""
        raise ConfigError("the neighbours of a node are not a sequence of tokens: use `dragoman inspect`")

    def __str__(self) -> str:
        lines = [f"node {self.source}  {self._title}"]
        for number, layer in enumerate(self.layers, 1):
            lines.append(f"layer {number}, heads {len(layer.weights)}, neighbours {len(layer.ids)}")
            lines += [f"  {layer.mean[i]:.3f}  {layer.ids[i]}  {layer.labels[i]}" for i in layer.order[:10]]
        return "\n".join(lines)

    @property
    def _title(self) -> str:
        """The predicted label, and the label in the data if it is known."""
        return f"predicted {self.target}" + ("" if self.gold is None else f", label in the data {self.gold}")

    def _page(self) -> str:
        png, svg = _PICTURES
        return page(
            f"Neighbours of {escape(str(self.source))}",
            [
                f"<p>{escape(self._title)}</p>",
                f'<p><a href="{svg}"><img src="{png}" alt="weights of the neighbours"></a></p>',
                f'<p>All weights: <a href="{ARRAYS}">{ARRAYS}</a></p>',
            ],
        )


def inspect_node(subject: Subject, node: GraphNode) -> NodeInspection:
    """Return the prediction for the node of a subject, and the weights of its neighbours in each layer."""
    model, arguments, labels, graph = subject.model, subject.arguments, node.labels, node.graph
    with torch.inference_mode(), recording() as recorded:
        logits = model(*arguments)
    predictions = [labels[each] for each in logits.argmax(1).tolist()]
    edges = model.attended_edges(arguments[-1], len(graph))
    chosen = torch.nonzero(edges[0] == node.number).flatten()
    neighbours = edges[1][chosen].tolist()
    layers = tuple(
        NeighbourWeights(
            tuple(graph.ids[each] for each in neighbours),
            tuple(predictions[each] for each in neighbours),
            recorded[layer][0][chosen].transpose(0, 1).float().cpu().numpy(),
        )
        for layer in model.layers
    )
    probabilities = softmax(logits[node.number].float().cpu().numpy())
    named = dict(zip(labels, map(float, probabilities), strict=True))
    gold = graph.labels[node.number]
    return NodeInspection(subject.source, subject.target, (), gold=gold, probabilities=named, layers=layers)
