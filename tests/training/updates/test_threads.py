"""Threads that divide an update: the same gradient as one thread, reproducible, and only if that is possible."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from engines import build_engine
from tiny_model import tiny_batch, tiny_config, tiny_model, tiny_tokenizers
from torch import nn

from dragoman.base.errors import ResourceError
from dragoman.models.families.family import ProjectedOutput
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.nn.mixture import ExpertsConfig
from dragoman.nn.normalisation import BatchNormConfig
from dragoman.tasks.translation.objectives.sequence_reward import SequenceReward, SequenceRewardConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.machine.threads import Threads, build_threads, one_core_for
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.objectives.r_drop import RDrop
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import StepResult, Update

CPU = torch.device("cpu")


@pytest.fixture
def two() -> Iterator[Threads]:
    threads = Threads(2, 2)
    yield threads
    threads.close()


def engine(folder: Path, threads: Threads | None, dropout: float = 0.0, model: Seq2Seq | None = None) -> Engine:
    """Gradient descent, so that the change of the parameters is the gradient."""
    model = model or tiny_model(tiny_config(dropout=dropout), tiny_tokenizers())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    decisions = Journal(folder / "decisions.jsonl")
    objective = CrossEntropy()
    return build_engine(model, objective, optimiser, decisions, 0.5, threads=threads)


def after(engine: Engine, steps: int, *sizes: int) -> tuple[torch.Tensor, list[StepResult]]:
    results = [
        engine.step(Update([tiny_batch(rows) for rows in sizes]), TrainingPoint(step), 0.5)
        for step in range(1, steps + 1)
    ]
    return torch.cat([parameter.detach().flatten() for parameter in engine.model.parameters()]), results


@pytest.mark.parametrize("sizes", [(7,), (6, 5), (1,), (1, 4)])
def test_shares_add_up_to_the_whole(tmp_path: Path, two: Threads, sizes: tuple[int, ...]) -> None:
    start = torch.cat([p.detach().flatten() for p in engine(tmp_path / "0", None).model.parameters()])
    expected, (told,) = after(engine(tmp_path / "a", None), 1, *sizes)
    found, (shared,) = after(engine(tmp_path / "b", two), 1, *sizes)
    assert float((expected - start).norm()) > 0.01
    torch.testing.assert_close(found - start, expected - start, rtol=1e-3, atol=1e-6)
    assert shared.loss == pytest.approx(told.loss, rel=1e-5)
    assert shared.gradient_norm == pytest.approx(told.gradient_norm, rel=1e-4)
    assert shared.target_tokens == told.target_tokens


def test_draws_do_not_depend_on_which_thread_is_first(tmp_path: Path, two: Threads) -> None:
    runs = [after(engine(tmp_path / str(run), two, dropout=0.3), 4, 7, 6)[0] for run in range(3)]
    assert torch.equal(runs[0], runs[1])
    assert torch.equal(runs[0], runs[2])
    without, _ = after(engine(tmp_path / "without", two), 4, 7, 6)
    assert not torch.allclose(runs[0], without), "nothing was dropped"


def test_one_after_another_is_the_same(tmp_path: Path, two: Threads) -> None:
    """As is done during profiling."""
    expected, _ = after(engine(tmp_path / "a", two, dropout=0.3), 3, 7)
    watched = engine(tmp_path / "b", two, dropout=0.3)
    watched.profile.active = True
    found, _ = after(watched, 3, 7)
    assert torch.equal(found, expected)


class Short(Seq2Seq):
    """A model on a machine whose memory holds two sentence pairs at a time."""

    def forward(self, source: torch.Tensor, source_mask: torch.Tensor, inputs: torch.Tensor) -> ProjectedOutput:
        if len(source) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.")
        return super().forward(source, source_mask, inputs)


def test_threads_without_memory_get_smaller_shares(tmp_path: Path, two: Threads) -> None:
    expected, _ = after(engine(tmp_path / "a", None), 1, 7)
    model = tiny_model(tiny_config(dropout=0.0), tiny_tokenizers())
    model.__class__ = Short
    found, _ = after(engine(tmp_path / "b", two, model=model), 1, 7)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def test_a_pair_that_never_fits_is_an_error(tmp_path: Path, two: Threads) -> None:
    class Empty(Short):
        def forward(self, source: torch.Tensor, source_mask: torch.Tensor, inputs: torch.Tensor) -> ProjectedOutput:
            raise MemoryError

    model = tiny_model(tiny_config(dropout=0.0), tiny_tokenizers())
    model.__class__ = Empty
    with pytest.raises(ResourceError, match="single pair at step 1"):
        after(engine(tmp_path, two, model=model), 1, 7)


def count(model: nn.Module, objective: CrossEntropy | RDrop, device: str, cores: int, tokens: int) -> int:
    threads = build_threads(model, objective.divisible, torch.device(device), cores, tokens)
    if threads is None:
        return 1
    threads.close()
    return threads.count


def test_the_number_of_threads() -> None:
    model, plain = tiny_model(tiny_config(), tiny_tokenizers()), CrossEntropy()
    for threads, tokens, expected in [
        (1, 4096, 1),
        (2, 4096, 2),
        (2, 256, 1),
        (6, 1024, 3),
        (8, 1024, 4),
        (3, 512, 1),
    ]:
        assert count(model, plain, "cpu", threads, tokens) == expected, (threads, tokens)
    assert count(model, plain, "cuda", 2, 4096) == 1
    assert count(model, RDrop(plain, 5.0), "cpu", 2, 4096) == 2


def test_indivisible_models_and_losses_get_no_threads() -> None:
    tokenizers, plain = tiny_tokenizers(), CrossEntropy()
    normed = tiny_model(tiny_config(encoder={"normalisation": BatchNormConfig().model_dump()}), tokenizers)
    assert count(normed, plain, "cpu", 2, 4096) == 1
    mixed = tiny_model(tiny_config(encoder={"experts": ExpertsConfig().model_dump()}), tokenizers)
    assert count(mixed, plain, "cpu", 2, 4096) == 1
    rewarded = SequenceReward(CrossEntropy(), SequenceRewardConfig(), tokenizers.target)
    assert count(tiny_model(tiny_config(), tokenizers), rewarded, "cpu", 2, 4096) == 1


def test_short_operations_use_one_core_and_give_the_others_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_core_for(1000):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with one_core_for(10**9):
            assert torch.get_num_threads() == 2
        with pytest.raises(KeyError), one_core_for(1000):
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
