"""Available memory, memory limits, and out-of-memory errors."""

import ctypes
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.base.errors import ResourceError


def available_memory() -> int:
    """Return the number of bytes that this process can still allocate.

    This is the minimum of the machine's free memory and the remainders of the control groups' and process's limits.
    """
    return max(0, min([_machine_memory(), *_group_memory(), *_process_memory()]))


def _machine_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _group_memory(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Yield the free bytes of each control group of this process (Linux kernel docs: cgroup-v2, cgroup-v1/memory)."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            base, limit_name, usage_name = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            base, limit_name, usage_name = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = base / name.lstrip("/")
        # In a container, the path is often the host's, of which only the root exists in the container.
        for folder in [group, *group.parents]:
            try:
                limit = int((folder / limit_name).read_text())
                usage = int((folder / usage_name).read_text())
                stat = dict(entry.split() for entry in (folder / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):
                limit = -1  # the group has no limit ("max") or does not exist
            if limit >= 0:
                prefix = "total_" if controllers else ""
                cache = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
                yield limit - usage + cache
            if folder == base:
                break


def _process_memory() -> Iterator[int]:
    """Yield the number of bytes that remain below each of the process's limits."""
    for limit_name, field in ((resource.RLIMIT_AS, _ADDRESS_SPACE), (resource.RLIMIT_DATA, _DATA)):
        limit, _ = resource.getrlimit(limit_name)
        if limit != resource.RLIM_INFINITY:
            yield limit - _pages(field) * resource.getpagesize()


def limit_memory(additional: int) -> None:
    """Limit the writable memory of this process, mapped or not, to `additional` bytes beyond its current size.

    Only Linux supports such a limit. On other systems, this function does nothing.
    """
    if not (pages := _pages(_DATA)):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = pages * resource.getpagesize() + additional
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


_ADDRESS_SPACE, _RESIDENT, _DATA = 0, 1, 5
"""Fields of /proc/self/statm (proc(5)): the whole address space, resident pages, and data and stack."""


def _pages(field: int) -> int:
    """Return the number of pages in a field of /proc/self/statm, or 0 if the file does not exist."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[field])
    except OSError:
        return 0


def limit_arenas(count: int) -> None:
    """Let malloc use at most `count` arenas for all threads, instead of up to eight per processor.

    Each arena keeps the memory that its threads have freed. Has an effect only with glibc, and before threads exist.
    """
    if (mallopt := _c_function("mallopt")) is not None:
        mallopt(_M_ARENA_MAX, count)


def release_free_memory() -> None:
    """Return freed memory, which malloc keeps for later, to the operating system. Has an effect only with glibc."""
    if (trim := _c_function("malloc_trim")) is not None:
        trim(0)


def resident_memory() -> int:
    """Return the number of bytes of this process that are in memory; 0 if unknown."""
    return _pages(_RESIDENT) * resource.getpagesize()


_M_ARENA_MAX = -8
"""The parameter of mallopt(3)."""


def _c_function(name: str) -> Callable[..., Any] | None:
    """Return a function of the C library, or None if it does not exist."""
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):
        return None


_OUT_OF_MEMORY = (
    "can't allocate memory",  # PyTorch on a CPU
    "not enough memory",
    "out of memory",  # CUDA, also through NCCL and Triton
    "STATUS_ALLOC_FAILED",  # cuBLAS, cuDNN, cuSOLVER and cuSPARSE, which allocate outside PyTorch
    "DEVICE_ALLOCATION_FAILED",  # cuDNN since version 9
    "HOST_ALLOCATION_FAILED",
    "Failed to CUDA",  # NCCL: "malloc", "calloc" or "host alloc", and the number of bytes
)
"""Parts of the messages of failed allocations."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether `error` is a failed memory allocation. PyTorch has no single class for these errors."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error)
    return any(part in message for part in _OUT_OF_MEMORY)


@contextmanager
def smaller_batch_advice() -> Iterator[None]:
    """Raise ResourceError, which recommends a smaller batch size, in place of an out-of-memory error."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise ResourceError("the texts do not fit into memory together: use a smaller batch size") from error
