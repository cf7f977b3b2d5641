"""Batches for a GPU are in page-locked memory, and the results of an update are read only at its end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engines import build_engine

from dragoman.data.batches.batch import Batch, _flat_positions, collate
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan
from dragoman.data.dataset import Sentences
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import Update

CPU = torch.device("cpu")


class Stored:
    """A corpus of two pairs."""

    def take(self, rows: Sequence[int]) -> tuple[Sentences, Sentences]:
        sides = [np.array([4, 5, 6], np.int32), np.array([7, 8], np.int32)]
        chosen = [sides[row] for row in rows]
        both = Sentences(np.concatenate(chosen), np.array([len(each) for each in chosen]))
        return both, both


@pytest.mark.parametrize("pin", [False, True])
def test_a_loader_pins_memory_on_request(monkeypatch: pytest.MonkeyPatch, pin: bool) -> None:
    pinned: list[torch.Tensor] = []

    def record(tensor: torch.Tensor) -> torch.Tensor:
        pinned.append(tensor)
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", record)
    plan = BatchPlan([np.array([0, 1]), np.array([1])], (0.0, 0.0))
    batches = list(Loader(Stored(), plan, pin=pin))  # type: ignore[arg-type]
    assert len(batches) == 2
    names = ("inputs", "labels", "target_mask", "source", "source_mask")
    expected = [getattr(batch, name) for batch in batches for name in names] if pin else []
    assert [id(tensor) for tensor in pinned] == [id(tensor) for tensor in expected]


def test_the_loss_is_read_after_the_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a number on a GPU synchronises, so none may be read before the optimiser was launched."""
    stack = {"layers": 1, "heads": 2, "feedforward": 24}
    settings = {"preset": None, "width": 16, "encoder": stack, "decoder": stack}
    model = ModelConfig.model_validate(settings).build(30, 30)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    decisions = Journal(tmp_path / "decisions.jsonl")
    engine = build_engine(model, CrossEntropy(), optimiser, decisions, 1.0)
    events: list[str] = []
    result_of, step_of = engine._build_result, optimiser.step

    def result(*arguments: Any, **named: Any) -> Any:
        events.append("read")
        return result_of(*arguments, **named)

    def step(*arguments: Any) -> Any:
        events.append("update")
        return step_of(*arguments)

    monkeypatch.setattr(engine, "_build_result", result)
    monkeypatch.setattr(optimiser, "step", step)
    pairs: Batch = collate([[5, 6], [7]], [[8], [9, 10]], range(2))
    assert engine.step(Update([pairs, pairs]), TrainingPoint(1), 0.1).target_tokens == 10
    assert events == ["update", "read"]


def test_positions_of_target_tokens_are_found_without_counting_them() -> None:
    torch.manual_seed(1)
    for share in (0.0, 0.3, 1.0):
        keep = torch.rand(7, 9) < share
        assert torch.equal(_flat_positions(keep, int(keep.sum())), keep.flatten().nonzero()[:, 0])
    pairs = collate([[5, 6], [7]], [[8], [9, 10]], range(2))
    assert pairs.select_targets(pairs.labels).tolist() == [8, 2, 9, 10, 2]
