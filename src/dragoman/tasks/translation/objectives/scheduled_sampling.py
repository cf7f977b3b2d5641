"""Scheduled sampling: each input token is either the reference or the model's own previous output."""

from dataclasses import dataclass
from math import exp
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.data.batches.batch import Batch
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.nn.auxiliary import Auxiliary, collecting, collector
from dragoman.nn.randomness import generator
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.training.objectives.objective import TrainingPoint

NEVER_GENERATED = (PAD, BOS, UNK)
"""Symbols that the search never generates by default, and which scheduled sampling therefore excludes."""


class TeacherRatio(Config):
    """Base class of the schedules of the teacher-forcing ratio."""

    @property
    def needs_length(self) -> bool:
        """True if the ratio at a step depends on the length of the run."""
        return False

    def ratio(self, step: int, progress: float) -> float:
        """Return the probability that an input token is the reference.

        step: number of the update, from 1. progress: completed fraction of the run, from 0 to 1.
        """
        raise NotImplementedError


class ConstantRatioConfig(TeacherRatio):
    """ε = value. 1: plain teacher forcing; 0: each input token is the model's previous output.

    YAML: `train: {teacher_forcing: {kind: constant, value: 0.5}}`.
    """

    kind: Literal["constant"] = "constant"
    value: float = Field(1.0, ge=0, le=1, description="Probability that an input token is the reference (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """Return the constant ratio `value`."""
        return self.value


ALWAYS = ConstantRatioConfig()


class LinearRatioConfig(TeacherRatio):
    """ε_i = max(floor, first − (first − floor) · i / steps), i = number of completed updates (Bengio et al. 2015,
    section 2.4).

    Without `steps`, the ratio reaches `floor` at the end of the run. YAML: `train: {teacher_forcing: {kind: linear}}`.
    """

    kind: Literal["linear"] = "linear"
    first: float = Field(1.0, ge=0, le=1, description="Ratio at the first update (0 to 1).")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")
    steps: int | None = Field(None, ge=1, description="Updates until the minimum is reached; null: the whole run.")

    @property
    def needs_length(self) -> bool:
        """True if `steps` is not set."""
        return self.steps is None

    def ratio(self, step: int, progress: float) -> float:
        """Return a ratio that falls linearly from `first` to `floor`."""
        share = progress if self.steps is None else (step - 1) / self.steps
        return max(self.floor, self.first - (self.first - self.floor) * share)


class ExponentialRatioConfig(TeacherRatio):
    """ε_i = kⁱ, i = number of completed updates (Bengio et al. 2015, section 2.4).

    YAML: `train: {teacher_forcing: {kind: exponential, base: 0.9998}}`.
    """

    kind: Literal["exponential"] = "exponential"
    base: float = Field(0.9998, gt=0, lt=1, description="k, factor by which each update multiplies the ratio (0 to 1).")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """Return a ratio that falls exponentially from 1 to `floor`."""
        return max(self.floor, self.base ** (step - 1))


class InverseSigmoidRatioConfig(TeacherRatio):
    """ε_i = k / (k + exp(i / k)), i = number of completed updates (Bengio et al. 2015, section 2.4): ½ after k · ln k
    updates.

    YAML: `train: {teacher_forcing: {kind: inverse_sigmoid, speed: 1000}}`.
    """

    kind: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    speed: float = Field(1000.0, ge=1, description="k (updates). With a larger k, the ratio falls later.")
    floor: float = Field(0.0, ge=0, le=1, description="Minimum ratio (0 to 1).")

    def ratio(self, step: int, progress: float) -> float:
        """Return a ratio that falls from k / (k + 1) to `floor`."""
        return max(self.floor, self.speed / (self.speed + exp(min((step - 1) / self.speed, 700.0))))


TeacherRatioConfig = Annotated[
    ConstantRatioConfig | LinearRatioConfig | ExponentialRatioConfig | InverseSigmoidRatioConfig,
    Field(discriminator="kind"),
]


@dataclass(frozen=True)
class ScheduledSampling:
    """Runs a model on batches whose input tokens are references with a probability scheduled by `teacher`."""

    teacher: TeacherRatio

    def __call__(self, model: Any, batch: Any, point: TrainingPoint) -> ProjectedOutput:
        """Return the output at every target position, computed by `forward` with the ratio at `point`."""
        return forward(model, batch, self.teacher.ratio(point.step, point.progress))


def forward(model: Seq2Seq, batch: Batch, ratio: float = 1.0) -> ProjectedOutput:
    """Return the output at each target position of `batch`: hidden states (B, T, d), differentiable.

    With a ratio of 1, the whole reference is processed in parallel. With a lower ratio, the decoder processes one token
    per step. Each input token after the first is, independently, the reference with probability `ratio`, and the most
    probable output after the preceding inputs with probability 1 − `ratio` (Bengio et al. 2015, "Scheduled Sampling").
    Gradients flow through the decoder's states, not through the choice of tokens. Padding is never replaced.
    """
    if ratio >= 1:
        return model(*batch.model_inputs)  # type: ignore[no-any-return]
    state = model.decoder.start(model.encode(batch.source, batch.source_mask))
    reference = batch.inputs
    # All random numbers are drawn in advance and on the CPU, so that they are the same on every device and do not
    # depend on the random numbers that modules draw.
    draws = torch.rand(reference.shape, generator=generator(torch.device("cpu")))
    forced = (draws < ratio).to(reference.device) | (reference == PAD)  # (B, T)
    tokens = reference[:, :1]
    outputs: list[ProjectedOutput] = []
    collected: list[Auxiliary] = []
    for position in range(reference.size(1)):
        if position:
            tokens = torch.where(forced[:, position], reference[:, position], _most_probable(outputs[-1]))[:, None]
        if (outer := collector()) is None:
            output, state = model.decoder.step(tokens, state)
        else:
            with collecting(outer.step) as auxiliary:
                output, state = model.decoder.step(tokens, state)
            collected.append(auxiliary)
        outputs.append(output)
    if outer is not None:
        outer.absorb(collected)
    return ProjectedOutput.joined(outputs)


@torch.no_grad()
def _most_probable(output: ProjectedOutput) -> Tensor:
    """Return the most probable next tokens (R,) int64."""
    logits = output.last_logits()
    logits[:, list(NEVER_GENERATED)] = -torch.inf
    return logits.argmax(1)
