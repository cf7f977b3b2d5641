"""How a time limit is shared among preparation, updates, and the validation and measurement of the final model."""

import pytest

from dragoman.training.config import LoopConfig
from dragoman.training.progress.time_budget import TimeBudget


def test_updates_get_what_preparation_and_the_end_leave() -> None:
    budget = TimeBudget(limit=300, prepared=60, measuring=15, validations=2, validation=30)
    assert budget.reserved == 75
    assert budget.for_updates == 165
    assert budget.of_updates(LoopConfig(max_minutes=5)).max_minutes == 165 / 60
    assert budget.leaves_validation(135) and not budget.leaves_validation(136)
    assert budget.problem() is None


def test_a_validation_is_measured_before_it_is_too_late() -> None:
    unknown = TimeBudget(limit=300, prepared=60, measuring=0, validations=1)
    assert unknown.for_updates == 300 - 60 - 30
    assert not unknown.requires_probe(14) and unknown.requires_probe(15)
    assert not TimeBudget(300, 60, 0, 1, validation=20.0).requires_probe(200)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (TimeBudget(300, 180, 0, 1), "the preparation took 3 minutes: 1.5 of train.max_minutes=5 are left"),
        (
            TimeBudget(300, 10, 0, 2, 100.0),
            "takes 1.7 minutes, and up to 2 follow the last update: 1.5 of train",
        ),
        (TimeBudget(300, 400, 0, 1), "the preparation took 6.7 minutes: 0 of train.max_minutes=5 are left"),
    ],
)
def test_little_time_for_updates_is_reported(budget: TimeBudget, message: str) -> None:
    assert message in str(budget.problem())
