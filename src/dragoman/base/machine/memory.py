"""Available memory, memory limits, and out-of-memory errors."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path


def available_memory() -> int:
    """Return the bytes that this process can still allocate: the minimum over machine, control groups and limits."""
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
    """Yield the free bytes of each control group of this process (kernel docs: cgroup-v2, cgroup-v1/memory)."""
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
        # In a container the path is often that of the host; then only the container's root exists.
        for folder in [group, *group.parents]:
            try:
                limit = int((folder / limit_name).read_text())
                usage = int((folder / usage_name).read_text())
                stat = dict(entry.split() for entry in (folder / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):
                limit = -1  # no limit here ("max"), or no such group
            if limit >= 0:
                prefix = "total_" if controllers else ""
                cache = sum(int(stat.get(f"{prefix}{kind}_file", 0)) for kind in ("active", "inactive"))
                yield limit - usage + cache
            if folder == base:
                break


def _process_memory() -> Iterator[int]:
    for kind, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, _DATA)):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY:
            yield limit - _pages(place) * resource.getpagesize()


def limit_memory(more: int) -> None:
    """Limit the writable data of this process, mapped or not, to `more` bytes beyond its current size.

    Only Linux supports this; on other systems nothing is limited.
    """
    if not (pages := _pages(_DATA)):
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


_DATA = 5
"""Index of data and stack in /proc/self/statm (proc(5)); index 0 is the whole address space."""


def _pages(place: int) -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[place])
    except OSError:
        return 0


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether `error` is a failed allocation of Python or torch, which has no single class for these errors."""
    message = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in message
        or "not enough memory" in message
        or "out of memory" in message
    )
