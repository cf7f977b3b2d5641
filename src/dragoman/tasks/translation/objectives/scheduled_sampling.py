"""Teacher forcing with a ratio: each input token is the reference, or what the model itself put out last."""

from dataclasses import dataclass
from math import exp
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.data.batches.batch import Batch
from dragoman.models.family import ProjectedOutput
from dragoman.models.seq2seq import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary, collecting, collector
from dragoman.nn.randomness import generator
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.training.objectives.objective import TrainingPoint

NEVER_WRITTEN = (PAD, BOS, UNK)
"""What the search never puts out by default, so the model is not fed it as its own output either."""


class TeacherRatio(Config):
    """The base of every schedule of the ratio."""

    @property
    def needs_length(self) -> bool:
        """Whether the ratio at a step depends on how long the run will be."""
        return False

    def ratio(self, step: int, progress: float) -> float:
        """The probability of the reference at the 1-based `step`, when `progress` (0…1) of the run is done."""
        raise NotImplementedError


class ConstantRatioConfig(TeacherRatio):
    """ε = value. 1: plain teacher forcing; 0: the model always reads its own output.

    YAML: `train: {teacher_forcing: {kind: constant, value: 0.5}}`.
    """

    kind: Literal["constant"] = "constant"
    value: float = Field(1.0, ge=0, le=1, description="Probability that an input token is the reference (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """The same at every step."""
        return self.value


ALWAYS = ConstantRatioConfig()


class LinearRatioConfig(TeacherRatio):
    """ε_i = max(floor, first − (first − floor) · i / steps), i = number of completed updates (Bengio et al. 2015,
    section 2.4).

    Without `steps` the ratio reaches its floor when the run ends. YAML: `train: {teacher_forcing: {kind: linear}}`.
    """

    kind: Literal["linear"] = "linear"
    first: float = Field(1.0, ge=0, le=1, description="Ratio at the first update (0 to 1).")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")
    steps: int | None = Field(None, ge=1, description="Updates until the minimum is reached; null: the whole run.")

    @property
    def needs_length(self) -> bool:
        """Whether the ratio at a step depends on how long the run will be."""
        return self.steps is None

    def ratio(self, step: int, progress: float) -> float:
        """From `first` down to `floor`."""
        done = progress if self.steps is None else (step - 1) / self.steps
        return max(self.floor, self.first - (self.first - self.floor) * done)


class ExponentialRatioConfig(TeacherRatio):
    """ε_i = kⁱ, i = number of completed updates (Bengio et al. 2015, section 2.4).

    YAML: `train: {teacher_forcing: {kind: exponential, base: 0.9998}}`.
    """

    kind: Literal["exponential"] = "exponential"
    base: float = Field(0.9998, gt=0, lt=1, description="k, factor by which each update multiplies the ratio (0 to 1).")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """From 1 towards the floor."""
        return max(self.floor, self.base ** (step - 1))


class InverseSigmoidRatioConfig(TeacherRatio):
    """ε_i = k / (k + exp(i / k)), i = number of completed updates (Bengio et al. 2015, section 2.4): ½ after k · ln k
    updates.

    YAML: `train: {teacher_forcing: {kind: inverse_sigmoid, speed: 1000}}`.
    """

    kind: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    speed: float = Field(1000.0, ge=1, description="k (updates); the larger it is, the later the ratio falls.")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """From k / (k + 1) towards the floor."""
        return max(self.floor, self.speed / (self.speed + exp(min((step - 1) / self.speed, 700.0))))


TeacherRatioConfig = Annotated[
    ConstantRatioConfig | LinearRatioConfig | ExponentialRatioConfig | InverseSigmoidRatioConfig,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class ScheduledSampling:
    """Reads the reference's tokens with the probability that `teacher` schedules, else the model's own output."""

    teacher: TeacherRatio

    def __call__(self, model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
        """The output at every target position, with the ratio of `point` (see `forward`)."""
        return forward(model, batch, self.teacher.ratio(point.step, point.progress))


def forward(model: Seq2Seq, batch: Batch, ratio: float = 1.0) -> ProjectedOutput:
    """What follows each input token of `batch`: hidden states (B, T, d), differentiable.

    With a ratio of 1 all inputs are the reference's, read at once. Below it each input token after the first is,
    by a coin of its own, the reference (probability `ratio`) or the most probable output after the inputs before it
    (Bengio et al. 2015, "Scheduled Sampling"): the decoder reads one token a step, and gradients flow through its
    states, not through the choice. Padding stays padding.
    """
    if ratio >= 1:
        return model(*batch.reads)  # type: ignore[no-any-return]
    state = model.decoder.start(model.encode(batch.source, batch.source_mask))
    reference = batch.inputs
    # drawn at once and on the CPU: neither the device nor what modules draw in between changes them
    coins = torch.rand(reference.shape, generator=generator(torch.device("cpu")))
    forced = (coins < ratio).to(reference.device) | (reference == PAD)
    tokens = reference[:, :1]
    outputs: list[ProjectedOutput] = []
    told: list[Auxiliary] = []
    for place in range(reference.size(1)):
        if place:
            tokens = torch.where(forced[:, place], reference[:, place], _written(outputs[-1]))[:, None]
        if (outer := collector()) is None:
            output, state = model.decoder.step(tokens, state)
        else:
            with collecting(outer.step) as auxiliary:
                output, state = model.decoder.step(tokens, state)
            told.append(auxiliary)
        outputs.append(output)
    if outer is not None:
        outer.absorb(told)
    return ProjectedOutput.joined(outputs)


@torch.no_grad()
def _written(output: ProjectedOutput) -> Tensor:
    """(R,) int64: the most probable token after the last that was read."""
    logits = output.last_logits()
    logits[:, list(NEVER_WRITTEN)] = -torch.inf
    return logits.argmax(1)
