"""Building the engine's library from its C sources, once a machine and instruction set."""

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from dragoman.base.errors import ResourceError
from dragoman.base.log import info
from dragoman.translation.engines.native.processor import InstructionSet

SOURCE = Path(__file__).parent / "source"
_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi")
_COMPILERS = ("cc", "gcc", "clang")


class NoCompilerError(ResourceError):
    """There is no C compiler, or it cannot compile the sources."""


def built(chosen: InstructionSet, extra: tuple[str, ...] = ()) -> Path:
    """The library for an instruction set, compiled where it is not there yet.

    It lies in the user's cache folder, under a name that holds a digest of sources, flags and compiler. extra: more
    flags, such as sanitizers. Raises NoCompilerError.
    """
    compiler = _compiler()
    flags = (*_FLAGS, *chosen.flags, *extra)
    digest = hashlib.sha256("\0".join((*compiler, _version(compiler), *flags)).encode())
    for file in sorted(SOURCE.iterdir()):
        digest.update(file.read_bytes())
    library = cache_folder() / f"engine-{chosen.name}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        info(f"Native engine: compiling for {chosen.name} with {compiler[0]}, once")
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder) / library.name
            _run((*compiler, *flags, str(SOURCE / "engine.c"), "-o", str(made), "-lm"))
            made.replace(library)
    return library


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/dragoman, ~/.cache/dragoman where that is not set."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dragoman"


def _compiler() -> tuple[str, ...]:
    """$CC, or the first that is found."""
    if given := os.environ.get("CC"):
        return tuple(shlex.split(given))
    for name in _COMPILERS:
        if shutil.which(name):
            return (name,)
    raise NoCompilerError(
        f"the native engine is compiled when it is first used, and there is no C compiler ({', '.join(_COMPILERS)}): "
        "install one (Debian, Ubuntu: apt install gcc), or use --engine torch"
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
        said = (done.stderr or done.stdout).strip().splitlines()
        first = next((line for line in said if "error" in line), said[0] if said else f"exit code {done.returncode}")
        raise NoCompilerError(
            f"the C compiler {command[0]} cannot make the native engine ({first}): set CC to another one, or use "
            "--engine torch"
        )
    return done.stdout
