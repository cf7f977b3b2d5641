"""Logs that are being written, and curves that are thinned without losing their extremes."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dragoman.figures.curves import Curve, Curves, thinned_positions
from dragoman.training.progress.run_log import RunLog, series
from dragoman.training.progress.training_curves import compared_curves, training_curves


def line(step: int, **values: float) -> str:
    return json.dumps({"step": step, **values}) + "\n"


def test_a_half_written_last_line_is_read_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = line(2, loss=3.5)
    path.write_text(line(1, loss=4.0) + whole[:12])
    log = RunLog(path)
    assert [record["step"] for record in log.records] == [1]
    assert not log.update()
    with path.open("a") as file:
        file.write(whole[12:])
    assert log.update()
    assert log.records == [{"step": 1, "loss": 4.0}, {"step": 2, "loss": 3.5}]


def test_a_log_that_a_resumed_run_has_shortened_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line(1, loss=4.0) + line(2, loss=9.0))
    log = RunLog(path)
    (tmp_path / "new").write_text(line(1, loss=4.0) + line(3, loss=1.0) + line(3, valid_loss=2.0) + "[1]\nnonsense\n")
    (tmp_path / "new").replace(path)
    assert log.update()
    assert log.records == [{"step": 1, "loss": 4.0}, {"step": 3, "loss": 1.0}, {"step": 3, "valid_loss": 2.0}]


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RunLog(tmp_path / "log.jsonl")


def test_values_that_are_not_finite_are_left_out() -> None:
    steps, values = series(
        [{"step": 1, "x": float("nan")}, {"step": 2, "x": 5}, {"step": 3}, {"step": 4, "x": None}], "x"
    )
    assert (steps.tolist(), values.tolist()) == ([2.0], [5.0])


@given(arrays(np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6)), st.integers(1, 20), st.booleans())
def test_thinning_keeps_the_extremes_of_each_pixel(y: np.ndarray, pixels: int, equal: bool) -> None:
    x = np.zeros(len(y)) if equal else np.arange(len(y), dtype=np.float64)
    kept = thinned_positions(x, y, pixels)
    assert len(kept) <= 4 * pixels
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0 and kept[-1] == len(y) - 1
    span = x[-1] - x[0]
    columns = np.minimum((x - x[0]) / span * pixels if span else x * 0, pixels - 1).astype(int)
    for column in set(columns.tolist()):
        inside = y[columns == column]
        shown = y[kept][columns[kept] == column]
        assert (shown.min(), shown.max()) == (inside.min(), inside.max())


def test_a_short_curve_is_not_thinned() -> None:
    curve = Curve("a", np.arange(4.0), np.arange(4.0))
    assert curve.thinned(1) is curve


def test_a_spike_of_a_long_run_is_drawn(tmp_path: Path) -> None:
    y = np.ones(100_000)
    y[54_321] = 77.0
    records = [{"step": step, "loss": loss} for step, loss in enumerate(y.tolist())]
    figure = compared_curves({"long": records})
    started = time.process_time()
    thinned = figure.thinned(800)
    assert time.process_time() - started < 2, "a limit far above the usual 20 ms"
    assert isinstance(thinned, Curves)
    curve = thinned.panels[0].curves[0]
    assert len(curve.x) <= 3200 and curve.y.max() == 77.0 and curve.x[curve.y.argmax()] == 54_321
    (axes, *_) = figure.draw().axes
    assert axes.get_lines()[0].get_ydata().max() == 77.0


def test_the_curves_of_one_run_mark_the_best_validation() -> None:
    records = [
        {"step": step, "valid_loss": 2.0, "valid_bleu": bleu} for step, bleu in ((5, 10.0), (6, 30.0), (7, 20.0))
    ]
    (panel,) = [each for each in training_curves(records).panels if "BLEU" in each.heading]
    assert panel.best == (6.0, 30.0)
    assert panel.heading == "Validation BLEU · best 30.0 at step 6"
