"""`NodesPredictor`: a model that classifies the nodes of a graph, as a prediction model of a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.addons.serving.errors import RequestError
from dragoman.base.errors import ConfigError, DragomanError
from dragoman.base.log import warn
from dragoman.data.graphs import Graph
from dragoman.inference.abilities import Prediction, SupportsClassifyNodes
from dragoman.inference.prediction.examples import EncodedText


@dataclass(frozen=True)
class RequestedNode:
    """A node whose class is requested. graph: its graph; None: the graph that the model was trained with."""

    node: str
    graph: Graph | None = None


@dataclass(frozen=True)
class EncodedNode(EncodedText):
    """A requested node. Its tokens are the nodes and edges that are computed for it."""

    size: int = 1

    @property
    def tokens(self) -> int:
        """The number of nodes and edges; 1 for a node of the known graph, whose classes are already computed."""
        return self.size


class NodesPredictor:
    """A `BatchedPredictor` of the nodes of a graph. All nodes of the known graph are classified when it is created."""

    precision = "float32"
    task = "nodes"

    def __init__(self, model: SupportsClassifyNodes) -> None:
        """If the files of the graph that the model was trained with cannot be read, warn."""
        self._model, self.kind = model, model.kind
        self.labels: Sequence[str] = tuple(getattr(model, "labels", ()))
        self._known: dict[str, Prediction] | None = None
        try:
            graph = model.graph()
            self._known = dict(zip(graph.ids, model.predict(graph), strict=True))
        except (DragomanError, OSError) as error:
            warn(f"only nodes of graphs in the requests are classified, because the model's own has no files: {error}")

    def predict(self, texts: Sequence[Any], *, batch_tokens: int = 4096, first: int = 1) -> Sequence[Prediction]:
        """See `SupportsPredict.predict`. texts: `RequestedNode`s."""
        return self.predict_encoded(self.encode(texts, first=first), batch_tokens=batch_tokens)

    def encode(self, texts: Sequence[Any], *, first: int = 1) -> Sequence[EncodedText]:
        """See `BatchedPredictor.encode`. Raises DataError for a node that is not in its graph."""
        return [self._encode(text, number) for number, text in enumerate(texts, first)]

    def predict_encoded(self, encoded: Sequence[EncodedText], *, batch_tokens: int = 4096) -> Sequence[Prediction]:
        """See `BatchedPredictor.predict_encoded`. The nodes of a graph are classified together.

        Raises RequestError for a graph with features that the model does not know.
        """
        computed: dict[int, Sequence[Prediction]] = {}
        predictions = []
        for each in encoded:
            node: RequestedNode = each.example
            if node.graph is None:
                predictions.append((self._known or {})[node.node])
                continue
            if id(node.graph) not in computed:
                try:
                    computed[id(node.graph)] = self._model.predict(node.graph)
                except DragomanError as error:
                    raise RequestError(str(error), "graph") from None
            predictions.append(computed[id(node.graph)][node.graph.number(node.node)])
        return predictions

    def _encode(self, node: Any, number: int) -> EncodedNode:
        if not isinstance(node, RequestedNode):
            raise ConfigError(f"text {number}: expected a node of a graph, {{node: …}}, not {node!r:.80}")
        if node.graph is not None:
            node.graph.number(node.node)
            return EncodedNode("", node, (), len(node.graph) + len(node.graph.pairs))
        if self._known is None:
            raise ConfigError(f"text {number}: the server does not have the model's graph: send the field graph")
        if node.node not in self._known:
            raise ConfigError(f"text {number}: the graph has no node {node.node!r:.80}")
        return EncodedNode("", node, ())
