"""The precision is the one that this machine multiplies fastest, and a slow one causes a warning."""

import pytest
import torch

from dragoman.base.machine import kernels
from dragoman.base.machine.kernels import bfloat16_speed
from dragoman.training.machine.precision import choose_precision, warn_of_slow_products

CPU = torch.device("cpu")


def measure_as(monkeypatch: pytest.MonkeyPatch, small: float, large: float) -> list[int]:
    """Let products in bfloat16 take this many times as long as in float32; returns the measured numbers of rows."""
    measured = []

    def seconds(rows: int, rounds: int, *kinds: torch.dtype) -> list[float]:
        measured.append(rows)
        return [(small if rows < 1000 else large) if kind == torch.bfloat16 else 1.0 for kind in kinds]

    monkeypatch.setattr(kernels, "_product_seconds", seconds)
    return measured


def test_an_explicit_precision_is_used() -> None:
    assert choose_precision("bfloat16", CPU) == torch.bfloat16
    assert choose_precision("float32", CPU) == torch.float32
    assert choose_precision("float16", CPU) == torch.float16


@pytest.mark.parametrize(("large", "chosen"), [(0.5, torch.bfloat16), (0.9, torch.float32), (1.5, torch.float32)])
def test_auto_requires_bfloat16_to_be_clearly_faster(
    monkeypatch: pytest.MonkeyPatch, large: float, chosen: torch.dtype
) -> None:
    measure_as(monkeypatch, small=1.1, large=large)
    assert choose_precision("auto", CPU) == chosen


def test_an_emulated_type_is_not_measured_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large products took eleven seconds at the start of a run on a machine without AVX-512."""
    measured = measure_as(monkeypatch, small=50, large=50)
    assert choose_precision("auto", CPU) == torch.float32
    assert measured == [128]


def test_the_speed_is_a_ratio_of_measured_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The minimum time of each type counts, so that other load on the machine does not."""
    clock = {torch.bfloat16: 2.0, torch.float32: 5.0}
    now, disturbed = [0.0], iter([70.0])
    multiply = torch.Tensor.__matmul__

    def product(states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        now[0] += clock[states.dtype] + next(disturbed, 0.0)
        return multiply(states[:1], weight)

    monkeypatch.setattr(torch.Tensor, "__matmul__", product)
    monkeypatch.setattr(kernels.time, "perf_counter", lambda: now[0])
    assert bfloat16_speed(CPU) == 2.5


@pytest.mark.parametrize(
    ("emulated", "capability", "chosen"),
    [(False, (8, 0), torch.bfloat16), (True, (7, 5), torch.float16), (True, (6, 1), torch.float32)],
)
def test_a_gpu_without_bfloat16_uses_float16_if_that_is_fast(
    monkeypatch: pytest.MonkeyPatch, emulated: bool, capability: tuple[int, int], chosen: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: not emulated)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert choose_precision("auto", torch.device("cuda")) == chosen


def test_a_slow_precision_is_warned_about(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measure_as(monkeypatch, small=50, large=50)
    warn_of_slow_products("bfloat16", CPU, resumed=True)
    said = capsys.readouterr().err
    assert (
        "this machine multiplies bfloat16 more slowly than float32: train.precision=float32 would be faster. " in said
    )
    assert "A resumed run may use it, although sums then round differently" in said
    warn_of_slow_products("float32", CPU, resumed=True)
    measure_as(monkeypatch, small=1.1, large=0.5)
    warn_of_slow_products("bfloat16", CPU, resumed=False)
    assert capsys.readouterr().err == ""
