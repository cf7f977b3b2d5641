"""Validation of several tasks, and the measures that combine them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from dragoman.tasks.labelled_tasks.config import LOSS, MEAN
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Validator
from dragoman.training.validation import Measure, Validation

_CORRELATIONS = ("matthews", "pearson", "spearman")
"""Measures from −1 to 1, which the mean multiplies by 100. All others are in percent."""


@dataclass(frozen=True)
class TaskValidator:
    """The validator of one task.

    metric: key of the task's own measure. weight: λ of the task. labelled: whether the task has labels, so that the
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

    def _combine(self, results: Mapping[str, Validation]) -> Sequence[Measure]:
        """Return the mean of the tasks' own measures, the measures of each task, and the weighted loss.

        The key of a task's own measure is the name of the task, which is also the beginning of its other keys. Only the
        mean, the tasks' own measures and the weighted loss affect the choice of the checkpoint.
        """
        own = {name: results[name][task.metric] for name, task in self.tasks.items()}
        measures: list[Measure] = []
        averaged = {name: measure for name, measure in own.items() if self.tasks[name].labelled}
        if all(measure.better == "higher" for measure in averaged.values()):
            values = [_in_percent(measure) for measure in averaged.values()]
            signature = ", ".join(f"{name}: {_describe(measure)}" for name, measure in averaged.items())
            measures.append(Measure(MEAN, "mean of the tasks", fmean(values), "higher", signature))
        for name, result in results.items():
            for measure in result.measures:
                is_own = measure.key == self.tasks[name].metric
                key, better = (name, measure.better) if is_own else (f"{name}_{measure.key}", None)
                measures.append(replace(measure, key=key, name=f"{name} {measure.name}", better=better))
        loss = sum(task.weight * results[name][LOSS].value for name, task in self.tasks.items())
        return [*measures, Measure(LOSS, "weighted loss of the tasks", loss, "lower", digits=4)]


def _describe(measure: Measure) -> str:
    return measure.name + (" × 100" if measure.key in _CORRELATIONS else "")


def _in_percent(measure: Measure) -> float:
    return measure.value * (100 if measure.key in _CORRELATIONS else 1)
