"""The penalty on similar heads: its formula, its part in the loss, and its effect."""

from typing import Any

import pytest
import torch
from closeness import assert_all_close
from random_parameters import perturb
from torch import Tensor

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.heads import head_diversity
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention
from dragoman.training.objectives.cross_entropy import CrossEntropy

SIZE = 12


def model(self_attention: float, source_attention: float, **settings: Any) -> Seq2Seq:
    stack = {"layers": 1, "heads": 3, "feedforward": 16, "attention": {"diversity": self_attention}}
    decoder = {**stack, "cross_attention": {"diversity": source_attention, **settings}}
    torch.manual_seed(5)
    config = {"preset": None, "width": 12, "dropout": 0.0, "encoder": stack, "decoder": decoder}
    built = ModelConfig.model_validate(config).build(SIZE, SIZE)
    return perturb(built).train()


def batch() -> Batch:
    sources = [[5, 7, 9], [6, 4, 4, 8, 10], [11], [7, 5, 6, 4, 8, 9]]
    targets = [[8, 9], [4], [5, 6, 7, 8, 9], [10, 11, 4]]
    return collate(sources, targets, [0, 1, 2, 3])


def overlap(weights: Tensor) -> float:
    """Return the mean of α_s · α_j over pairs of different heads, one query at a time."""
    total = count = 0.0
    for row in weights.transpose(1, 2).flatten(0, 1):
        for one in range(len(row)):
            for two in range(len(row)):
                if one != two:
                    total, count = total + float(row[one] @ row[two]), count + 1
    return total / count


def test_the_penalty_is_its_formula() -> None:
    torch.manual_seed(1)
    weights = torch.rand(2, 3, 4, 5).softmax(-1)
    keep = torch.tensor([[True, True, False, True], [True, False, False, False]])
    expected = 0.0
    for row, place in keep.nonzero().tolist():
        for one in range(3):
            for two in range(3):
                product = float((weights[row, one, place] * weights[row, two, place]).sum())
                expected += (product - (one == two)) ** 2
    total, count = head_diversity(weights, keep)
    assert float(total) == pytest.approx(expected, rel=1e-5)
    assert float(count) == 4
    assert float(head_diversity(weights, None)[1]) == 8


def test_heads_that_attend_to_different_positions_have_no_penalty() -> None:
    weights = torch.eye(3, 5)[None, :, None, :]
    assert float(head_diversity(weights, None)[0]) == 0
    assert float(head_diversity(weights[:, [0, 0, 0]], None)[0]) == 6


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_it_reaches_the_loss_with_its_weight(kind: str) -> None:
    """Compared with the recorded weights; for hard attention with those before sampling, so it attends everywhere."""
    looks = {"gradient": "reinforce", "entropy_weight": 0.0, "baseline_weight": 0.0} if kind == "hard" else {}
    objective, pairs = CrossEntropy(), batch()
    losses = []
    for weight in (0.0, 0.7):
        torch.manual_seed(2)
        losses.append(objective(model(0.0, weight, kind=kind, **looks), pairs))
    assert "head_diversity" not in losses[0].auxiliary
    mean = losses[1].auxiliary["head_diversity"]
    added = float(losses[1].total.detach() - losses[0].total.detach())
    assert added == pytest.approx(0.7 * mean * pairs.target_tokens, rel=1e-4)
    if kind == "soft":
        built = model(0.0, 0.7)
        with recording() as recorded:
            built(pairs.source, pairs.source_mask, pairs.inputs)
        weights = recorded[built.decoder.layers[0].cross_attention][0]
        total, count = head_diversity(weights, pairs.target_mask)
        assert mean == pytest.approx(float(total / count), rel=1e-5)


def test_parts_of_a_batch_give_the_gradient_of_the_whole() -> None:
    """Padding has no effect, also if parts differ in their source and target lengths."""
    built, objective, pairs = model(0.5, 0.5), CrossEntropy(), batch()
    whole = torch.autograd.grad(objective(built, pairs).total, list(built.parameters()))
    for part in pairs.split(2):
        objective(built, part).total.backward()
    parts = [parameter.grad for parameter in built.parameters() if parameter.grad is not None]
    assert_all_close(parts, whole)


@pytest.mark.slow
def test_it_makes_heads_attend_to_different_positions() -> None:
    pairs = batch()
    after = {}
    for weight in (0.0, 1.0):
        built = model(0.0, weight)
        attention = built.decoder.layers[0].cross_attention
        assert isinstance(attention, SoftAttention)
        objective, optimiser = CrossEntropy(), torch.optim.Adam(built.parameters(), lr=1e-2)
        for _ in range(30):
            loss = objective(built, pairs)
            optimiser.zero_grad()
            (loss.total / loss.tokens).backward()
            optimiser.step()
        with recording() as recorded, torch.no_grad():
            built(pairs.source, pairs.source_mask, pairs.inputs)
        after[weight] = overlap(recorded[attention][0])
    assert after[1.0] < 0.7 * after[0.0]
