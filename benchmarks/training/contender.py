"""`Contender`: a program in a separate process, which runs one window of updates per request."""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.base.machine.startup import find_tcmalloc

_ON_HEAP = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "67108864",
}
"""Settings with which glibc keeps large tensors on the heap (mallopt(3))."""


def allocator() -> dict[str, str]:
    """Return the environment of a tuned program: tcmalloc if it is installed, as for `dragoman train`."""
    library = find_tcmalloc()
    return {"LD_PRELOAD": library} if library else _ON_HEAP


def environment(threads: int, tuned: bool) -> dict[str, str]:
    """Return the environment of a program's process. tuned: whether it includes `allocator()`."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    variables.pop("LD_PRELOAD", None)
    variables |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    paths = [os.path.abspath(each) for each in variables.get("PYTHONPATH", "").split(os.pathsep) if each]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    return variables | (allocator() if tuned else {})


class Skipped(Exception):
    """The program is not available; the message gives the reason."""


@dataclass
class Contender:
    """A program to measure. name: in results; program: its module in `programs`; tuned: whether it gets `allocator()`.

    options: for the program; facts: reported by it when it is ready.
    """

    name: str
    program: str
    bf16: bool = False
    tuned: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self, python: str, task: dict[str, Any], own: Path, patience: float) -> None:
        """Start the program and wait until it is ready. Raises Skipped; its output is in `own`/output."""
        own.mkdir(parents=True)
        commands, self._writing = os.pipe()
        reading, answers = os.pipe()
        asked = {
            **task,
            "program": self.program,
            "bf16": self.bf16,
            "options": self.options,
            "own": str(own),
            "pipes": [commands, answers],
        }
        self._output = own / "output"
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [python, str(Path(__file__).parent / "worker.py"), json.dumps(asked)],
                env=environment(task["threads"], self.tuned or self.program == "dragoman"),
                cwd=own,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(commands, answers),
            )
        os.close(commands)
        os.close(answers)
        self._answers = os.fdopen(reading, "r")
        self.facts = self._answer(patience)

    def window(self, updates: int, patience: float) -> dict[str, Any]:
        """Run a number of updates. Raises Skipped if the program fails."""
        with suppress(BrokenPipeError):  # then its answer contains the reason
            os.write(self._writing, (json.dumps({"updates": updates}) + "\n").encode())
        return self._answer(patience)

    def stop(self) -> None:
        """End the program."""
        if self._process is None:
            return
        os.close(self._writing)  # its gate then ends the process
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _answer(self, patience: float) -> dict[str, Any]:
        assert self._process is not None
        ready, _, _ = select.select([self._answers], [], [], patience)
        if not ready:
            self._process.kill()
            raise Skipped(f"no answer within {patience:.0f} s")
        line = self._answers.readline()
        if not line:
            last = self._output.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise Skipped(f"its process ended ({self._process.wait()}): {' '.join(last) or sys.executable}")
        answer: dict[str, Any] = json.loads(line)
        if "skipped" in answer:
            raise Skipped(answer["skipped"])
        return answer
