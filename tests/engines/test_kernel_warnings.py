"""Kernels of Triton that cannot be used: one warning says why, and what to install."""

from subprocess import CalledProcessError

import pytest
import torch

from dragoman.engines.cuda import kernels
from dragoman.engines.cuda.kernels import can_run_on

CPU = torch.device("cpu")
COMPILER = "Triton needs a C compiler and the header files of Python (in Debian: apt install gcc python3-dev)"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "AVAILABLE", True)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            RuntimeError("Failed to find C compiler. Please specify via CC environment variable."),
            f"Failed to find C compiler. Please specify via CC environment variable. {COMPILER}",
        ),
        (
            CalledProcessError(1, ["/usr/bin/gcc", "/tmp/cuda_utils.c", "-O3", "-shared"]),
            f"the C compiler /usr/bin/gcc failed with exit status 1. {COMPILER}",
        ),
        (ImportError(), f"ImportError. {COMPILER}"),
    ],
    ids=["no compiler", "no header files", "no message"],
)
@pytest.mark.usefixtures("fail")
def test_a_warning_has_the_reason_and_the_remedy(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(logits: torch.Tensor) -> torch.Tensor:
        raise error

    monkeypatch.setattr(kernels, "logsumexp", fails)
    assert not can_run_on(CPU)
    message = "warning: decoding uses PyTorch's attention, which is slower than Triton's kernels. They cannot be used:"
    assert capsys.readouterr().err == f"{message} {reason}\n"


@pytest.mark.usefixtures("fail")
def test_kernels_with_wrong_results_are_not_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "logsumexp", lambda logits: logits.logsumexp(1, keepdim=True) + 1)
    assert not can_run_on(CPU)
    assert "wrong results on this GPU" in capsys.readouterr().err


@pytest.mark.usefixtures("fail")
def test_kernels_that_work_need_no_warning(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernels, "logsumexp", lambda logits: logits.logsumexp(1, keepdim=True))
    assert can_run_on(CPU)
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("fail")
def test_a_full_gpu_is_no_reason_to_do_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(logits: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")

    monkeypatch.setattr(kernels, "logsumexp", fails)
    with pytest.raises(torch.OutOfMemoryError):
        can_run_on(CPU)


def test_missing_triton_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernels, "AVAILABLE", False)
    assert not can_run_on(CPU)
    assert "Triton is not installed: pip install triton" in capsys.readouterr().err
