"""`Contender`: a program in a process of its own, asked for one window of updates at a time."""

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
"""glibc keeps large tensors on the heap (mallopt(3))."""


def allocator() -> dict[str, str]:
    """The environment of a tuned program: with tcmalloc where this machine has it, as `dragoman train` has it."""
    library = find_tcmalloc()
    return {"LD_PRELOAD": library} if library else _ON_HEAP


def environment(threads: int, tuned: bool) -> dict[str, str]:
    """Of a program's process: this one's, with so many threads; tuned: with `allocator()`, else as installed."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    variables.pop("LD_PRELOAD", None)
    variables |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
    paths = [os.path.abspath(each) for each in variables.get("PYTHONPATH", "").split(os.pathsep) if each]
    variables["PYTHONPATH"] = os.pathsep.join(paths)
    return variables | (allocator() if tuned else {})


class Skipped(Exception):
    """The program cannot take part; the message says why."""


@dataclass
class Contender:
    """name: as results show it; program: the module of `programs`; tuned: whether its process gets `allocator()`.

    options: for the program; facts: what it said when it was ready.
    """

    name: str
    program: str
    bf16: bool = False
    tuned: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def start(self, python: str, task: dict[str, Any], own: Path, patience: float) -> None:
        """Start it and wait until its first update could begin. Raises Skipped; what it wrote is in `own`/output."""
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
        """Let it make some updates. Raises Skipped if it does not survive them."""
        with suppress(BrokenPipeError):  # then the answer says what happened
            os.write(self._writing, (json.dumps({"updates": updates}) + "\n").encode())
        return self._answer(patience)

    def stop(self) -> None:
        """End it."""
        if self._process is None:
            return
        os.close(self._writing)  # at which its gate ends it
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
