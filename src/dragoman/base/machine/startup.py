"""Settings of a process that must be made at its start: the allocator of tensors and how threads wait."""

import ctypes
import os
import sys
from ctypes.util import find_library

_LIBRARIES = ("tcmalloc_minimal", "tcmalloc")
_QUIET = str(2**40)
"""Bytes from which on tcmalloc would report a large block on stderr; by itself it does from 1 GiB."""

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4  # malloc.h
_NEVER = 2**31 - 1  # mallopt takes an int
_TOP_PAD_BYTES = 64 * 2**20


def keep_large_tensors_on_heap() -> bool:
    """Make glibc keep large freed blocks for the next tensor; returns whether it could. Call before the first tensor.

    By default glibc asks the kernel for each large block and gives it back when freed, so every tensor of a training
    step is paid for in page faults: 1.2 to 1.6 times the time of a step on a CPU. Elsewhere than on glibc: no effect.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  (musl has mallopt's name only)
    except (AttributeError, OSError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    # Before 2.35, glibc refuses thresholds above 32 MiB; forbidding mapped blocks altogether comes to the same.
    on_heap = mallopt(_MMAP_THRESHOLD, _NEVER) == 1 or mallopt(_MMAP_MAX, 0) == 1
    return bool(on_heap and mallopt(_TRIM_THRESHOLD, _NEVER) == 1 and mallopt(_TOP_PAD, _TOP_PAD_BYTES) == 1)


def find_tcmalloc() -> str | None:
    """The name under which LD_PRELOAD finds tcmalloc; None where it is not installed."""
    return next((found for name in _LIBRARIES if (found := find_library(name))), None)


def restart_on_tcmalloc() -> None:
    """Begin this process anew with tcmalloc (gperftools) in the place of malloc, where the machine has it; else return.

    glibc walks through lists of free blocks to find room for a tensor, which costs small models a tenth to three tenths
    of an update (docs/EXPERIMENTS.md). A process can change its allocator only at its start. So call this first of all,
    where nothing is lost by running the same command line again. LD_PRELOAD, if only empty, is left as it is.
    """
    if not sys.platform.startswith("linux") or "LD_PRELOAD" in os.environ or not sys.executable:
        return
    library = find_tcmalloc()
    if library is None:
        return
    environment = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": _QUIET, **os.environ, "LD_PRELOAD": library}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


_TURNS = "1000"


def wait_briefly() -> None:
    """Make libgomp's threads sleep soon when they wait for others. To be called before torch is imported.

    All cores meet at the end of every operation. By default those that are there first turn in circles for
    milliseconds, which keeps the last one from its core on a machine that does other work too: programs then take
    several times as long (docs/EXPERIMENTS.md). So many turns are what libgomp itself chooses where threads outnumber
    cores. What the user has set, GOMP_SPINCOUNT or OMP_WAIT_POLICY, stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _TURNS)
