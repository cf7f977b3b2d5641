"""When the kernels of training are used, and what is said if they are not."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from dragoman.native.build import NoCompilerError
from dragoman.nn.kernels import check, choice

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each test makes the choice again."""
    choice.kernels_run.cache_clear()
    yield
    choice.kernels_run.cache_clear()


def states(dtype: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.zeros(2, 4, dtype=dtype, requires_grad=True)


def test_they_are_used_for_bfloat16_throughout_in_training() -> None:
    assert choice.uses_kernels(states())
    assert not choice.uses_kernels(states(torch.float32))
    with torch.no_grad():
        assert not choice.uses_kernels(states())
    with torch.autocast("cpu", torch.bfloat16):
        assert not choice.uses_kernels(states())


def test_a_kernel_that_differs_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "differing_kernel", lambda device: "dropout")
    assert not choice.uses_kernels(states()) and not choice.uses_kernels(states())
    message = capsys.readouterr().err
    assert message.count("the results of its dropout differ from PyTorch's") == 1
    assert "kernels in C" in message


def test_training_goes_on_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(device: torch.device) -> None:
        raise NoCompilerError("no C compiler was found")

    monkeypatch.setattr(check, "differing_kernel", fail)
    assert not choice.uses_kernels(states())
    assert "slower than kernels in C: no C compiler was found" in capsys.readouterr().err


def test_other_devices_have_none() -> None:
    assert not choice.kernels_run(torch.device("meta"))
