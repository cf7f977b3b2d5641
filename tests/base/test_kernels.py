"""The choice of attention kernels on a GPU, from made-up measurements; `tests/gpu` has real ones."""

import pytest
import torch
from torch.nn.attention import SDPBackend

from dragoman.base.machine import kernels
from dragoman.base.machine.kernels import cudnn_is_slow, keep_fast_attention_kernels


def _measuring(**seconds: float | None) -> kernels.Measure:
    return lambda kernel: seconds["cudnn" if kernel == SDPBackend.CUDNN_ATTENTION else "efficient"]


@pytest.mark.parametrize(
    ("cudnn", "efficient", "slow"),
    [
        (0.120, 0.0005, True),  # as measured on an H100
        (0.0006, 0.0005, False),  # a GPU on which plans are cheap
        (None, 0.0005, False),  # cuDNN does not run there, so PyTorch does not choose it
        (0.120, None, False),  # otherwise nothing would be chosen
    ],
)
def test_cudnn_is_slow_if_new_shapes_cost_several_times_as_much(
    cudnn: float | None, efficient: float | None, slow: bool
) -> None:
    assert cudnn_is_slow(_measuring(cudnn=cudnn, efficient=efficient)) is slow


@pytest.mark.parametrize("slow", [True, False])
def test_slow_cudnn_is_turned_off_for_the_process(monkeypatch: pytest.MonkeyPatch, slow: bool) -> None:
    changed: list[bool] = []
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", changed.append)
    monkeypatch.setattr(torch.backends.cuda, "cudnn_sdp_enabled", lambda: True)
    monkeypatch.setattr(kernels, "_new_shape_seconds", lambda kernel, device: seconds(kernel))
    seconds = _measuring(cudnn=0.1 if slow else 0.001, efficient=0.001)
    keep_fast_attention_kernels.cache_clear()
    assert keep_fast_attention_kernels(torch.device("cuda", 0)) is slow
    assert changed == ([False] if slow else [])
    keep_fast_attention_kernels.cache_clear()


def test_a_kernel_that_was_turned_off_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "cudnn_sdp_enabled", lambda: False)
    monkeypatch.setattr(kernels, "_new_shape_seconds", lambda kernel, device: pytest.fail("measured"))
    keep_fast_attention_kernels.cache_clear()
    assert keep_fast_attention_kernels(torch.device("cuda", 1)) is False
    assert keep_fast_attention_kernels(torch.device("cpu")) is False
    keep_fast_attention_kernels.cache_clear()
