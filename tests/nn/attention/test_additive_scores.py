"""Additive scores in blocks have the plain formula's values and gradients, in memory that grows like the scores."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.nn.attention import additive_scores as module
from dragoman.nn.attention.additive_scores import additive_scores
from dragoman.nn.attention.scorers import AdditiveConfig


def plain(queries: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return (torch.tanh(queries.unsqueeze(-2) + keys.unsqueeze(-3)) * vector[..., None, None, :]).sum(-1)


def inputs(
    *before: int, length: int = 5, keys: int = 6, width: int = 7, kind: torch.dtype = torch.float64
) -> list[Tensor]:
    torch.manual_seed(1)
    shapes = (*before, length, width), (*before, keys, width), (before[1], *[1] * (len(before) - 2), width)
    return [torch.randn(shape, dtype=kind, requires_grad=True) for shape in shapes]


@pytest.fixture(params=[1, 60, 500, 100_000], ids=lambda block: f"block {block}")
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block sizes: less than one key, part of a row, some rows, and everything at once."""
    monkeypatch.setattr(module, "_CPU_BLOCK", request.param)
    monkeypatch.setattr(module, "_SMALL", 0)


@pytest.mark.parametrize("before", [(2, 3), (2, 3, 2)], ids=["heads", "heads and blocks"])
def test_values_and_gradients_equal_the_formulas(blocks: None, before: tuple[int, ...]) -> None:
    ours, theirs = inputs(*before), inputs(*before)
    found, expected = additive_scores(*ours), plain(*theirs)
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(found)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, two.grad)


def test_the_gradient_equals_finite_differences(blocks: None) -> None:
    assert torch.autograd.gradcheck(additive_scores, inputs(1, 2, length=2, keys=3, width=2), fast_mode=True)


def test_few_pairs_take_the_plain_path_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    few = inputs(2, 3)
    short = additive_scores(*few)
    monkeypatch.setattr(module, "_SMALL", 0)
    torch.testing.assert_close(additive_scores(*few), short)


def test_large_scores_saturate() -> None:
    queries, keys, vector = inputs(1, 1, length=40, keys=40, width=64, kind=torch.float32)
    scores = additive_scores(queries * 1e4, keys, vector)
    scores.sum().backward()
    assert bool(scores.isfinite().all()) and bool(queries.grad.isfinite().all())  # type: ignore[union-attr]
    torch.testing.assert_close(scores, plain(queries * 1e4, keys, vector), rtol=1e-5, atol=1e-5)


class Memory(TorchDispatchMode):
    """Records the largest number of elements of any result."""

    largest = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        result = function(*arguments, **(keywords or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                self.largest = max(self.largest, each.untyped_storage().size() // each.element_size())
        return result


@pytest.mark.parametrize("length", [16, 32, 64])
def test_memory_grows_as_the_scores_and_not_as_the_hidden_layer(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    block = 4096
    monkeypatch.setattr(module, "_CPU_BLOCK", block)
    monkeypatch.setattr(module, "_SMALL", 0)
    count, heads, width = 2, 3, 16
    leaves = inputs(count, heads, length=length, keys=length, width=width, kind=torch.float32)
    saved: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        saved.append(tensor.numel())
        return tensor

    with Memory() as memory, torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        additive_scores(*leaves).sum().backward()
    scores, states = count * heads * length * length, count * heads * length * width
    assert memory.largest <= max(scores, states, block)
    assert 0 < sum(saved) <= 2 * states + count * heads * width + scores, "kept for the backward pass"


@pytest.mark.parametrize("size", [4, 60])
def test_under_autocast_scores_have_its_type_and_gradients_are_close(size: int) -> None:
    torch.manual_seed(1)
    scorer = AdditiveConfig(width=32).build(2, 16, 12)
    queries = torch.randn(3, 2, size, 16, requires_grad=True)
    keys = torch.randn(3, 2, size, 12, requires_grad=True)
    leaves = [queries, keys, *scorer.parameters()]
    exact = scorer(queries, scorer.prepare(keys))
    with torch.autocast("cpu", torch.bfloat16):
        found = scorer(queries, scorer.prepare(keys))
    assert found.dtype == torch.bfloat16
    weight = torch.randn_like(exact)
    ours = torch.autograd.grad((found.float() * weight).sum(), leaves)
    theirs = torch.autograd.grad((exact * weight).sum(), leaves)
    for one, two in zip((found, *ours), (exact, *theirs), strict=True):
        assert float((one.detach().float() - two.detach()).norm() / two.detach().norm()) < 0.02
