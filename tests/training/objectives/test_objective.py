"""The fused loss compared with torch's cross-entropy and with the explicit formula of smoothing."""

import pytest
import torch
from closeness import assert_all_close, assert_close
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.training.objectives import fused_cross_entropy
from dragoman.training.objectives.fused_cross_entropy import projected_cross_entropy, projected_losses

ROWS, WIDTH, SIZE = 53, 12, 37


def inputs(rows: int = ROWS) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    hidden, weight = torch.randn(rows, WIDTH) * 2, torch.randn(SIZE, WIDTH)
    return hidden.requires_grad_(), weight.requires_grad_(), torch.randint(SIZE, (rows,))


def check(found: Tensor, expected: Tensor, leaves: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> None:
    """Values, and gradients with a factor other than 1."""
    assert_close(found, expected)
    ours = torch.autograd.grad(found * 0.3, leaves)
    theirs = torch.autograd.grad(expected * 0.3, other)
    assert_all_close(ours, theirs)


@pytest.mark.parametrize("chunk", [1, 10, 53, 1024])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_equals_torch(monkeypatch: pytest.MonkeyPatch, chunk: int, smoothing: float) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", chunk)
    hidden, weight, labels = inputs()
    total, plain = projected_cross_entropy(hidden, weight, labels, smoothing)
    logits = hidden @ weight.t()
    expected = functional.cross_entropy(logits, labels, label_smoothing=smoothing, reduction="sum")
    check(total, expected, (hidden, weight), (hidden, weight))
    assert_close(plain, functional.cross_entropy(logits, labels, reduction="sum"))
    assert not plain.requires_grad


@pytest.mark.parametrize("chunk", [10, 1024])
def test_a_unigram_prior_equals_its_formula(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", chunk)
    hidden, weight, labels = inputs()
    prior = torch.rand(SIZE).softmax(0)
    prior[3:9] = 0
    prior /= prior.sum()
    total, _ = projected_cross_entropy(hidden, weight, labels, 0.2, prior=prior)
    exact = tuple(leaf.detach().double().requires_grad_() for leaf in (hidden, weight))
    goal = 0.8 * functional.one_hot(labels, SIZE).double() + 0.2 * prior.double()
    expected = -(goal * (exact[0] @ exact[1].t()).log_softmax(-1)).sum()
    check(total, expected, (hidden, weight), (exact[0], exact[1]))


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("each", [True, False])
def test_a_bias_equals_its_formula(monkeypatch: pytest.MonkeyPatch, uniform: bool, each: bool) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", 10)
    hidden, weight, labels = inputs()
    bias = (3 * torch.randn(SIZE)).requires_grad_()
    prior = None if uniform else torch.rand(SIZE).softmax(0)
    losses = projected_losses(hidden, weight, labels, 0.2, prior, per_row=each, bias=bias)
    exact = tuple(leaf.detach().double().requires_grad_() for leaf in (hidden, weight, bias))
    goal = 0.8 * functional.one_hot(labels, SIZE).double() + 0.2 * (1 / SIZE if prior is None else prior.double())
    rows = -(goal * (exact[0] @ exact[1].t() + exact[2]).log_softmax(-1)).sum(1)
    check(losses.total, rows.sum(), (hidden, weight, bias), exact)
    if losses.per_row is not None:
        assert_close(losses.per_row, rows.detach())


def test_a_uniform_prior_is_the_default() -> None:
    hidden, weight, labels = inputs()
    uniform = torch.full((SIZE,), 1 / SIZE)
    check(
        projected_cross_entropy(hidden, weight, labels, 0.3, prior=uniform)[0],
        projected_cross_entropy(hidden, weight, labels, 0.3)[0],
        (hidden, weight),
        (hidden, weight),
    )


def under_autocast(rows: int) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
    """In bfloat16: total and cross-entropy; in float32: the expected total; hidden and weight."""
    hidden, weight, labels = inputs(rows)
    exact = functional.cross_entropy(hidden @ weight.t(), labels, label_smoothing=0.1, reduction="sum")
    with torch.autocast("cpu", torch.bfloat16):
        total, plain = projected_cross_entropy(hidden, weight, labels, 0.1)
    return total, plain, exact, (hidden, weight)


def test_autocast_to_bfloat16_is_close() -> None:
    total, _, exact, leaves = under_autocast(512)
    assert float(total.detach()) == pytest.approx(float(exact.detach()), rel=0.001)
    ours = torch.autograd.grad(total, leaves)
    theirs = torch.autograd.grad(exact, leaves)
    for one, two in zip(ours, theirs, strict=True):
        assert one.dtype == torch.float32
        assert float((one - two).norm() / two.norm()) < 0.02


def test_sums_are_float32_under_autocast() -> None:
    total, plain, _, _ = under_autocast(512)
    assert total.dtype == plain.dtype == torch.float32


class Largest(TorchDispatchMode):
    """Records the largest number of elements of any result."""

    elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        result = function(*arguments, **(keywords or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                self.elements = max(self.elements, each.numel())
        return result


def test_logits_never_exist_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", 20)
    hidden, weight, labels = inputs(200)
    with Largest() as largest:
        projected_cross_entropy(hidden, weight, labels, 0.1)[0].backward()
    assert 20 * SIZE <= largest.elements <= max(20 * SIZE, 200 * WIDTH) < 200 * SIZE


def test_logits_beyond_the_range_of_exp_stay_finite() -> None:
    hidden, weight, labels = inputs()
    total, _ = projected_cross_entropy(hidden * 1e4, weight, labels, 0.1)
    total.backward()
    assert bool(total.isfinite()) and hidden.grad is not None and bool(hidden.grad.isfinite().all())
