"""Settings of memory, of idle threads and of temporary files, made at the start of a process."""

import atexit
import ctypes
import gc
import os
import sys
import tempfile
from ctypes.util import find_library

_LIBRARIES = ("tcmalloc_minimal", "tcmalloc")
_REPORT_THRESHOLD = str(2**40)
"""Size in bytes above which tcmalloc reports large blocks on stderr. The default is 1 GiB."""

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -2, -3, -4  # malloc.h
_NEVER = 2**31 - 1  # the largest int, which is mallopt's parameter type
_TOP_PAD_BYTES = 64 * 2**20


def keep_large_tensors_on_heap() -> bool:
    """Make glibc reuse large blocks after they are freed, and return whether this succeeded.

    By default, glibc requests each large block from the kernel and returns it when it is freed. Every tensor of a
    training step then causes page faults, so that a step on a CPU takes 1.2 to 1.6 times as long. Call this function
    before the first tensor is created. It has no effect without glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        ctypes.CDLL(None).gnu_get_libc_version  # noqa: B018  (musl defines mallopt without any effect)
    except (AttributeError, OSError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    # glibc before 2.35 rejects thresholds above 32 MiB. Disabling mapped blocks has the same effect.
    on_heap = mallopt(_MMAP_THRESHOLD, _NEVER) == 1 or mallopt(_MMAP_MAX, 0) == 1
    return bool(on_heap and mallopt(_TRIM_THRESHOLD, _NEVER) == 1 and mallopt(_TOP_PAD, _TOP_PAD_BYTES) == 1)


def find_tcmalloc() -> str | None:
    """Return the name of the tcmalloc library for LD_PRELOAD, or None if it is not installed."""
    return next((library for name in _LIBRARIES if (library := find_library(name))), None)


def restart_on_tcmalloc() -> None:
    """Restart this process with tcmalloc (gperftools) instead of malloc, if it is installed.

    For each tensor, glibc searches lists of free blocks, which takes 10 to 30 % of the time of an update of a small
    model (docs/EXPERIMENTS.md). A process can change its allocator only at its start, so this function must be called
    first, when it is safe to run the same command line again. If LD_PRELOAD is set, even to an empty string, this
    function does nothing.
    """
    if not sys.platform.startswith("linux") or "LD_PRELOAD" in os.environ or not sys.executable:
        return
    library = find_tcmalloc()
    if library is None:
        return
    environment = {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD": _REPORT_THRESHOLD, **os.environ, "LD_PRELOAD": library}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


_OBJECTS = 500_000
"""More than the imports of a command create: about 420,000."""


def limit_garbage_collection() -> None:
    """Let the garbage collector wait until the process has many objects, then work as usual, and not search at the end.

    During the imports and when the process ends, it would search the objects of modules again and again without finding
    any garbage, for a quarter of the time of a short command (docs/EXPERIMENTS.md). Call this function before the other
    imports.
    """
    usual = gc.get_threshold()

    def restore(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(restore)
        gc.set_threshold(*usual)

    gc.callbacks.append(restore)
    gc.set_threshold(_OBJECTS, *usual[1:])
    atexit.register(gc.freeze)  # functions are called in reverse order: this one after those of modules


_SHARED_MEMORY = "/dev/shm"
_SPIN_COUNT = "1000"
"""The value that libgomp uses if there are more threads than cores."""


def limit_thread_spinning() -> None:
    """Limit the time that libgomp's threads spin while they wait for other threads, before they sleep.

    All threads synchronise at the end of every operation. By default, the threads that finish first spin for
    milliseconds, which can keep the others from running on a busy machine, so that programs take several times as long
    (docs/EXPERIMENTS.md). Call this function before torch is imported. It does not override the user's values of
    GOMP_SPINCOUNT and OMP_WAIT_POLICY.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)


def tolerate_missing_temporary_folder() -> None:
    """Use shared memory for temporary files on a machine where no usual folder is writable.

    This is the case in a container whose root file system is read-only. `tempfile.gettempdir` raises an error there,
    and some packages, such as portalocker, call it when they are imported. If shared memory is not writable either,
    these packages can still be imported, and only the creation of a temporary file fails.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else "/tmp"
