"""A step that does not fit in memory is divided, with the same gradient, and the division is recorded."""

from pathlib import Path

import numpy as np
import pytest
import torch
from engines import build_engine
from tiny_model import tiny_batch, tiny_config, tiny_model, tiny_tokenizers

from dragoman.base.errors import ResourceError
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import MicroBatch, StepResult, Update

RATE = 0.5


class Short(Seq2Seq):
    """A model on a machine whose memory holds `rows` sentence pairs. seen: the requested batch sizes."""

    rows: int
    seen: list[int]

    def forward(self, source: torch.Tensor, source_mask: torch.Tensor, inputs: torch.Tensor) -> ProjectedOutput:
        self.seen.append(len(source))
        if len(source) > self.rows:
            raise RuntimeError(
                "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
                "to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)"
            )
        return super().forward(source, source_mask, inputs)


def engine(journal: Path, rows: int, dropout: float = 0.0, clip: float | None = None) -> tuple[Engine, Short]:
    """Gradient descent, so that the change of the parameters is the gradient."""
    model = tiny_model(tiny_config(dropout=dropout), tiny_tokenizers())
    model.__class__ = Short
    assert isinstance(model, Short)
    model.rows, model.seen = rows, []
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    objective = CrossEntropy()
    decisions = Journal(journal)
    return build_engine(model, objective, optimiser, decisions, clip), model


def parameters(model: Seq2Seq) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_close(one: StepResult, other: StepResult) -> None:
    assert one.loss == pytest.approx(other.loss, rel=1e-5)
    assert one.cross_entropy == pytest.approx(other.cross_entropy, rel=1e-5)
    assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-4)
    assert one.target_tokens == other.target_tokens


@pytest.mark.parametrize(("rows", "halvings"), [(7, 0), (4, 1), (3, 2), (2, 2), (1, 3)])
def test_a_cut_step_has_the_gradient_of_the_whole(tmp_path: Path, rows: int, halvings: int) -> None:
    whole, plain = engine(tmp_path / "a", rows=100, clip=0.5)
    before = parameters(plain)
    expected = whole.step(Update([tiny_batch(7), tiny_batch(3)]), TrainingPoint(5), RATE)
    cut, model = engine(tmp_path / "b", rows=rows, clip=0.5)
    assert_close(cut.step(Update([tiny_batch(7), tiny_batch(3)]), TrainingPoint(5), RATE), expected)
    assert max(size for size in model.seen if size <= rows) <= rows
    moved = 0.0
    for name, start, one, other in zip(
        dict(model.named_parameters()), before, parameters(plain), parameters(model), strict=True
    ):
        torch.testing.assert_close(other - start, one - start, rtol=1e-3, atol=1e-6, msg=name)
        moved += float((one - start).abs().sum())
    assert moved > 0.1
    assert (Journal(tmp_path / "b").get("halvings", 5) or 0) == halvings


def test_a_cut_is_repeated_without_trying_the_whole(tmp_path: Path) -> None:
    """With dropout, because masks depend on the cut: only the same cut gives the same parameters."""
    first, short = engine(tmp_path / "journal", rows=2, dropout=0.3)
    first.step(Update([tiny_batch(7)]), TrainingPoint(5), RATE)
    assert short.seen[0] == 7
    again, roomy = engine(tmp_path / "journal", rows=100, dropout=0.3)
    again.step(Update([tiny_batch(7)]), TrainingPoint(5), RATE)
    assert max(roomy.seen) == 2
    assert all(torch.equal(one, other) for one, other in zip(parameters(short), parameters(roomy), strict=True))
    roomy.seen.clear()
    again.step(Update([tiny_batch(7)]), TrainingPoint(6), RATE)
    assert roomy.seen == [7], "another step must not be cut"


def test_a_run_with_cut_batches_cuts_every_step(tmp_path: Path) -> None:
    Journal(tmp_path / "journal").record("halvings of all", 0, 1)
    cut, model = engine(tmp_path / "journal", rows=100)
    cut.step(Update([tiny_batch(7)]), TrainingPoint(1), RATE)
    cut.step(Update([tiny_batch(4)]), TrainingPoint(2), RATE)
    assert model.seen == [3, 4, 2, 2]


def test_a_single_pair_that_does_not_fit_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stuck, model = engine(tmp_path / "journal", rows=0)
    before = parameters(model)
    with pytest.raises(ResourceError, match="single pair at step 5"):
        stuck.step(Update([tiny_batch(3)]), TrainingPoint(5), RATE)
    assert model.seen == [3, 1, 1]
    assert all(torch.equal(one, other) for one, other in zip(before, parameters(model), strict=True))
    assert not (tmp_path / "journal").exists()
    assert "step 5 does not fit in memory" in capsys.readouterr().err


def test_one_of_several_ranks_does_not_cut_alone(tmp_path: Path) -> None:
    """The other ranks would wait for the additional parts."""
    short, model = engine(tmp_path / "journal", rows=2)
    parts = [MicroBatch(np.arange(3), (0,))]
    with pytest.raises(ResourceError, match=r"step 5. A single process of a distributed run cannot.*train.accumulate"):
        short.step(Update([tiny_batch(3)], parts, tokens={"": 50}), TrainingPoint(5), RATE)
    assert model.seen == [3]


def test_the_allocators_own_error_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = engine(tmp_path / "a", rows=100)
    expected = whole.step(Update([tiny_batch(4)]), TrainingPoint(5), RATE)
    cut, model = engine(tmp_path / "b", rows=100)
    forward = type(model).forward

    def greedy(self: Short, source: torch.Tensor, source_mask: torch.Tensor, inputs: torch.Tensor) -> ProjectedOutput:
        if len(source) > 2:
            torch.empty(2**55, dtype=torch.uint8)
        return forward(self, source, source_mask, inputs)

    monkeypatch.setattr(Short, "forward", greedy)
    assert_close(cut.step(Update([tiny_batch(4)]), TrainingPoint(5), RATE), expected)


def test_other_errors_are_not_treated_as_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, _ = engine(tmp_path / "journal", rows=100)

    def fail(*_: object) -> ProjectedOutput:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(Short, "forward", fail)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        broken.step(Update([tiny_batch(4)]), TrainingPoint(5), RATE)
