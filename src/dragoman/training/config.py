"""`LoopConfig`: the settings of the training loop, for every task."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.schedule import ScheduleConfig, default_schedule
from dragoman.training.optimisers.union import OptimiserConfig


class AverageConfig(Config):
    """Checkpoint averaging (Vaswani et al. 2017, section 6.1).

    The mean of several checkpoints' parameters becomes the final model unless it scores worse on `valid`.
    """

    count: int = Field(
        5,
        ge=0,
        description="Number of checkpoints averaged at the end of training (paper: 5 for base, 20 for big). 0: no "
        "averaging.",
    )
    of: Literal["last", "best"] = Field(
        "last", description="Checkpoints to average. last: the newest. best: those with the best scores on `valid`."
    )


VALIDATE_EVERY = 500
"""Default number of updates between validations."""

_LIMITS = ("max_steps", "max_epochs", "max_minutes")


MovingAverage = Annotated[
    float | None,
    Field(
        gt=0,
        lt=1,
        description="Decay of a moving average of the parameters. The average is validated and saved instead of the "
        "parameters. The decay is lower in the first updates, so that the initial values are forgotten.",
    ),
]


class LoopConfig(Config):
    """The training loop: limits, intervals, optimisation. At least one limit, or `patience`, ends the run."""

    start: Path | None = Field(
        None,
        description="Model folder to start from. A model of the same kind provides all parameters, the vocabularies, "
        "and the `model` and `text` sections if they are not set. Any other model provides the parts that fit, and "
        "the vocabularies if `text` is not set. null: random parameters.",
    )
    start_parts: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Parts to copy from `start`, such as encoder, encoder.embedding or decoder.projection. null: all "
        "parts that fit.",
    )
    freeze: tuple[str, ...] = Field(
        (),
        description="Parts of the model that are not trained, such as encoder or encoder.embedding, each with all "
        "parts inside it.",
    )
    unfreeze_every: int | None = Field(
        None,
        ge=1,
        description="Gradual unfreezing: only the head is trained at first, and one more layer from the top after "
        "every period of this many epochs; the embeddings are last. null: all layers are trained from the start.",
    )
    layer_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="Factor of the learning rate from each layer to the one below. The top layer has the full rate, "
        "and the embeddings the lowest.",
    )
    head_rate: float | None = Field(
        None,
        gt=0,
        description="Learning rate of the head, as a multiple of the schedule's. null: for a new head on a "
        "pre-trained encoder from `start` 10, for a parser 2; otherwise 1.",
    )
    seed: int = Field(
        1, ge=0, description="Random seed for initial parameters, batch order, dropout and subword sampling."
    )
    max_steps: int | None = Field(None, ge=1, description="Stop after this many updates.")
    max_epochs: int | None = Field(None, ge=1, description="Stop after this many passes over the corpus.")
    max_minutes: float | None = Field(
        None,
        gt=0,
        description="End each run after this many minutes, summed over resumed runs. Everything counts: preparation, "
        "statistical systems, updates, validations, and the choice and measurement of the final model, for which "
        "training ends earlier. What does not fit is left out.",
    )
    patience: int | None = Field(
        10,
        ge=1,
        description="Stop after this many validations without improvement. null: no early stopping; this is the "
        "default for a run with a limit, because its schedule ends at the limit.",
    )
    validate_every: int | None = Field(
        None,
        ge=1,
        description="Number of updates between validations. null: 500. For tasks with labels: one epoch if it is "
        "shorter, but at least 50 updates in a run that only `patience` ends. For translation in such a run: 4 epochs "
        "if they are shorter, but at least 100 updates.",
    )
    checkpoint_every: int = Field(500, ge=1, description="Number of updates between checkpoints.")
    log_every: int = Field(50, ge=1, description="Number of updates between lines of log.jsonl.")
    metric: str = Field("loss", description="Validation metric that determines the best checkpoint.")
    average: AverageConfig = Field(AverageConfig(), description="Checkpoint averaging at the end of training.")
    dropout_epochs: float | None = Field(
        None,
        ge=0,
        description="Number of passes over the corpus during which dropout rises linearly from zero to the model's "
        "rates, because a model does not overfit early in training. 0: full rates from the first update. "
        "null: 20 for a translation model with random initial parameters, 0 for all other models. Layers compiled by "
        "`compile` always use their full rates.",
    )
    ema: MovingAverage = None
    accumulate: int = Field(
        1,
        ge=1,
        description="Number of batches whose gradients are accumulated for one update, over all processes.",
    )
    parallel: Literal["ddp", "fsdp"] = Field(
        "ddp",
        description="Distribution of the model over the processes started by torchrun. ddp: each process holds the "
        "whole model. fsdp: each process holds a shard of parameters, gradients and optimiser state. No effect with a "
        "single process.",
    )
    clip: float | None = Field(
        1.0, gt=0, description="Maximum norm of the gradient of the mean loss. null: no clipping."
    )
    optimiser: OptimiserConfig = Field(AdamConfig(), description="Optimiser.")
    schedule: ScheduleConfig | None = Field(
        None,
        description="Learning-rate schedule. null: chosen automatically. A model narrower than 512 with `ema` and "
        "without `start` gets a constant rate after 250 warm-up updates. Any other model gets a cosine that ends with "
        "the run if max_steps, max_epochs or max_minutes is set, and inverse_sqrt if none of them is set.",
        json_schema_extra={"kind": "inverse_sqrt"},
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="Precision of matrix products. auto: bfloat16 if its products are faster than those in float32, "
        "float16 on GPUs where it is the only fast format, and float32 on other hardware. Sums are float32. float16 "
        "uses loss scaling, because it has few exponent bits.",
    )
    device: str = Field("auto", description="Device: cpu, cuda, cuda:1 …. auto: a GPU if there is one.")
    compile: bool = Field(
        False,
        description="Compile Transformer layers with torch.compile. Intended for GPUs. The first updates then take a "
        "minute or more. Results are reproducible only with the same value.",
    )
    cuda_graphs: bool = Field(
        True,
        description="On a GPU, repeat the passes over batches of few shapes (`data.batch.few_shapes`) as CUDA graphs. "
        "A graph is used only if its first results agree with those without it. Only for the loss cross_entropy on a "
        "single GPU.",
    )
    threads: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Number of CPU threads. null: one per core. Results are reproducible only with the same value.",
    )

    @classmethod
    def default_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """Choose a schedule that ends with the run if the length of the run is limited."""
        return {"schedule": "cosine"} if any(settings.get(limit) is not None for limit in _LIMITS) else {}

    def resolve(self, width: int) -> Self:
        """Return the settings with all automatic values set. width: the model width d."""
        averaged = self.ema is not None and self.start is None  # fine-tuning needs a decaying rate
        schedule = self.schedule or default_schedule(width, self.limited, averaged)
        return self.model_copy(
            update={
                "schedule": schedule,
                "dropout_epochs": self.dropout_epochs or 0.0,
                "head_rate": self.head_rate or 1.0,
                "validate_every": self.validate_every or VALIDATE_EVERY,
            }
        )

    @model_validator(mode="before")
    @classmethod
    def _disable_default_patience(cls, values: Any) -> Any:
        if isinstance(values, dict) and any(values.get(limit) is not None for limit in _LIMITS):
            return {"patience": None, **values}
        return values

    @property
    def limits(self) -> dict[str, float | None]:
        """The settings that limit the length of the run, on which most schedules depend."""
        return {limit: getattr(self, limit) for limit in _LIMITS}

    @property
    def joint_metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that select the best checkpoint together; empty: `metric` selects it.

        A checkpoint is then better if none of these scores is worse than in any earlier validation, and patience
        counts the validations in which all of them are worse.
        """
        return ()

    @property
    def limited(self) -> bool:
        """Whether the length of the run is limited, so that a schedule can end with it."""
        return any(self.limits.values())

    def unfinished_schedules(self, updates: int) -> Iterator[str]:
        """Yield a message for each schedule of the task that does not reach its end within `updates` updates."""
        yield from ()

    @model_validator(mode="after")
    def _check_start_parts(self) -> "LoopConfig":
        if self.start_parts is not None and self.start is None:
            raise ValueError(
                "train.start_parts requires train.start, the model folder to copy parts from: set train.start, or "
                "remove train.start_parts"
            )
        return self

    @model_validator(mode="after")
    def _check_unfreezing(self) -> "LoopConfig":
        if self.unfreeze_every is not None and self.start is None:
            raise ValueError(
                "train.unfreeze_every trains the head of a pre-trained encoder first, so it requires train.start, "
                "the model folder with the encoder: set train.start, or remove train.unfreeze_every"
            )
        return self

    @model_validator(mode="after")
    def _check_limits(self) -> "LoopConfig":
        if not self.limited and self.patience is None:
            raise ValueError("this run would never end: set max_steps, max_epochs, max_minutes or patience")
        if self.schedule is not None and self.schedule.needs_length and not self.limited:
            raise ValueError(
                f"a {self.schedule.kind} schedule with warmup={self.schedule.warmup} depends on the length of the run: "
                "set max_steps, max_epochs or max_minutes"
            )
        return self
