"""One optimiser step: gradients that do not depend on the division of batches, clipping, seeding, devices."""

from pathlib import Path

import pytest
import torch
from engines import build_engine
from torch import nn

from dragoman.base.errors import ConfigError
from dragoman.base.machine.device import choose_device
from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import Update

SIZE, CPU = 30, torch.device("cpu")
SOURCES = [[5 + row, *range(6, 7 + row)] for row in range(8)]
TARGETS = [[9, *range(20, 20 + (3 * row) % 7)] for row in range(8)]


def batch(first: int, last: int) -> Batch:
    return collate(SOURCES[first:last], TARGETS[first:last], range(first, last))


def engine(folder: Path, dropout: float = 0.0, clip: float | None = None, seed: int = 1) -> Engine:
    """Gradient descent, so that the change of the parameters is the gradient."""
    stack = {"layers": 1, "heads": 2, "feedforward": 24}
    torch.manual_seed(4)
    model = ModelConfig.model_validate(
        {"preset": None, "width": 16, "encoder": stack, "decoder": stack, "dropout": dropout}
    ).build(
        SIZE,
        SIZE,
    )
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    decisions = Journal(folder / "decisions.jsonl")
    return build_engine(model, CrossEntropy(), optimiser, decisions, clip, seed)


def values(model: Seq2Seq) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def moved(engine: Engine, step: int, batches: list[Batch]) -> torch.Tensor:
    """Return the change of the parameters in a step with rate 1: the clipped gradient."""
    before = values(engine.model)
    engine.step(Update(batches), TrainingPoint(step), 1.0)
    return before - values(engine.model)


@pytest.mark.parametrize("size", [4, 1, 3])
def test_accumulated_parts_have_the_gradient_of_the_whole(tmp_path: Path, size: int) -> None:
    whole, parts = engine(tmp_path), engine(tmp_path)
    cut = [batch(first, min(first + size, 8)) for first in range(0, 8, size)]
    assert len({part.target_tokens for part in cut}) > 1, "means of means would pass"
    expected, found = moved(whole, 1, [batch(0, 8)]), moved(parts, 1, cut)
    assert float(expected.norm()) > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)


def test_the_result_is_the_mean_over_tokens_and_so_is_the_gradient(tmp_path: Path) -> None:
    subject = engine(tmp_path)
    model, whole = subject.model, batch(0, 8)
    logits = model(whole.source, whole.source_mask, whole.inputs).logits()[whole.target_mask]
    labels = whole.labels[whole.target_mask]
    mean = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    gradient = torch.cat([each.flatten() for each in torch.autograd.grad(mean, list(model.parameters()))])
    result = subject.step(Update([batch(0, 5), batch(5, 8)]), TrainingPoint(1), 0.0)
    assert result.loss == pytest.approx(float(mean.detach()), rel=1e-5)
    assert result.cross_entropy == pytest.approx(float(nn.functional.cross_entropy(logits, labels).detach()), rel=1e-5)
    assert result.gradient_norm == pytest.approx(float(gradient.norm()), rel=1e-4)
    assert result.target_tokens == sum(len(target) + 1 for target in TARGETS)


@pytest.mark.parametrize("share", [0.5, 2.0])
def test_clipping_equals_torch(tmp_path: Path, share: float) -> None:
    free = moved(engine(tmp_path), 1, [batch(0, 8)])
    limit = float(free.norm()) * share
    clipped = moved(engine(tmp_path, clip=limit), 1, [batch(0, 8)])
    leaf = nn.Parameter(torch.zeros_like(free))
    leaf.grad = free.clone()
    nn.utils.clip_grad_norm_([leaf], limit)
    torch.testing.assert_close(clipped, leaf.grad, rtol=1e-3, atol=1e-6)
    assert float(clipped.norm()) == pytest.approx(float(free.norm()) * min(share, 1.0), rel=1e-3)


def test_equal_seeds_and_steps_give_equal_results(tmp_path: Path) -> None:
    def result(before: int, seed: int = 1, step: int = 7) -> torch.Tensor:
        subject = engine(tmp_path, dropout=0.3, seed=seed)
        for other in range(before):
            subject.step(Update([batch(0, 3)]), TrainingPoint(other), 0.0)
            torch.rand(5)
        return moved(subject, step, [batch(0, 4), batch(0, 4)])

    expected = result(0)
    assert torch.equal(result(2), expected)
    assert not torch.equal(result(0, seed=2), expected)
    assert not torch.equal(result(0, step=8), expected)


def test_parts_of_a_step_have_different_masks(tmp_path: Path) -> None:
    twice = moved(engine(tmp_path, dropout=0.3), 7, [batch(0, 4), batch(0, 4)])
    once = moved(engine(tmp_path, dropout=0.3), 7, [batch(0, 4)])
    assert not torch.allclose(twice, once, rtol=1e-2)


def test_unavailable_devices_are_config_errors() -> None:
    assert choose_device("cpu") == CPU
    for name in ("cuda:99", "nonsense", "meta"):
        with pytest.raises(ConfigError, match=f"device '{name}'.*cpu"):
            choose_device(name)
