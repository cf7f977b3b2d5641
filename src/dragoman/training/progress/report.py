"""`Reporter` writes `log.jsonl`, shows progress and draws the learning curve. `read_history` reads the log."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.base.files import atomic_write
from dragoman.base.log import format_duration, info
from dragoman.base.progress import Progress
from dragoman.training.profiling.utilisation import Utilisation
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import PendingSums, add_counts
from dragoman.training.progress.training_curves import draw_curves
from dragoman.training.updates.update import StepResult
from dragoman.training.validation import Validation

_DRAWING_INTERVAL = 20
"""Minimum time between two drawings of the learning curve, as a multiple of the duration of a drawing."""

LOG_FILE, CURVES_FILE = "log.jsonl", "curves.png"


@dataclass(frozen=True)
class RunStatus:
    """The state of a run after an update. epoch: from 1; seconds, tokens: totals of the run so far.

    last: whether the run ends with this update. The last update is always logged.
    """

    step: int
    epoch: int
    learning_rate: float
    seconds: float
    tokens: int
    horizon: Horizon
    last: bool = False


class Reporter:
    """A context manager that reports on a run while it is open.

    The values in a training line are means over the steps since the previous line; module counters are summed.
    unlogged: the sums from which these means are computed; they are part of the run's state. utilisation: converts
    tokens per second to model FLOPs utilisation, which is logged as a fraction in `utilisation`; None: no utilisation
    is reported. ranks: number of processes.
    """

    def __init__(
        self,
        folder: Path,
        log_every: int,
        step: int,
        *,
        unlogged: PendingSums,
        utilisation: Utilisation | None = None,
        ranks: int = 1,
        unit: str = "target tokens",
        shown_every: int = 1,
    ) -> None:
        """unit: name of the units over which the loss is a mean. shown_every: number of updates between validations
        that are shown; all validations are logged.
        """
        self.unit, self._short = unit, unit.rpartition(" ")[2]
        self._shown_every = shown_every
        self._is_drawn, self._next_drawing = True, 0.0
        self.folder, self.log_every, self.unlogged = folder, log_every, unlogged
        self.utilisation, self.ranks = utilisation, ranks
        if utilisation is not None:
            info(utilisation.describe(unit.removesuffix("s")))
        self._truncate_log(step)
        self._log = (folder / LOG_FILE).open("a", encoding="utf-8")
        self._since = time.monotonic()
        self._progress = Progress("Training", lines=False)

    def __enter__(self) -> "Reporter":
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)
        self._log.close()
        if not self._is_drawn:
            draw_curves(self.folder / LOG_FILE, self.folder / CURVES_FILE)

    def step(self, result: StepResult, status: RunStatus) -> None:
        """Report an update."""
        step, epoch, seconds = status.step, status.epoch, status.seconds
        now = time.monotonic()
        sums = self.unlogged
        sums.seconds += now - self._since
        self._since = now
        sums.steps += 1
        sums.tokens += result.target_tokens
        sums.loss += result.loss * result.target_tokens
        sums.norm += result.gradient_norm
        for name, mean in result.auxiliary.items():
            sums.auxiliary[name] = sums.auxiliary.get(name, 0.0) + mean * result.target_tokens
        for name, counted in result.counts.items():
            sums.counts[name] = add_counts(sums.counts.get(name, []), counted)
        for task, loss in result.losses.items():
            sums.losses[task] = sums.losses.get(task, 0.0) + loss
        speed = sums.tokens / max(sums.seconds, 1e-9)
        speeds = {} if self.utilisation is None else {"utilisation": self.utilisation.fraction(speed)}
        shown = "".join(f" · MFU {value:.1%}" for value in speeds.values())
        if self.ranks > 1:
            shown = f" · {speed / self.ranks:,.0f} per process{shown}"
            speeds["target_tokens_per_second_and_process"] = speed / self.ranks
        time_left, end = _time_left(status), None if status.horizon.assumed else status.horizon.end
        self._progress.update(
            step,
            # Narrow terminals omit the last parts.
            f"step {step:,}{'' if end is None else f' of {end:,}'} · loss {result.loss:.3f}{time_left} · epoch {epoch}"
            f" · {speed:,.0f} {self._short}/s{shown}",
            end,
        )
        if step % self.log_every and not status.last:
            return
        line = {
            "step": step,
            "epoch": epoch,
            "loss": sums.loss / sums.tokens,
            "learning_rate": status.learning_rate,
            "gradient_norm": sums.norm / sums.steps,
            "target_tokens": status.tokens,
            "target_tokens_per_second": speed,
            **speeds,
            "seconds": seconds,
            **{name: value / sums.tokens for name, value in sums.auxiliary.items()},
            **({"losses": {task: loss / sums.steps for task, loss in sums.losses.items()}} if sums.losses else {}),
            **sums.counts,
        }
        self._write(line)
        if not self._progress.live:
            info(
                f"step {step} · epoch {epoch} · loss {line['loss']:.4f} · learning rate {status.learning_rate:.2e} · "
                f"{speed:,.0f} {self.unit}/s{shown}{time_left}"
            )
        sums.steps = sums.tokens = 0
        sums.seconds = sums.loss = sums.norm = 0.0
        sums.auxiliary, sums.counts, sums.losses = {}, {}, {}
        self._since = time.monotonic()

    def validation(self, validation: Validation, position: Mapping[str, Any], better: bool) -> None:
        """Report a validation in the log and on stderr, and draw the learning curve.

        position: the fields step, epoch and seconds of the line in the log. better: whether the validation is the best
        so far.
        """
        self._write({**position, **validation.log_line()})
        self._is_drawn = False
        if position["step"] % self._shown_every:
            return
        info(f"step {position['step']} · validation: {validation}{' · best so far' if better else ''}")
        for name, each in validation.sets.items():
            info(f"  {name}: {each}")
        if (started := time.monotonic()) >= self._next_drawing:
            draw_curves(self.folder / LOG_FILE, self.folder / CURVES_FILE)
            finished = time.monotonic()
            self._is_drawn, self._next_drawing = True, finished + _DRAWING_INTERVAL * (finished - started)
        self.resume_clock()

    def resume_clock(self) -> None:
        """Exclude the time since the last step from tokens per second, because it was not spent on updates."""
        self._since = time.monotonic()

    def sync(self) -> None:
        """Sync the log to disk before a snapshot is saved that relies on it."""
        self._log.flush()
        os.fsync(self._log.fileno())

    def _write(self, line: Mapping[str, Any]) -> None:
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()

    def _truncate_log(self, step: int) -> None:
        """Remove the lines after `step`, because a resumed run writes them again."""
        path = self.folder / LOG_FILE
        if not path.exists():
            return
        kept = []
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                if line and json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except ValueError:
                break  # an incomplete line, left by a killed process
        atomic_write(path, "".join(kept))


def _time_left(status: RunStatus) -> str:
    """Return the remaining time at the horizon's pace or, before it has been fitted, at the run's mean speed.

    Nothing is returned if the end is unknown.
    """
    horizon, step = status.horizon, status.step
    if horizon.end is None or horizon.assumed:
        return ""
    pace = status.seconds / step if horizon.pace is None else horizon.pace
    return f" · {format_duration((horizon.end - step) * pace)} left"


class NullReporter(Reporter):
    """A reporter that reports nothing, for all ranks except the first."""

    def __init__(self, unlogged: PendingSums) -> None:
        self.unlogged = unlogged

    def __enter__(self) -> "NullReporter":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def step(self, *_: Any) -> None:
        """Do nothing."""

    def validation(self, validation: Validation, position: Mapping[str, Any], better: bool) -> None:
        """Do nothing."""

    def resume_clock(self) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""


_VALIDATION_PREFIX = "valid_"


@dataclass(frozen=True)
class ValidationRecord:
    """A validation in the log. step: number of updates; epoch: from 1; seconds: elapsed time of the run.

    scores: values by key, such as `loss`, `perplexity` and `bleu`.
    """

    step: int
    epoch: int
    seconds: float
    scores: Mapping[str, float]


def read_history(log: Path) -> tuple[ValidationRecord, ...]:
    """Read the validations in a run's `log.jsonl`, in order, including those made before the run was resumed."""
    records = []
    for text in log.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        scores = {
            key.removeprefix(_VALIDATION_PREFIX): float(value)
            for key, value in line.items()
            if key.startswith(_VALIDATION_PREFIX) and isinstance(value, int | float)
        }
        if scores:
            records.append(ValidationRecord(line["step"], line["epoch"], line["seconds"], scores))
    return tuple(records)
