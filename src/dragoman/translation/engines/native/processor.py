"""What the processor can do: the instruction sets that the native engine's kernels are written for."""

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class InstructionSet:
    """flags: of the compiler; needs: what /proc/cpuinfo says of a processor that has it."""

    name: str
    flags: tuple[str, ...]
    needs: frozenset[str]


_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
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
    """Those that this processor has, best first."""
    found = _flags() if platform.machine().lower() in ("x86_64", "amd64") else frozenset()
    return tuple(each for each in INSTRUCTION_SETS if each.needs <= found)


def _flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
