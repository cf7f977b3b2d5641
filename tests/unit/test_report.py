"""The log of a run: means since the line before, and a last line wherever the run ends."""

import json
from pathlib import Path

import pytest

from dragoman.train.engine import StepResult
from dragoman.train.horizon import Horizon
from dragoman.train.progress import Unlogged
from dragoman.train.report import LOG_FILE, Report


def test_lines_are_means_over_their_steps_and_the_last_step_has_one(tmp_path: Path) -> None:
    results = [StepResult(loss, loss, 1.0, tokens) for loss, tokens in ((4.0, 10), (2.0, 30), (1.0, 5))]
    with Report(tmp_path, log_every=2, step=0, unlogged=Unlogged()) as report:
        for step, result in enumerate(results, start=1):
            report.step(step, 1, result, 0.1, float(step), 10 * step, Horizon(0, 0.0, 3), last=step == 3)
    lines = [json.loads(line) for line in (tmp_path / LOG_FILE).read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 3]
    assert lines[0]["loss"] == pytest.approx((4.0 * 10 + 2.0 * 30) / 40)
    assert lines[1]["loss"] == 1.0
    keys = {"step", "epoch", "loss", "learning_rate", "target_tokens", "target_tokens_per_second", "seconds"}
    assert all(keys <= line.keys() for line in lines)
