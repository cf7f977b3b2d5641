"""`LearningState`: whether the neural model of a run was still improving when its training ended."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dragoman.base.files import run_of
from dragoman.metrics.registry import METRICS
from dragoman.training.progress.report import LOG_FILE, read_history

_LIMITS = ("max_steps", "max_epochs", "max_minutes")


@dataclass(frozen=True)
class LearningState:
    """The validations of a run. limits: the limits that ended it, such as `train.max_steps=500`.

    improving: whether the last of several validations was the best one; None if the folder has no log of them.
    """

    limits: tuple[str, ...]
    validations: int
    improving: bool | None

    @classmethod
    def of(cls, folder: Path, config: Mapping[str, Any]) -> Self:
        """Read the log of the run that wrote a model folder. config: the settings of the run."""
        section = config.get("train")
        train: Mapping[str, Any] = section if isinstance(section, Mapping) else {}
        limits = tuple(f"train.{name}={train[name]:g}" for name in _LIMITS if train.get(name) is not None)
        key = str(train.get("metric", "bleu"))
        try:
            scores = [each.scores[key] for each in read_history(run_of(folder) / LOG_FILE)]
        except (OSError, KeyError, json.JSONDecodeError):  # a copied model folder has no log
            return cls(limits, 0, None)
        metric = METRICS.get(key)
        sign = -1 if key == "loss" or (metric is not None and metric.better == "lower") else 1
        merits = [sign * score for score in scores]
        return cls(limits, len(merits), merits[-1] > max(merits[:-1]) if len(merits) > 1 else None)

    def advice(self, is_poor: bool) -> str | None:
        """Return the advice to train for longer if the model was still improving or, without a log, if it is poor."""
        if not self.limits or not (is_poor if self.improving is None else self.improving):
            return None
        reason = f"the last of {self.validations} validations was the best one, when " if self.improving else ""
        ended = f"{' and '.join(self.limits)} ended the training"
        return f"train for longer: {reason}{ended} (dragoman train --resume, with a higher limit)"
