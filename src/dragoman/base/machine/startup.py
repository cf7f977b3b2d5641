"""Settings that must be made at the start of a process: the memory allocator, and how idle threads wait."""

import ctypes
import os
import sys
from ctypes.util import find_library

_LIBRARIES = ("tcmalloc_minimal", "tcmalloc")
_QUIET = str(2**40)
"""Size in bytes from which tcmalloc reports large blocks on stderr; its default is 1 GiB."""

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4  # malloc.h
_NEVER = 2**31 - 1  # mallopt takes an int
_TOP_PAD_BYTES = 64 * 2**20


def keep_large_tensors_on_heap() -> bool:
    """Make glibc reuse large freed blocks; returns whether this succeeded. Call before the first tensor.

    By default, glibc requests each large block from the kernel and returns it when freed, so that every tensor of a
    training step causes page faults: a step on a CPU takes 1.2 to 1.6 times as long. No effect without glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  (musl has only the name mallopt)
    except (AttributeError, OSError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    # Before 2.35, glibc rejects thresholds above 32 MiB; disabling mapped blocks has the same effect.
    on_heap = mallopt(_MMAP_THRESHOLD, _NEVER) == 1 or mallopt(_MMAP_MAX, 0) == 1
    return bool(on_heap and mallopt(_TRIM_THRESHOLD, _NEVER) == 1 and mallopt(_TOP_PAD, _TOP_PAD_BYTES) == 1)


def find_tcmalloc() -> str | None:
    """Return the library name of tcmalloc for LD_PRELOAD; None if it is not installed."""
    return next((found for name in _LIBRARIES if (found := find_library(name))), None)


def restart_on_tcmalloc() -> None:
    """Restart this process with tcmalloc (gperftools) instead of malloc, if it is installed.

    glibc searches lists of free blocks for each tensor, which takes 10 to 30 % of an update of small models
    (docs/EXPERIMENTS.md). A process can change its allocator only at its start, so call this first, when it is safe to
    run the same command line again. If LD_PRELOAD is set, even to nothing, this does nothing.
    """
    if not sys.platform.startswith("linux") or "LD_PRELOAD" in os.environ or not sys.executable:
        return
    library = find_tcmalloc()
    if library is None:
        return
    environment = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": _QUIET, **os.environ, "LD_PRELOAD": library}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


_SPINS = "1000"


def wait_briefly() -> None:
    """Make libgomp's threads sleep soon while they wait for others. Call before torch is imported.

    All threads synchronise at the end of every operation. By default the first ones spin for milliseconds, which keeps
    the last one from running on a busy machine: programs then take several times as long (docs/EXPERIMENTS.md). The
    spin count is what libgomp chooses if there are more threads than cores. GOMP_SPINCOUNT and OMP_WAIT_POLICY, if set
    by the user, are respected.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
