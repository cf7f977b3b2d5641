"""`MixedValidator`: a model judged on the held-out examples of each of its tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dragoman.training.ranks.place import Place
from dragoman.training.task import Validator
from dragoman.training.validation import Validation


@dataclass(frozen=True)
class MixedValidator:
    """The first task's measures decide as they do alone; the others' stand behind them under their tasks' names."""

    validators: Mapping[str, Validator]

    def run(self, place: Place) -> Validation:
        """Judge the model on all tasks."""
        first, *others = self.validators.items()
        validation = first[1].run(place)
        measures = list(validation.measures)
        seconds = validation.seconds
        for name, validator in others:
            found = validator.run(place)
            seconds += found.seconds
            measures += [
                replace(measure, key=f"{name}_{measure.key}", name=f"{name} {measure.name}", better=None)
                for measure in found.measures
            ]
        return replace(validation, measures=tuple(measures), seconds=seconds)
