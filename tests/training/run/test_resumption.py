"""A resumed run uses the new limits, and reports those that it requires."""

from typing import Any

import pytest

from dragoman.base.errors import ConfigError
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.run.resumption import apply_changes

CORPORA = {part: {"source": f"{part}.a", "target": f"{part}.b"} for part in ("train", "valid")}


def run(**train: Any) -> TranslationRun:
    return TranslationRun.model_validate({"data": CORPORA, "train": train, "out": "run"})


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_a_decay_is_not_resumed_without_a_limit(kind: str) -> None:
    """Otherwise the rate would stay at its peak."""
    stored = run(schedule={"kind": kind}, max_steps=100)
    with pytest.raises(ConfigError, match=f"cannot resume run without a limit: its {kind} schedule .* train.max_steps"):
        apply_changes(run(max_steps=None), stored)
    assert apply_changes(run(), stored).train.limits == stored.train.limits
    resumed = apply_changes(run(max_steps=None, max_epochs=3), stored)
    assert resumed.train.limits == {"max_steps": None, "max_epochs": 3, "max_minutes": None}
    assert resumed.train.schedule == stored.train.schedule


def test_a_schedule_without_an_end_is_resumed_with_patience_alone() -> None:
    stored = run(schedule={"kind": "constant"}, max_steps=100)
    resumed = apply_changes(run(max_steps=None, patience=3), stored)
    assert resumed.train.limits == run().train.limits and resumed.train.patience == 3
