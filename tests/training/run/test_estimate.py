"""Batches that will not fit the memory are divided before a run starts, and at least as much after it is resumed."""

from pathlib import Path

import numpy as np
import pytest
from tiny_model import tiny_config

from dragoman.base.errors import ResourceError
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.job import TranslationJob
from dragoman.training.machine.journal import Journal
from dragoman.training.ranks.ranks import Ranks
from dragoman.training.run.memory import check_memory

MEBIBYTE = 2**20
CORPUS = {"source": "a", "target": "b"}


class _Job(TranslationJob):
    """A job with short pairs' lengths, without data."""

    lengths = np.full((2000, 2), 10, np.int32)

    def __init__(self, run: TranslationRun) -> None:
        self.run = run


def cut(folder: Path, monkeypatch: pytest.MonkeyPatch, mebibytes: float) -> int:
    """Return how often batches are halved with this much free memory."""
    model = tiny_config()
    config = TranslationRun.model_validate(
        {"data": {"train": CORPUS, "valid": CORPUS, "batch": {"tokens": 20_000}}, "model": model, "out": "run"}
    )
    monkeypatch.setattr("dragoman.training.run.memory.available_memory", lambda: int(mebibytes * MEBIBYTE))
    decisions = Journal(folder / "journal")
    job = _Job(config)
    check_memory(job, model.build(280, 280), decisions, Ranks("cpu"))
    made = decisions.get("halvings of all", 0)
    assert made == Journal(folder / "journal").get("halvings of all", 0)
    return int(made)


def test_less_memory_makes_more_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [cut(tmp_path / str(size), monkeypatch, size) for size in (1000, 40, 20, 10)]
    assert found[0] == 0
    assert found == sorted(found)
    assert found[-1] > found[1] > 0


def test_a_resumed_run_with_less_memory_is_cut_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cut(tmp_path, monkeypatch, 40)
    assert "parts, because" in capsys.readouterr().err
    now = cut(tmp_path, monkeypatch, 10)
    assert now > before > 0
    assert f"in {2**now} parts instead of {2**before}: sums round differently" in capsys.readouterr().err


def test_a_resumed_run_with_more_memory_keeps_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = cut(tmp_path, monkeypatch, 40)
    capsys.readouterr()
    assert cut(tmp_path, monkeypatch, 1000) == before > 0
    messages = capsys.readouterr().err
    assert f"in {2**before} parts, as before the run was resumed" in messages
    assert "bit-identical" not in messages


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceError, match=r"the model needs about 0\.0 GiB.*choose a smaller model.preset"):
        cut(tmp_path, monkeypatch, 0.01)
