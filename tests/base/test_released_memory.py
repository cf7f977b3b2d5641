"""Memory that was freed is returned to the system."""

import subprocess
import sys

import pytest

PROGRAM = """
from dragoman.base.machine.memory import limit_arenas, release_free_memory, resident_memory
limit_arenas(2)
blocks = [bytearray(50_000) for _ in range(4000)]
last = bytearray(50_000)  # malloc returns only the memory after the last block by itself
full = resident_memory()
blocks.clear()
freed = resident_memory()
release_free_memory()
print(full - freed, freed - resident_memory())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_freed_memory_is_returned() -> None:
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    kept, returned = map(int, found)
    assert kept + returned > 150_000_000 and (returned > 100_000_000 or kept > 150_000_000)
