"""Gradients above `train.clip` are scaled to that norm; smaller gradients are not changed."""

from pathlib import Path

import pytest
import torch
from engines import build_engine
from tiny_model import tiny_batch, tiny_config, tiny_model, tiny_tokenizers

from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import Update


def move(folder: Path, clip: float | None, scale: float = 1.0) -> tuple[torch.Tensor, float]:
    """Return the change of all parameters after a step of gradient descent with rate 1, and the reported norm.

    scale: factor on the output layer, which makes the gradient large.
    """
    model = tiny_model(tiny_config(dropout=0.0), tiny_tokenizers())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).detach().double()
    engine = build_engine(model, CrossEntropy(), optimiser, Journal(folder / "journal"), clip)
    result = engine.step(Update([tiny_batch(4)]), TrainingPoint(1), 1.0)
    after = torch.nn.utils.parameters_to_vector(model.parameters()).detach().double()
    return after - before, result.gradient_norm


def test_a_gradient_above_the_limit_is_scaled_to_it(tmp_path: Path) -> None:
    free, norm = move(tmp_path, None)
    assert float(free.norm()) == pytest.approx(norm, rel=1e-4)
    for limit in (norm / 2, norm / 100):
        clipped, reported = move(tmp_path, limit)
        assert reported == pytest.approx(norm, rel=1e-4), "the norm before clipping is reported"
        assert float(clipped.norm()) == pytest.approx(limit, rel=1e-3)
        assert float(torch.cosine_similarity(clipped, free, 0)) == pytest.approx(1, abs=1e-5), "the direction is kept"


def test_a_gradient_below_the_limit_is_not_changed(tmp_path: Path) -> None:
    free, norm = move(tmp_path, None)
    same, reported = move(tmp_path, 2 * norm)
    assert reported == pytest.approx(norm)
    assert torch.equal(free, same)


def test_an_exploding_gradient_moves_the_parameters_by_the_limit(tmp_path: Path) -> None:
    free, norm = move(tmp_path, None, scale=6.0)
    assert norm > 10 * move(tmp_path, None)[1]
    clipped, _ = move(tmp_path, 1.0, scale=6.0)
    assert float(free.norm()) > 10 * float(clipped.norm())
    assert float(clipped.norm()) == pytest.approx(1.0, rel=1e-3)
