"""`NodePredictor`, the Python interface to a model that classifies the nodes of a graph."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError, reject_options
from dragoman.base.machine.device import choose_device
from dragoman.base.settings.load import Overrides, all_overrides, load_settings, parse_settings
from dragoman.checkpoint.folder import load_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.graph import GraphBatch
from dragoman.data.graphs import Graph, GraphConfig, Split, read_graph
from dragoman.inference.prediction.heads.classification import ClassPrediction, softmax
from dragoman.inference.process_bound import ProcessBound
from dragoman.inference.subject import NO_SETTINGS, GraphNode, Subject, SubjectSettings
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import classification_report
from dragoman.models.kinds.node_classifier import NodeClassifier, NodeClassifierConfig
from dragoman.models.kinds.registry import NODE_CLASSIFIER, ModelKind


class NodesConfig(GraphConfig):
    """The nodes of a graph to predict or to evaluate."""

    split: Split | Literal["all"] | None = Field(
        None, description="Set of the nodes. all: all nodes. null: all nodes for predictions, test for an evaluation."
    )


class NodePredictor(ProcessBound):
    r"""A trained model that classifies the nodes of a graph, with which it may be trained or which may be another.

    >>> from dragoman import NodePredictor, train
    >>> from pathlib import Path
    >>> rows = ["id\tsplit\tlabel\twords", "a\ttrain\tred\t0", "b\ttrain\tblue\t1", "c\tvalid\tred\t0"]
    >>> files = {"nodes.tsv": "\n".join(rows), "edges.tsv": "a\tc\nb\tc\n"}
    >>> for name, text in files.items():
    ...     _ = Path(name).write_text(text)
    >>> recipe = {"task": {"kind": "nodes"}, "data": {"nodes": "nodes.tsv", "edges": "edges.tsv"}, "out": "runs/nodes"}
    >>> result = train(recipe, {"train.max_steps": 2}, quiet=True)
    >>> predictor = NodePredictor.load("runs/nodes")
    >>> predictor.predict(predictor.graph())[0].label in predictor.labels
    True
    """

    kind: ModelKind = NODE_CLASSIFIER
    """The record of the kind of model."""

    def __init__(self, model: NodeClassifier, meta: Meta | None = None, data: GraphConfig | None = None) -> None:
        """model: the model, which is set to evaluation mode. data: the files of the graph that it was trained on."""
        self.model = model.eval()
        self.meta = meta or Meta(step=0)
        self.data = data
        self.device = next(model.parameters()).device
        """The device of the model's parameters."""

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> "NodePredictor":
        """Read a model folder. device: cpu, cuda or cuda:N (default: a GPU if there is one).

        Raises ModelError if the path is not the folder of a node classifier, or if the folder is damaged.
        """
        loaded = load_model_folder(Path(folder), choose_device(device or "auto"), "classify_nodes")
        section = loaded.config.get("data") or {}
        files = {name: section[name] for name in GraphConfig.model_fields if name in section}
        data = parse_settings(files, GraphConfig, "the data section of config.yaml") if files else None
        predictor = cls(loaded.model, loaded.meta, data)
        predictor.kind = loaded.kind or cls.kind
        return predictor

    @property
    def config(self) -> NodeClassifierConfig:
        """The settings of the model."""
        return self.model.config

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes."""
        return self.config.labels or ()

    def graph(self, nodes: str | Path | None = None, edges: str | Path | None = None) -> Graph:
        """Read a graph from the files of its nodes and edges; None: the graph that the model was trained on.

        Raises ConfigError for one file without the other, and if the files of the training are unknown; DataError if a
        file cannot be read.
        """
        if (nodes is None) != (edges is None):
            raise ConfigError("a graph needs both its nodes and its edges: give both files")
        if nodes is not None and edges is not None:
            return read_graph(GraphConfig(nodes=Path(nodes), edges=Path(edges)), labelled=False)
        if self.data is None:
            raise ConfigError("the model folder does not name the graph of its training: give its nodes and edges")
        return read_graph(self.data, labelled=False)

    def predict(self, graph: Graph) -> list[ClassPrediction]:
        """Return the prediction for each node, in order. Raises DataError for a graph with other features."""
        probabilities = softmax(self._logits(graph))
        return [
            ClassPrediction(self.labels[int(row.argmax())], dict(zip(self.labels, map(float, row), strict=True)))
            for row in probabilities
        ]

    @property
    def task(self) -> str:
        """What is predicted."""
        return "nodes"

    def evaluate_file(self, test: str | Path, settings: Overrides = ()) -> Report:
        """Compare the predictions for the nodes of a file with their labels.

        settings: as in `read_nodes`, by default the test set. Raises the errors of `read_nodes` and `evaluate`.
        """
        return self.evaluate(*read_nodes(test, settings, "test"))

    def evaluate(self, graph: Graph, nodes: Sequence[int]) -> Report:
        """Compare the predictions for the nodes with these numbers with their labels.

        Nodes without a label do not count. The baseline is the most frequent label. Raises DataError if none of the
        nodes has a label.
        """
        nodes = [node for node in nodes if graph.labels[node] is not None]
        if not nodes:
            raise DataError("none of the nodes has a label: choose another split")
        gold = [str(graph.labels[node]) for node in nodes]
        predicted = [self.labels[number] for number in self._logits(graph)[nodes].argmax(1)]
        return classification_report(gold, predicted, unit="nodes")

    def subject(self, node: str, settings: SubjectSettings = NO_SETTINGS) -> Subject:
        """Return the log-probability of the predicted class of a node, with its computation.

        node: the id of the node. settings: the graph; by default that of `graph`. Raises DataError for an unknown id,
        ConfigError for settings of texts, and the errors of `graph`.
        """
        given = {"--target": settings.target, "--to": settings.to, "--tags": settings.tags}
        reject_options({**given, "--word": settings.word, "--mask": settings.mask}, "with a model of texts")
        graph = self.graph() if settings.graph is None else settings.graph
        number, arguments = graph.number(str(node)), self.batch(graph).model_inputs
        with torch.inference_mode():
            label = int(self.model(*arguments)[number].argmax())

        def select(logits: Tensor) -> Tensor:
            return logits[number].log_softmax(-1)[label].reshape(1)

        name = self.labels[label]
        return Subject(
            self.model,
            arguments,
            f"log-probability of {name!r} for node {node}",
            (name,),
            select,
            str(node),
            name,
            own=lambda: self.subject(node, settings).target,
            node=GraphNode(graph, number, self.labels),
        )

    @torch.inference_mode()
    def _logits(self, graph: Graph) -> NDArray[np.float32]:
        logits: NDArray[np.float32] = self.model(*self.batch(graph).model_inputs).float().cpu().numpy()
        return logits

    def batch(self, graph: Graph) -> GraphBatch:
        """Return the inputs of the model for a graph. Raises DataError for a graph with other features."""
        features = self.config.features or 0
        if graph.features > features:
            raise DataError(
                f"the graph has features up to {graph.features - 1}, but the model was trained with {features}: use "
                "the features of the training data"
            )
        return GraphBatch.of(graph, np.zeros(0, np.int64), ()).to(self.device)


def read_nodes(source: str | Path, settings: Overrides, default: Split | Literal["all"]) -> tuple[Graph, list[int]]:
    """Return a graph, and the numbers of the chosen nodes.

    source: the file of the nodes. settings: the file of the edges (`edges`), and the set of the nodes (`split`).
    default: the set if none is set. Raises ConfigError for an unknown setting and without edges, DataError if a file
    cannot be read.
    """
    values = all_overrides({"nodes": str(source)}, settings)
    if not any(each.key == ("edges",) for each in values):
        raise ConfigError("the nodes of a graph need its edges: add edges=FILE")
    config = load_settings(None, values, NodesConfig)
    split = config.split or default
    graph = read_graph(config, labelled=split != "all")
    chosen: Sequence[int] = range(len(graph)) if split == "all" else graph.members(split).tolist()
    return graph, list(chosen)
