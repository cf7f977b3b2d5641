"""The levels of instructions at which `make test-levels` runs the numerical tests."""

import os
import subprocess
import sys

import pytest
from levels import LEVELS, NUMERICAL, ROOT, Level, levels, processor_flags, pytest_arguments

from dragoman.native import compiler


def test_a_processor_has_the_levels_whose_flags_it_has() -> None:
    zen_3 = frozenset(("avx", "avx2", "fma", "sse4_2"))
    assert [level.name for level in levels(frozenset())] == ["baseline"]
    assert [level.name for level in levels(zen_3)] == ["baseline", "avx2"]
    assert levels(frozenset().union(*(level.needs for level in LEVELS))) == list(LEVELS)
    assert {"baseline"} <= {level.name for level in levels(processor_flags())}


def test_every_instruction_set_of_the_native_engine_has_a_level() -> None:
    known = {each.name: each for each in compiler.INSTRUCTION_SETS}
    assert {level.instructions for level in LEVELS} >= set(known)
    for level in LEVELS:
        if level.instructions in known:
            assert known[level.instructions].needs <= level.needs, level.name


def test_paths_replace_the_numerical_tests() -> None:
    level = LEVELS[0]
    assert pytest_arguments(level, ["-k", "bert"])[-5:] == [*NUMERICAL, "-k", "bert"]
    assert pytest_arguments(level, ["tests/parity/test_bert.py::test_x", "-n", "2"])[5:] == [
        "tests/parity/test_bert.py::test_x",
        "-n",
        "2",
    ]
    assert all((ROOT / folder).is_dir() for folder in NUMERICAL)


@pytest.mark.skipif("avx2" not in processor_flags(), reason="the processor has one level only")
@pytest.mark.parametrize("level", levels(processor_flags())[:1], ids=lambda each: each.name)
def test_a_level_limits_pytorch(level: Level) -> None:
    program = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    environment = {**os.environ, **level.environment()}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip().lower() == level.aten.lower()
