"""`NodesJob`, the job of a run that trains a model to classify the nodes of a graph."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.graph import GraphBatch
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.graphs import Graph, Split, read_graph, sorted_classes
from dragoman.inference.prediction.nodes import NodePredictor
from dragoman.metrics.labels.scoring import classification_report
from dragoman.metrics.score import Score
from dragoman.models.parts import count_parameters
from dragoman.tasks.labelled.card import training_facts, write_card_section
from dragoman.tasks.nodes.config import NodesRun
from dragoman.training.objectives.objective import FIRST, Loss, TrainingPoint
from dragoman.training.progress.final_steps import FinalSteps
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation, defined_scores


class NodesJob(Job):
    """The job of a run that trains a node classifier. An epoch is one batch, the whole graph."""

    run: NodesRun
    unit = "labels"

    def __init__(self, run: NodesRun) -> None:
        super().__init__(run)
        self.graph = read_graph(run.data)
        for split in ("train", "valid"):
            if not len(self.graph.members(split)):
                raise DataError(
                    f"{run.data.nodes} has no nodes of the set {split}: set the split of some nodes to {split}"
                )

    def prepare(self) -> None:
        """Resolve the features and labels, and put the graph into batches."""
        graph, model = self.graph, self.run.model
        classes = sorted_classes([graph.labels[number] for number in graph.members("train")])
        if len(classes) < 2:
            raise DataError(f"all training nodes have the label {classes[0]!r}: at least two labels are needed")
        features = model.features or graph.features
        if features < graph.features:
            raise ConfigError(
                f"model.features is {features}, but {self.run.data.nodes} has features up to {graph.features - 1}: "
                f"raise it to {graph.features}, or remove it"
            )
        model = model.model_copy(update={"features": features, "labels": model.labels or classes})
        self.run = self.run.model_copy(update={"model": model})
        self._train, self._valid = self._batch("train"), self._batch("valid")
        if unknown := int((self._valid.labels == NO_LABEL).sum()):
            warn(f"{unknown:,} labels of validation nodes are not those of training nodes and count as wrong")

    def _batch(self, split: Split) -> GraphBatch:
        """Return the graph with the labels of a set. Raises DataError for an unknown label of a training node."""
        labels = self.run.model.labels or ()
        nodes = self.graph.members(split)
        numbers = {label: number for number, label in enumerate(labels)}
        found = [numbers.get(self.graph.labels[node] or "", NO_LABEL) for node in nodes]
        if split == "train" and NO_LABEL in found:
            node = nodes[found.index(NO_LABEL)]
            raise DataError(
                f"{self.run.data.nodes}: the label {self.graph.labels[node]!r} of the node {self.graph.ids[node]!r} is "
                f"not one of {', '.join(map(repr, labels))}: correct it, or list it in model.labels"
            )
        return GraphBatch.of(self.graph, nodes, found)

    @property
    def model_width(self) -> int:
        """The width of the first layer's output."""
        return self.run.model.heads * self.run.model.width

    def outline(self, model: nn.Module) -> str:
        """Return one line with the numbers of parameters, nodes, edges and training labels."""
        return (
            f"{count_parameters(model):,} parameters · {len(self.graph):,} nodes · {len(self.graph.pairs):,} edges · "
            f"{len(self._train.labels):,} training labels"
        )

    @property
    def contents(self) -> Mapping[str, Content]:
        """The graph with its training labels (key `data`), and the validation labels (key `valid`)."""
        name = str(self.run.data.nodes)
        return {
            "data": Content(name, _fingerprint(self.graph, "train")),
            "valid": Content(f"{name} (valid)", _fingerprint(self.graph, "valid")),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of nodes of the only graph (1, 1)."""
        return np.array([[len(self.graph)]], np.int32)

    @property
    def batch_tokens(self) -> int:
        """Number of nodes."""
        return len(self.graph)

    def target_token_count(self) -> int:
        """Return the number of training labels."""
        return len(self._train.labels)

    def plan(self, epoch: int) -> BatchPlan:
        """Return the plan with a single batch."""
        return BatchPlan([np.zeros(1, np.int64)], (0.0,))

    def padding(self, plan: BatchPlan) -> str:
        """Return a note that the batch is the whole graph."""
        return "it is the whole graph"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Iterator[GraphBatch]:
        """Yield the batches of the plan."""
        yield from [self._train] * (len(plan) - start)

    def objective(self, device: torch.device) -> "NodesObjective":
        """Return the loss of the task."""
        return NodesObjective(self.run.train.objective.l2)

    def validator(self, model: Any, device: torch.device) -> "NodesValidator":
        """Return a validator that compares the predictions of the validation nodes with their labels."""
        labels = self.run.model.labels or ()
        gold = [str(self.graph.labels[node]) for node in self.graph.members("valid")]
        return NodesValidator(model, self._valid.to(device), labels, gold)

    def measure(self, folder: Path, validation: Validation) -> None:
        """Add scores with intervals and a baseline, and the numbers of labels, to the model card."""
        valid = self.graph.members("valid").tolist()
        report = FinalSteps(self.deadline).run(
            "scores with intervals and a baseline on the validation set",
            lambda: NodePredictor.load(folder, self.run.train.device).evaluate(self.graph, valid),
            remedy="dragoman evaluate labels measures them",
        )
        for text in () if report is None else report.warnings.values():
            warn(f"on the validation set: {text}")
        named = [[str(self.graph.labels[node]) for node in self.graph.members(each)] for each in ("train", "valid")]
        facts = [
            ("Nodes", f"{len(self.graph):,}"),
            ("Edges", f"{len(self.graph.pairs):,}"),
            *training_facts(self.run, self.start, self.contents["valid"]),
        ]
        write_card_section(folder, report, self.contents["valid"].name, (named[0], named[1]), facts=facts)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, including licence and fingerprint of the graph."""
        data = self.contents["data"]
        update = {"licence": self.run.data.licence, "data": {data.name: data.fingerprint}}
        return super().meta(step, validation, averaged_steps).model_copy(update=update)


@dataclass(frozen=True)
class NodesObjective:
    """The cross-entropy of the classes of the labelled nodes, with L2 regularisation. Implements `Objective`.

    l2: λ of the penalty λ/2 · Σθ².
    """

    l2: float
    divisible = False

    def __call__(self, model: Any, batch: GraphBatch, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of a graph."""
        loss = node_loss(model(*batch.model_inputs), batch)
        penalty: Any = sum(parameter.float().square().sum() for parameter in model.parameters()) if self.l2 else 0.0
        total = loss + self.l2 / 2 * batch.target_tokens * penalty
        return Loss(total, float(loss.detach()), batch.target_tokens)


@dataclass(frozen=True)
class NodesValidator:
    """Validates a model on the labelled nodes of a batch. Implements `Validator`.

    labels: names of the classes. gold: the correct labels of the nodes.
    """

    model: Any
    batch: GraphBatch
    labels: Sequence[str]
    gold: Sequence[str]

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model."""
        started = time.monotonic()
        with runtime.autocast():
            logits = self.model(*self.batch.model_inputs)
        predicted = logits.index_select(0, self.batch.nodes).argmax(1).tolist()
        report = classification_report(self.gold, [self.labels[number] for number in predicted], samples=0)
        known = max(1, int((self.batch.labels != NO_LABEL).sum()))
        loss = Score("loss", float(node_loss(logits, self.batch)) / known, key="loss", better="lower", digits=4)
        return Validation((*defined_scores(report.scores), loss), time.monotonic() - started)


def node_loss(logits: Tensor, batch: GraphBatch) -> Tensor:
    """Return the summed cross-entropy of logits (N, C) with the labels of a batch."""
    chosen = logits.index_select(0, batch.nodes)
    return functional.cross_entropy(chosen, batch.labels, ignore_index=NO_LABEL, reduction="sum")


def _fingerprint(graph: Graph, split: Split) -> str:
    """Return a digest of the graph and of the labels of a set."""
    digest = hashlib.sha256()
    for array in (graph.columns, graph.values, graph.starts, graph.pairs):
        digest.update(array.tobytes())
    digest.update(repr([(graph.ids[node], graph.labels[node]) for node in graph.members(split)]).encode())
    return digest.hexdigest()
