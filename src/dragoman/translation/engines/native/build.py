"""Instruction sets of processors, and the engine's library, compiled from its C sources once per machine and set."""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dragoman.base.errors import ResourceError
from dragoman.base.log import info

SOURCE = Path(__file__).parent / "source"
_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi")
_COMPILERS = ("cc", "gcc", "clang")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")


class NoCompilerError(ResourceError):
    """No C compiler is installed, or it cannot compile the sources."""


@dataclass(frozen=True)
class InstructionSet:
    """An instruction set that the kernels are compiled for.

    flags: for the compiler. needs: the flags in /proc/cpuinfo of a processor that supports it.
    """

    name: str
    flags: tuple[str, ...]
    needs: frozenset[str]


INSTRUCTION_SETS = (
    InstructionSet(
        "avx512", tuple(f"-m{each}" for each in (*_AVX512, "avx512vnni", "fma")), frozenset((*_AVX512, "avx512_vnni"))
    ),
    InstructionSet("avxvnni", ("-mavx2", "-mfma", "-mavxvnni"), frozenset(("avx2", "fma", "avx_vnni"))),
    InstructionSet("avx2", ("-mavx2", "-mfma"), frozenset(("avx2", "fma"))),
    InstructionSet("portable", (), frozenset()),
)
"""Best first. The last is plain C, for any processor."""


@cache
def available() -> tuple[InstructionSet, ...]:
    """The instruction sets that this processor supports, best first."""
    supported = _processor_flags() if platform.machine().lower() in ("x86_64", "amd64") else frozenset()
    return tuple(each for each in INSTRUCTION_SETS if each.needs <= supported)


def compiled_library(instructions: InstructionSet, extra_flags: tuple[str, ...] = ()) -> Path:
    """Return the path of the library for an instruction set; compiles it if it is missing.

    The library is in the user's cache folder; its name contains a digest of sources, flags and compiler. extra_flags:
    further flags for the compiler, such as sanitizers. Raises NoCompilerError.
    """
    compiler = _compiler()
    flags = (*_FLAGS, *instructions.flags, *extra_flags)
    digest = hashlib.sha256("\0".join((*compiler, _version(compiler), *flags)).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    library = cache_folder() / f"engine-{instructions.name}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        info(f"Native engine: compiling for {instructions.name} with {compiler[0]}, once")
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            compiled = Path(folder) / library.name
            _run((*compiler, *flags, str(SOURCE / "engine.c"), "-o", str(compiled), "-lm"))
            compiled.replace(library)
    return library


def cache_folder() -> Path:
    """Return $XDG_CACHE_HOME/dragoman, or ~/.cache/dragoman if that variable is not set."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dragoman"


def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _compiler() -> tuple[str, ...]:
    """Return $CC, or the first compiler that is installed."""
    if given := os.environ.get("CC"):
        return tuple(shlex.split(given))
    for name in _COMPILERS:
        if shutil.which(name):
            return (name,)
    raise NoCompilerError(
        "the native engine is compiled when it is first used, but no C compiler was found "
        f"({', '.join(_COMPILERS)}): install one (Debian, Ubuntu: apt install gcc), or use --engine torch"
    )


def _version(compiler: tuple[str, ...]) -> str:
    return _run((*compiler, "--version"))


def _run(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise NoCompilerError(
            f"the C compiler {command[0]} cannot be run ({error}): set CC, or use --engine torch"
        ) from None
    if done.returncode:
        output = (done.stderr or done.stdout).strip().splitlines()
        first = next(
            (line for line in output if "error" in line), output[0] if output else f"exit code {done.returncode}"
        )
        raise NoCompilerError(
            f"the C compiler {command[0]} cannot compile the native engine ({first}): set CC to another compiler, or "
            "use --engine torch"
        )
    return done.stdout
