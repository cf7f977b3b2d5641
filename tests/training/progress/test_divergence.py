"""The detection of divergence."""

import json
from dataclasses import asdict

import pytest

from dragoman.base.errors import DivergenceError
from dragoman.training.progress.progress import DivergenceWatch
from dragoman.training.updates.update import StepResult

NAN, INFINITE = float("nan"), float("inf")


def result(loss: float, norm: float = 1.0) -> StepResult:
    return StepResult(loss, loss, norm, 100)


@pytest.mark.parametrize(("loss", "norm"), [(NAN, 1.0), (INFINITE, 1.0), (2.0, NAN), (2.0, INFINITE)])
def test_nan_and_infinity_are_detected_at_once(loss: float, norm: float) -> None:
    watch = DivergenceWatch()
    watch.check(1, result(2.0))
    with pytest.raises(DivergenceError, match="diverged at step 2") as error:
        watch.check(2, result(loss, norm))
    assert "train.schedule.peak" in str(error.value)


def test_a_loss_that_rises_by_more_than_three_nats_is_detected() -> None:
    watch = DivergenceWatch()
    for step in range(1, 300):
        watch.check(step, result(9.0 - step / 50))
    lowest = watch.lowest
    while watch.mean is None or watch.mean + 0.1 < lowest + 3:
        watch.check(300, result(8.0))
    for _ in range(2):
        watch.check(300, result(lowest + 3.01))
    with pytest.raises(DivergenceError, match="rose from"):
        watch.check(300, result(50.0))


def test_one_enormous_loss_is_detected_at_once() -> None:
    watch = DivergenceWatch()
    watch.check(1, result(6.0))
    with pytest.raises(DivergenceError, match="diverged at step 2"):
        watch.check(2, result(1e6))


def test_noise_a_bad_start_and_a_small_rise_are_accepted() -> None:
    watch = DivergenceWatch()
    for step in range(1, 2000):
        falling = 12 / step**0.5
        noise = 4.0 if step % 50 == 0 else -0.5 * (step % 2)
        watch.check(step, result(3.0 + falling + noise))
    for step in range(2000, 3000):
        watch.check(step, result(5.0))


def test_the_detector_survives_json() -> None:
    one = DivergenceWatch()
    for step in range(1, 50):
        one.check(step, result(1 / 3 + 1 / step))
    other = DivergenceWatch(**json.loads(json.dumps(asdict(one))))
    for step in range(50, 60):
        one.check(step, result(2.0))
        other.check(step, result(2.0))
    assert one == other
