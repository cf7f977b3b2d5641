"""The compiled aligner on every instruction set, and under sanitizers."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import alignment_runs
import pytest
from alignment_runs import KINDS, aligned, use_library
from sanitizers import sanitizer_library

from dragoman.native import build
from dragoman.native.build import best_library, compiled_library
from dragoman.native.compiler import ALIGNMENT, InstructionSet, available, compile_library
from dragoman.statistical.alignment.estimation.library import functions


@pytest.fixture
def best() -> Iterator[Path]:
    """The library of the best instruction set, which is used again at the end."""
    path = best_library(ALIGNMENT)
    yield path
    build.best_library = best_library  # type: ignore[attr-defined]
    functions.cache_clear()


@pytest.mark.parametrize("instructions", available()[1:], ids=lambda each: each.name)
def test_instruction_sets_agree(instructions: InstructionSet, best: Path) -> None:
    """Sums of floats are rounded differently, so that alignments are equal only if there are no near-ties."""
    for kind in ("ibm2", "diagonal", "hmm"):
        use_library(best)
        *_, forward, reverse = aligned(kind)
        use_library(compiled_library(instructions, ALIGNMENT))
        *_, other_forward, other_reverse = aligned(kind)
        assert other_forward == pytest.approx(forward, abs=1e-9)
        assert other_reverse == pytest.approx(reverse, abs=1e-9)


@pytest.mark.slow
def test_address_and_undefined_behaviour_sanitizers(tmp_path: Path) -> None:
    """They report no error for any method, with blank, short and long texts."""
    preload = [sanitizer_library(name) for name in ("libasan.so", "libubsan.so")]
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0", "-g")
    path = tmp_path / "alignment.so"
    path.write_bytes(compile_library(["cc"], available()[0], tmp_path, flags, ALIGNMENT))
    settings = {
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, alignment_runs.__file__, str(path)]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "aligned\n" and len(KINDS) >= 5
