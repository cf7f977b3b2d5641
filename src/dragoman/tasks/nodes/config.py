"""`NodesRun`, the settings of a run that trains a model to classify the nodes of a graph."""

from typing import Any, Literal, Self

from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.data.graphs import GraphConfig
from dragoman.models.kinds.node_classifier import NodeClassifierConfig
from dragoman.training.config import AverageConfig, LoopConfig
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.schedule import ConstantConfig, ScheduleConfig
from dragoman.training.optimisers.union import OptimiserConfig
from dragoman.training.task import RunConfig, Task


class NodesTask(Task):
    """Classification of the nodes of a graph. YAML: `task: {kind: nodes}`."""

    kind: Literal["nodes"] = "nodes"


class NodesDataConfig(GraphConfig):
    """A graph whose nodes are divided into sets. The model is trained on the whole graph, and on the labels of the
    training nodes (transductive learning).
    """

    licence: str | None = Field(None, description="Licence of the data, for the model card.")


class NodesObjectiveConfig(Config):
    """Cross-entropy of the classes, with L2 regularisation."""

    l2: float = Field(
        5e-4, ge=0, description="λ of the penalty λ/2 · Σθ² over all parameters, which is added to the mean loss."
    )


class NodesLoopConfig(LoopConfig):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run.

    Every update reads the whole graph. The defaults are those of Veličković et al. 2018, section 3.3.
    """

    metric: Literal["accuracy", "macro_f1", "weighted_f1", "matthews", "loss"] = Field(
        "accuracy", description="Validation metric that determines the best checkpoint, if `selection` is metric."
    )
    selection: Literal["joint", "metric"] = Field(
        "joint",
        description="Selection of the best checkpoint. joint: the last one for which neither accuracy nor loss is "
        "worse than in any earlier validation; `patience` counts validations in which both are worse (Veličković et "
        "al. 2018). metric: the one with the best `metric`; `patience` counts validations without an improvement.",
    )
    patience: int | None = Field(
        100, ge=1, description="Stop after this many validations without improvement. null: no early stopping."
    )
    validate_every: int | None = Field(1, ge=1, description="Number of updates between validations.")
    average: AverageConfig = Field(AverageConfig(count=0), description="Checkpoint averaging at the end of training.")
    clip: float | None = Field(
        None, gt=0, description="Maximum norm of the gradient of the mean loss. null: no clipping."
    )
    optimiser: OptimiserConfig = Field(AdamConfig(beta2=0.999, epsilon=1e-8), description="Optimiser.")
    schedule: ScheduleConfig | None = Field(
        ConstantConfig(peak=0.005, warmup=0), description="Learning-rate schedule. null: chosen automatically."
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "float32", description="Precision of matrix products. auto: as for other tasks; the products are small."
    )
    objective: NodesObjectiveConfig = Field(NodesObjectiveConfig(), description="Training objective.")

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """Choose a constant learning rate, also if the length of the run is limited."""
        return {"schedule": "constant"}

    @property
    def joint_metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that select the best checkpoint together. See `LoopConfig.joint_metrics`."""
        return ("accuracy", "loss") if self.selection == "joint" else ()


class NodesRun(RunConfig):
    """A run that trains a node classifier: the top level of a recipe with `task: {kind: nodes}`."""

    task: NodesTask = Field(description="Task to learn.")
    data: NodesDataConfig = Field(description="The graph.")
    model: NodeClassifierConfig = Field(NodeClassifierConfig(), description="Model architecture.")
    train: NodesLoopConfig = Field(NodesLoopConfig(), description="Training loop.")

    def with_stored_choices(self, stored: Self) -> Self:
        """Return the settings, with those that depend on the data copied from the stored run."""
        settings = super().with_stored_choices(stored)
        return settings.model_copy(update={"model": self.model.with_stored_choices(stored.model)})
