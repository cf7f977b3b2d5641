"""The step of Muon in C against the same step by PyTorch's operations."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.native.training import has_pairs
from dragoman.training.machine.threads import Threads
from dragoman.training.optimisers import muon as module
from dragoman.training.optimisers.muon import Muon, MuonConfig

PAIRS = pytest.mark.skipif(not has_pairs(), reason="this processor has no products of pairs of bfloat16")
PRECISIONS = [torch.float32, pytest.param(torch.bfloat16, marks=PAIRS)]

SHAPES = [(2, 2), (10, 6), (64, 66), (130, 192), (192, 192), (256, 64), (66, 384)]


def trained(
    shape: tuple[int, int], precision: torch.dtype, in_c: bool, rate: float = 0.1, **settings: Any
) -> tuple[Tensor, Tensor, bool]:
    """Return a matrix and its mean of gradients after three steps, and whether C may compute them."""
    draw = torch.Generator().manual_seed(1)
    matrix = nn.Parameter(torch.randn(shape, generator=draw) / 10)
    optimiser = Muon(MuonConfig(**settings), [matrix], [nn.Parameter(torch.zeros(1))], precision)
    optimiser._in_c = optimiser._in_c and in_c
    for _ in range(3):
        left, right = (torch.randn(shape[0], size, generator=draw) for size in (shape[0], shape[1]))
        matrix.grad = left @ torch.diag(1 / torch.arange(1.0, 1 + shape[0])) @ right
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
    return matrix.detach(), optimiser.state[matrix]["momentum"], optimiser._in_c


@pytest.mark.parametrize("shape", [*SHAPES, (1, 1), (1, 7), (5, 3), (17, 33), (129, 97)], ids=str)
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_step_of_floats_in_c_is_that_of_pytorch(shape: tuple[int, int], decay: float) -> None:
    expected, mean, _ = trained(shape, torch.float32, False, weight_decay=decay)
    still, _, _ = trained(shape, torch.float32, False, weight_decay=decay, rate=0.0)
    found, found_mean, in_c = trained(shape, torch.float32, True, weight_decay=decay)
    assert in_c
    torch.testing.assert_close(found_mean, mean, rtol=1e-5, atol=1e-6)
    assert (found - expected).norm() <= 1e-3 * (expected - still).norm()


@PAIRS
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_a_step_in_c_is_near_to_one_in_float32(shape: tuple[int, int], decay: float) -> None:
    expected, mean, _ = trained(shape, torch.float32, False, weight_decay=decay)
    still, _, _ = trained(shape, torch.float32, False, weight_decay=decay, rate=0.0)
    found, found_mean, in_c = trained(shape, torch.bfloat16, True, weight_decay=decay)
    assert in_c
    torch.testing.assert_close(found_mean, mean, rtol=1e-5, atol=1e-6)
    assert (found - expected).norm() <= (0.03 if min(shape) > 32 else 0.1) * (expected - still).norm()


@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
@pytest.mark.parametrize("shape", [(128, 512), (512, 128), (96, 256)], ids=str)
def test_singular_values_are_mapped_near_one(shape: tuple[int, int], precision: torch.dtype) -> None:
    torch.manual_seed(2)
    matrix = nn.Parameter(torch.zeros(shape))
    optimiser = Muon(MuonConfig(momentum=0.0), [matrix], [nn.Parameter(torch.zeros(1))], precision)
    assert optimiser._in_c
    matrix.grad = torch.randn(shape)
    optimiser.param_groups[0]["lr"] = 1.0
    optimiser.step()
    update = -matrix.detach() / (0.2 * max(shape) ** 0.5)
    sizes = torch.linalg.svdvals(update)
    assert sizes.min() > 0.7 and sizes.max() < 1.35


@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
def test_zero_gradients_change_nothing(precision: torch.dtype) -> None:
    matrix = nn.Parameter(torch.randn(64, 64))
    before = matrix.detach().clone()
    optimiser = Muon(MuonConfig(), [matrix], [nn.Parameter(torch.zeros(1))], precision)
    matrix.grad = torch.zeros(64, 64)
    optimiser.param_groups[0]["lr"] = 1.0
    optimiser.step()
    assert torch.equal(matrix, before)


@PAIRS
def test_matrices_that_c_cannot_update_are_left_to_pytorch() -> None:
    odd, _, _ = trained((7, 9), torch.bfloat16, True)
    expected, _, _ = trained((7, 9), torch.bfloat16, False)
    assert torch.equal(odd, expected)


@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
def test_threads_do_not_change_the_result(precision: torch.dtype) -> None:
    def after(threads: Threads | None) -> list[Tensor]:
        torch.manual_seed(3)
        matrices = [nn.Parameter(torch.randn(64, 64)) for _ in range(5)]
        optimiser = Muon(MuonConfig(), matrices, [nn.Parameter(torch.zeros(1))], precision, threads)
        for each in matrices:
            each.grad = torch.randn(64, 64)
        optimiser.param_groups[0]["lr"] = 0.1
        optimiser.step()
        return [each.detach() for each in matrices]

    threads = Threads(2, 2)
    try:
        for one, other in zip(after(threads), after(None), strict=True):
            assert torch.equal(one, other)
    finally:
        threads.close()


def test_memory_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def dragoman_training_muon(self, *_: Any) -> int:
            return 1

    monkeypatch.setattr(module, "library", Full)
    with pytest.raises(MemoryError):
        trained((8, 8), torch.float32, True)
