"""Available memory and disk space, and messages that go to stderr only."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.base import log
from dragoman.base.machine import memory


def test_available_memory_is_below_the_machine_s() -> None:
    assert 0 < memory.available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space limits work on Linux only")
def test_available_memory_respects_the_limit_of_the_process() -> None:
    free = memory.available_memory()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + free // 2, limits[1]))
    try:
        assert free // 4 < memory.available_memory() <= free // 2
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


LIMITED = """
import numpy as np

from dragoman.base.machine import memory

memory.limit_memory(100_000_000)
assert 50_000_000 < memory.available_memory() <= 100_000_000
held = np.ones(4_000_000)
try:
    np.ones(40_000_000)
except MemoryError:
    print(f"refused beside {held.sum():.0f}")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts the data of a process")
def test_memory_of_a_process_is_limited() -> None:
    # In a new process, because one that has run other tests can reuse memory that it has allocated already.
    ended = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "refused beside 4000000\n"), ended.stderr


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_control_group_counts(tmp_path: Path, version: int) -> None:
    base, prefix = (tmp_path, "") if version == 2 else (tmp_path / "memory", "total_")
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    for folder, limit, usage in ((base / "a" / "b", "9000", "1000"), (base / "a", "5000", "4000"), (base, "max", "1")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / names[0]).write_text(limit, encoding="utf-8")
        (folder / names[1]).write_text(usage, encoding="utf-8")
        stat = f"{prefix}active_file 100\n{prefix}inactive_file 200\nanon 7\n"
        (folder / "memory.stat").write_text(stat, encoding="utf-8")
    groups = tmp_path / "cgroup"
    groups.write_text("0::/a/b\n" if version == 2 else "3:cpu:/\n5:memory:/a/b\n", encoding="utf-8")
    assert list(memory._group_memory(tmp_path, groups)) == [8300, 1300]


def test_messages_go_to_stderr_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    long = "[bold]a[/bold] " * 40
    log.info(long)
    log.warn("heard")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"{long}\nwarning: heard\n"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError(
            "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO), NCCL version "
            "2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"
        ),
        RuntimeError(
            "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO), NCCL version "
            "2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
            "Failed to CUDA calloc 6291456 bytes"
        ),
    ],
    ids=lambda error: str(error)[:45],
)
def test_a_failed_allocation_is_recognised_by_its_message(error: Exception) -> None:
    """The messages are those of PyTorch's issues."""
    assert memory.is_out_of_memory(error)


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
        "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 1 'invalid argument'",
        "CUDA error: no kernel image is available for execution on the device",
    ],
)
def test_other_failures_are_not_failed_allocations(message: str) -> None:
    assert not memory.is_out_of_memory(RuntimeError(message))
