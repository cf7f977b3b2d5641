"""`LoopConfig`: the training loop, whatever the task."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dragoman.base.settings.config import Config
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.schedule import ScheduleConfig, default_schedule
from dragoman.training.optimisers.union import OptimiserConfig


class AverageConfig(Config):
    """The mean of several checkpoints' parameters (Vaswani et al. 2017, section 6.1), used if better on `valid`."""

    count: int = Field(5, ge=0, description="checkpoints averaged when training ends (paper: 5 base, 20 big); 0: none")
    of: Literal["last", "best"] = Field("last", description="the newest checkpoints, or those best on `valid`")


_LIMITS = ("max_steps", "max_epochs", "max_minutes")


MovingAverage = Annotated[
    float | None,
    Field(
        gt=0,
        lt=1,
        description="decay of a moving average of the parameters, validated and kept in their place; lower in the "
        "first updates, so that it forgets what they began with",
    ),
]


class LoopConfig(Config):
    """The training loop: limits, rhythm, optimisation. At least one limit or `patience` ends the run."""

    start: Path | None = Field(
        None,
        description="a model folder whose parameters and vocabularies the run starts from; where sections model and "
        "text are left out they are its too; null: random parameters",
    )
    seed: int = Field(1, ge=0, description="decides initial parameters, batch order, dropout and subword sampling")
    max_steps: int | None = Field(None, ge=1, description="stop after this many updates")
    max_epochs: int | None = Field(None, ge=1, description="stop after this many passes over the corpus")
    max_minutes: float | None = Field(
        None, gt=0, description="stop after this time, summed over resumed sittings (minutes)"
    )
    patience: int | None = Field(
        10,
        ge=1,
        description="stop after this many validations without a better one; null: never, as where it is left out in a "
        "run with a limit, whose schedule ends there",
    )
    validate_every: int = Field(500, ge=1, description="updates between validations")
    checkpoint_every: int = Field(500, ge=1, description="updates between checkpoints")
    log_every: int = Field(50, ge=1, description="updates between lines of log.jsonl")
    metric: str = Field("loss", description="the measure of validation that says what is better")
    average: AverageConfig = Field(AverageConfig(), description="checkpoint averaging at the end")
    dropout_epochs: float | None = Field(
        None,
        ge=0,
        description="passes over the corpus in which dropout rises in a straight line from nothing to the model's "
        "rates, because at first there is nothing to be learned by heart; 0: at its rates from the first update on. "
        "null: 20 for a translator that starts from random parameters, else 0. Layers that `compile` compiles "
        "have their rates throughout",
    )
    ema: MovingAverage = None
    accumulate: int = Field(
        1, ge=1, description="batches whose gradients are added up for one update, over all processes together"
    )
    parallel: Literal["ddp", "fsdp"] = Field(
        "ddp",
        description="how the processes that torchrun starts hold the model: ddp, each has all of it; fsdp, each has a "
        "share of parameters, gradients and optimiser state. One process has it all",
    )
    clip: float | None = Field(1.0, gt=0, description="largest norm of the gradient of the mean loss; null: any")
    optimiser: OptimiserConfig = Field(AdamConfig(), description="how gradients move the parameters")
    schedule: ScheduleConfig | None = Field(
        None,
        description="the learning rate over time; null: chosen for the model's width. Below 512, with `ema` and "
        "without `start`, constant after 250 updates; else a cosine that ends with the run where max_steps, max_epochs "
        "or max_minutes is set, and inverse_sqrt where none is",
        json_schema_extra={"kind": "inverse_sqrt"},
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto",
        description="of matrix products; auto: bfloat16 where the hardware multiplies it faster, float16 on GPUs that "
        "have nothing else that is fast. Sums are float32. float16 has few exponents, so the loss is scaled",
    )
    device: str = Field("auto", description="cpu, cuda, cuda:1 …; auto: a GPU if there is one")
    compile: bool = Field(
        False,
        description="Transformer layers through torch.compile, for GPUs: the first updates then take a minute or more. "
        "Part of what makes runs equal",
    )
    threads: int | None = Field(
        None, ge=1, le=1024, description="CPU threads; null: one a core. Part of what makes runs equal"
    )

    @classmethod
    def usual_kinds(cls, settings: dict[str, Any]) -> dict[str, str]:
        """A run with a limit has a schedule that ends with it."""
        return {"schedule": "cosine"} if any(settings.get(limit) is not None for limit in _LIMITS) else {}

    def resolved(self, width: int) -> Self:
        """With what was left to the kind of run. width: of the model, d."""
        averaged = self.ema is not None and self.start is None  # what has learned already comes to rest at the end
        schedule = self.schedule or default_schedule(width, self.limited, averaged)
        return self.model_copy(update={"schedule": schedule, "dropout_epochs": self.dropout_epochs or 0.0})

    @model_validator(mode="before")
    @classmethod
    def _limit_instead_of_patience(cls, values: Any) -> Any:
        if isinstance(values, dict) and any(values.get(limit) is not None for limit in _LIMITS):
            return {"patience": None, **values}
        return values

    @property
    def limits(self) -> dict[str, float | None]:
        """What the length of the run, and with it most schedules, depends on."""
        return {limit: getattr(self, limit) for limit in _LIMITS}

    @property
    def limited(self) -> bool:
        """Whether the run has a length, so that a schedule can end with it."""
        return any(self.limits.values())

    @model_validator(mode="after")
    def _ends(self) -> "LoopConfig":
        if not self.limited and self.patience is None:
            raise ValueError("nothing ends this run: set max_steps, max_epochs, max_minutes or patience")
        if self.schedule is not None and self.schedule.needs_length and not self.limited:
            raise ValueError(
                f"a {self.schedule.kind} schedule with warmup={self.schedule.warmup} must know how long the run is: "
                "set max_steps, max_epochs or max_minutes"
            )
        return self
