"""Lists the C libraries and the instruction sets, and compiles libraries for them.

This module imports only the standard library, because `hatch_build.py` loads it by its path when a wheel is built.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-ffp-contract=fast", "-fno-math-errno", "-Wno-psabi")
_COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 300
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_SEAL = b"dragoman sha256 "
_SEAL_BYTES = len(_SEAL) + hashlib.sha256().digest_size


class CompilerError(Exception):
    """A compiler cannot be run or has failed."""


@dataclass(frozen=True)
class LibrarySource:
    """The C source code of a library. Each library is compiled and cached separately.

    name: the name of its folder in `source/` and of its main file, without the suffix. title: the library's name in
    messages. remedy: how users can work without the library, for messages; empty if they cannot.
    """

    name: str
    title: str
    remedy: str = ""

    @property
    def folder(self) -> Path:
        """The folder with the source files."""
        return Path(__file__).parent / "source" / self.name


ENGINE = LibrarySource("engine", "the native engine", "use --engine torch")
ALIGNMENT = LibrarySource("alignment", "the word aligner")
NGRAMS = LibrarySource("ngrams", "the library for n-gram models")
PHRASES = LibrarySource("phrases", "the library for phrase-based translation")
CHART = LibrarySource("chart", "the library for chart parsing", "train with model.head.kind=tree_decoder")
TRAINING = LibrarySource("training", "the library for training")
LIBRARIES = (ENGINE, ALIGNMENT, NGRAMS, PHRASES, CHART, TRAINING)
"""All libraries. Wheels contain each of them for all instruction sets."""


@dataclass(frozen=True)
class InstructionSet:
    """An instruction set that the kernels are compiled for.

    flags: for the compiler. needs: the flags in /proc/cpuinfo of a processor that supports it. machines: the kinds of
    processors that have it, as `machine` names them; empty for all.
    """

    name: str
    flags: tuple[str, ...]
    needs: frozenset[str]
    machines: tuple[str, ...] = ("x86_64",)


INSTRUCTION_SETS = (
    InstructionSet(
        "avx512", tuple(f"-m{each}" for each in (*_AVX512, "avx512vnni", "fma")), frozenset((*_AVX512, "avx512_vnni"))
    ),
    InstructionSet("avxvnni", ("-mavx2", "-mfma", "-mavxvnni"), frozenset(("avx2", "fma", "avx_vnni"))),
    InstructionSet("avx2", ("-mavx2", "-mfma"), frozenset(("avx2", "fma"))),
    InstructionSet("portable", (), frozenset(), machines=()),
)
"""All instruction sets, best first. The last one is plain C, which runs on any processor."""


def machine() -> str:
    """Return the architecture of this processor, such as x86_64 or aarch64."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@cache
def available() -> tuple[InstructionSet, ...]:
    """Return the instruction sets that this processor supports, best first."""
    supported = _processor_flags()
    return tuple(each for each in compilable(machine()) if each.needs <= supported)


def compilable(processor: str) -> tuple[InstructionSet, ...]:
    """Return the instruction sets of all processors of an architecture, best first."""
    return tuple(each for each in INSTRUCTION_SETS if not each.machines or processor in each.machines)


def library_name(
    instructions: InstructionSet, compiler: str = "", processor: str | None = None, source: LibrarySource = ENGINE
) -> str:
    """Return the file name of a library, with a digest of everything that determines its content.

    compiler: the compiler that the user has chosen; its libraries have different names from those of the default
    compiler. processor: the architecture that the library is compiled for; None for the architecture of this machine.
    """
    parts = (processor or machine(), compiler, *_FLAGS, *instructions.flags)
    digest = hashlib.sha256("\0".join(parts).encode())
    for file in sorted((*source.folder.iterdir(), *(source.folder.parent / "common").iterdir())):
        digest.update(file.read_bytes())
    return f"{source.name}-{instructions.name}-{digest.hexdigest()[:16]}.so"


def compilers() -> list[tuple[str, ...]]:
    """Return the command of each installed compiler, or only the command in $CC if this variable is set."""
    if given := os.environ.get("CC", "").strip():
        try:
            return [tuple(shlex.split(given))]
        except ValueError:  # $CC contains an unclosed quote
            return [(given,)]
    return [(name,) for name in _COMPILERS if shutil.which(name)]


def compile_library(
    compiler: Sequence[str],
    instructions: InstructionSet,
    folder: Path,
    extra_flags: Sequence[str] = (),
    source: LibrarySource = ENGINE,
) -> bytes:
    """Compile a library and return its sealed content. folder: contains temporary files.

    extra_flags: further flags for the compiler, such as sanitizers. Raises CompilerError.
    """
    out, main = folder / f"{source.name}.so", source.folder / f"{source.name}.c"
    command = [*compiler, *_FLAGS, *instructions.flags, *extra_flags, str(main), "-o", str(out), "-lm"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=_SECONDS,
        )
    except OSError as error:
        raise CompilerError(f"the C compiler {compiler[0]} cannot be run ({error.strerror or error})") from None
    except subprocess.TimeoutExpired:
        raise CompilerError(f"the C compiler {compiler[0]} has not finished after {_SECONDS} seconds") from None
    if done.returncode or not out.is_file():
        output = (done.stderr or done.stdout).strip().splitlines()
        last = output[0] if output else f"exit code {done.returncode}"
        first = next((line for line in output if "error" in line), last)
        raise CompilerError(f"the C compiler {compiler[0]} cannot compile {source.title} ({first})")
    content = out.read_bytes()
    out.unlink()
    return seal(content)


def seal(content: bytes) -> bytes:
    """Append a digest, so that damage is detected before a library is loaded. Library loaders ignore the digest."""
    return content + _SEAL + hashlib.sha256(content).digest()


def is_intact(content: bytes) -> bool:
    """Return whether a sealed file is undamaged. Loading a truncated library could crash the process."""
    body, end = content[:-_SEAL_BYTES], content[-_SEAL_BYTES:]
    return end == _SEAL + hashlib.sha256(body).digest()


def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
