"""Validation of several tasks, and the scores that combine them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from dragoman.metrics.score import Score
from dragoman.tasks.multi_task.config import LOSS, MEAN
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Validator
from dragoman.training.validation import Validation

_CORRELATIONS = ("matthews", "pearson", "spearman")
"""Metrics from −1 to 1, which the mean multiplies by 100. All others are in percent."""


@dataclass(frozen=True)
class TaskValidator:
    """The validator of one task.

    metric: key of the task's own metric. weight: λ of the task. labelled: whether the task has labels, so that the
    mean of the tasks includes it.
    """

    validator: Validator
    metric: str
    weight: float
    labelled: bool = True


@dataclass(frozen=True)
class TasksValidator:
    """Validates a model on every task. tasks: by name."""

    tasks: Mapping[str, TaskValidator]

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on all tasks, one after another."""
        results = {name: task.validator.run(runtime) for name, task in self.tasks.items()}
        return Validation(tuple(self._combine(results)), sum(result.seconds for result in results.values()))

    def _combine(self, results: Mapping[str, Validation]) -> Sequence[Score]:
        """Return the mean of the tasks' own metrics, the scores of each task, and the weighted loss.

        The key of a task's own metric is the name of the task, which is also the prefix of its other keys. Only the
        mean, the tasks' own metrics and the weighted loss affect the choice of the checkpoint.
        """
        own = {name: results[name][task.metric] for name, task in self.tasks.items()}
        scores: list[Score] = []
        averaged = {name: score for name, score in own.items() if self.tasks[name].labelled}
        if all(score.better == "higher" for score in averaged.values()):
            values = [_in_percent(score) for score in averaged.values()]
            signature = ", ".join(f"{name}: {_describe(score)}" for name, score in averaged.items())
            scores.append(Score("mean of the tasks", fmean(values), signature, key=MEAN, better="higher"))
        for name, result in results.items():
            for score in result.scores:
                is_own = score.key == self.tasks[name].metric
                key, better = (name, score.better) if is_own else (f"{name}_{score.key}", None)
                scores.append(replace(score, key=key, name=f"{name} {score.name}", better=better))
        loss = sum(task.weight * results[name][LOSS].value for name, task in self.tasks.items())
        return [*scores, Score("weighted loss of the tasks", loss, key=LOSS, better="lower", digits=4)]


def _describe(score: Score) -> str:
    return score.name + (" × 100" if score.key in _CORRELATIONS else "")


def _in_percent(score: Score) -> float:
    return score.value * (100 if score.key in _CORRELATIONS else 1)
