"""`TrainingResult`: the result of a training run."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.checkpoint.verdict import Verdict
from dragoman.training.progress.report import ValidationRecord
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class TrainingResult:
    """The result of a run.

    folder: the model folder. step: number of updates. validation: of the parameters in the folder. reason: why the run
    ended. history: all validations. first: whether this process is the first rank. verdict: on the model, if any.
    """

    folder: Path
    step: int
    validation: Validation
    reason: str
    history: tuple[ValidationRecord, ...]
    first: bool = True
    verdict: Verdict | None = None

    def __str__(self) -> str:
        kind = "neural model" if self.verdict is not None and self.verdict.choice else "model"
        lines = [f"{self.folder}: the {kind} of step {self.step}; on the validation set"]
        lines += [f"  {score}" for score in self.validation.scores]
        lines += [f"  {name}: {one}" for name, one in self.validation.sets.items()]
        return "\n".join(lines if self.verdict is None else [*lines, self.verdict.explanation])
