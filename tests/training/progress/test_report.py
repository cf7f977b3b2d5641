"""The log of a run: means since the previous line, and a last line at the end of the run."""

import json
from pathlib import Path

import pytest

from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import PendingSums, RunProgress
from dragoman.training.progress.report import LOG_FILE, Reporter, RunStatus
from dragoman.training.updates.update import StepResult


def test_lines_are_means_over_their_steps_and_the_last_step_has_one(tmp_path: Path) -> None:
    results = [StepResult(loss, loss, 1.0, tokens) for loss, tokens in ((4.0, 10), (2.0, 30), (1.0, 5))]
    with Reporter(tmp_path, log_every=2, step=0, unlogged=PendingSums()) as report:
        for step, result in enumerate(results, start=1):
            report.step(result, RunStatus(step, 1, 0.1, float(step), 10 * step, Horizon(0, 0.0, 3), last=step == 3))
    lines = [json.loads(line) for line in (tmp_path / LOG_FILE).read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 3]
    assert lines[0]["loss"] == pytest.approx((4.0 * 10 + 2.0 * 30) / 40)
    assert lines[1]["loss"] == 1.0
    keys = {"step", "epoch", "loss", "learning_rate", "target_tokens", "target_tokens_per_second", "seconds"}
    assert all(keys <= line.keys() for line in lines)


def test_auxiliary_losses_are_averaged_by_tokens_and_counters_are_summed(tmp_path: Path) -> None:
    told: list[tuple[int, dict[str, float], dict[str, list[float]]]] = [
        (10, {"head_diversity": 4.0}, {"experts": [3, 0]}),
        (30, {"head_diversity": 2.0}, {"experts": [1, 2, 5]}),
        (5, {"head_diversity": 7.0}, {"experts": [1]}),
    ]
    unlogged = PendingSums()
    for step, (tokens, auxiliary, counts) in enumerate(told, start=1):
        with Reporter(tmp_path, log_every=2, step=step - 1, unlogged=unlogged) as report:
            result = StepResult(1.0, 1.0, 1.0, tokens, auxiliary, counts)
            report.step(result, RunStatus(step, 1, 0.1, 1.0, tokens, Horizon(0, 0.0, 3), last=step == 3))
        progress = RunProgress(Horizon(0, 0.0, 3), unlogged=unlogged)
        unlogged = RunProgress.from_json(json.loads(json.dumps(progress.to_json()))).unlogged  # as in a resumed run
    lines = [json.loads(line) for line in (tmp_path / LOG_FILE).read_text().splitlines()]
    assert [line["head_diversity"] for line in lines] == [pytest.approx((4.0 * 10 + 2.0 * 30) / 40), 7.0]
    assert [line["experts"] for line in lines] == [[4, 2, 5], [1]]


def test_the_remaining_time_uses_the_fitted_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It does not use the mean speed of a run that was slow for a while."""
    fitted = Horizon(50, 0.5, 90, pace=1.0, seconds=500.0)
    with Reporter(tmp_path, log_every=1, step=59, unlogged=PendingSums()) as report:
        report.step(StepResult(4.0, 4.0, 1.0, 10), RunStatus(60, 1, 0.1, 510.0, 600, fitted))
    assert "0:00:30 left" in capsys.readouterr().err


def test_no_remaining_time_is_reported_before_the_speed_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The length of a run that is limited only by time is not known in its first updates."""
    config = LoopConfig(max_minutes=3)
    horizon = Horizon.initial(config, 17)
    with Reporter(tmp_path, log_every=1, step=0, unlogged=PendingSums()) as report:
        report.step(StepResult(4.0, 4.0, 1.0, 10), RunStatus(1, 1, 0.1, 2.0, 10, horizon))
    shown = capsys.readouterr().err
    assert "step 1 " in shown and "left" not in shown
    assert not horizon.refit(config, 17, 5, 10.0, Journal(tmp_path / "journal")).assumed
