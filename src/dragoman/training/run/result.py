"""`TrainingResult`: the result of a training run."""

from dataclasses import dataclass
from pathlib import Path

from dragoman.base.marks import Mark
from dragoman.base.notebook import Card, Part, Shown
from dragoman.base.table import Table
from dragoman.checkpoint.verdict import Verdict
from dragoman.figures.curves import Curves
from dragoman.training.progress.report import LOG_FILE, ValidationRecord
from dragoman.training.progress.training_curves import run_curves
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class TrainingResult(Shown):
    """The result of a run.

    folder: the model folder. step: number of updates. validation: of the parameters in the folder. reason: why the run
    ended. history: all validations. first: whether this process is the first rank. verdict: on the model, if any.
    model_step: step of the parameters in the folder, which may be earlier; None: `step`.
    """

    folder: Path
    step: int
    validation: Validation
    reason: str
    history: tuple[ValidationRecord, ...]
    first: bool = True
    verdict: Verdict | None = None
    model_step: int | None = None

    def curves(self) -> Curves:
        """Return the learning curves of the run. Raises DataError if the folder has no log."""
        return run_curves([self.folder])

    def marks(self) -> list[Mark]:
        """Return the marks of the verdict. See `Marked`."""
        return [] if self.verdict is None else self.verdict.marks()

    def card(self) -> Card:
        """Return the scores, the learning curves if the run has a log, and the verdict."""
        rows = [(score.name, f"{score.value:.{score.digits}f}", score.signature) for score in self.validation.scores]
        parts: list[Part] = [Table([("metric", "value", "signature"), *rows])]
        if (self.folder / LOG_FILE).is_file():
            parts.append(self.curves().picture())
        return Card(self._title, [*parts, *([] if self.verdict is None else [self.verdict.card()])])

    @property
    def _title(self) -> str:
        kind = "neural model" if self.verdict is not None and self.verdict.choice else "model"
        step = self.step if self.model_step is None else self.model_step
        return f"{self.folder}: the {kind} of step {step}; on the validation set"

    def __str__(self) -> str:
        lines = [self._title]
        lines += [f"  {score}" for score in self.validation.scores]
        lines += [f"  {name}: {one}" for name, one in self.validation.sets.items()]
        return "\n".join(lines if self.verdict is None else [*lines, self.verdict.explanation])
