"""Reports which training runs have logged something new."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

from dragoman.addons.workbench.workspace import LOG

_INTERVAL = 0.5
"""Interval at which the logs are read, in seconds."""
_HEARTBEAT = 20
"""Number of intervals after which an empty list is reported, so that closed connections are noticed."""


async def follow_runs(runs: Mapping[str, Path], has_ended: Callable[[], bool]) -> AsyncIterator[list[str]]:
    """Yield the names of the runs whose logs have changed since the last time, starting with the next change."""
    known, silent = _versions(runs), 0
    while not has_ended():
        await asyncio.sleep(_INTERVAL)
        versions = _versions(runs)
        changed = [name for name in runs if versions[name] != known[name]]
        known, silent = versions, 0 if changed else silent + 1
        if changed or silent == _HEARTBEAT:
            silent = 0
            yield changed


def _versions(runs: Mapping[str, Path]) -> dict[str, tuple[int, int]]:
    return {name: _version(folder / LOG) for name, folder in runs.items()}


def _version(log: Path) -> tuple[int, int]:
    try:
        status = log.stat()
    except OSError:  # deleted, or replaced at this moment
        return 0, 0
    return status.st_size, status.st_mtime_ns
