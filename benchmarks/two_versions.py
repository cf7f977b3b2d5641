"""Compare the time of a command of two checkouts, whose processes run by turns.

    python benchmarks/two_versions.py OLD NEW --rounds 6 -- translate runs/en-de --input test.en --output OUT

Both processes start together, and each runs for a fraction of a second while the other one is stopped (SIGSTOP), so
that both see the same changes of the machine's speed: the ratios spread less than those of runs one after the other.
OUT is replaced by a path that does not exist. Prints the ratios OLD / NEW of wall time and CPU time: median, smallest
and largest. A ratio above 1 means that NEW is faster.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Times(NamedTuple):
    """Seconds of one process."""

    wall: float
    cpu: float


class Turns:
    """A command of one checkout that is continued and stopped."""

    def __init__(self, checkout: Path, arguments: Sequence[str], folder: Path) -> None:
        folder.mkdir()
        out = str(folder / "out")
        command = [sys.executable, "-m", "dragoman", *(out if each == "OUT" else each for each in arguments)]
        self._errors = folder / "errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        os.killpg(self._process.pid, signal.SIGSTOP)
        self._wall = 0.0

    def run(self, seconds: float) -> Times | None:
        """Run for a number of seconds. Returns the times of the process if it has ended, and exits if it failed."""
        os.killpg(self._process.pid, signal.SIGCONT)
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            ended, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if ended:
                if status:
                    sys.exit(self._errors.read_text(errors="replace")[-2000:])
                return Times(self._wall + time.perf_counter() - start, usage.ru_utime + usage.ru_stime)
            time.sleep(0.002)
        self._wall += time.perf_counter() - start
        os.killpg(self._process.pid, signal.SIGSTOP)
        return None


def compare(checkouts: Sequence[Path], arguments: Sequence[str], seconds: float) -> list[Times]:
    """Run the command of both checkouts by turns. Returns the times in the order of the checkouts."""
    found: dict[Path, Times] = {}
    with tempfile.TemporaryDirectory() as folder:
        running = {each: Turns(each, arguments, Path(folder, str(row))) for row, each in enumerate(checkouts)}
        while running:
            for checkout, turns in list(running.items()):
                if (times := turns.run(seconds)) is not None:
                    found[checkout] = times
                    del running[checkout]
    return [found[each] for each in checkouts]


def main() -> None:
    """Print the ratios of all rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a turn")
    parser.add_argument("arguments", nargs="+", help="of dragoman, after --")
    options = parser.parse_args()
    rounds = []
    for number in range(options.rounds):  # each checkout begins in half of the rounds
        order = [options.old, options.new][:: 1 if number % 2 else -1]
        times = dict(zip(order, compare(order, options.arguments, options.seconds), strict=True))
        rounds.append((times[options.old], times[options.new]))
    for name in Times._fields:
        ratios = [getattr(old, name) / getattr(new, name) for old, new in rounds]
        print(f"{name}: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
