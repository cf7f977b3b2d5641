"""`Run`: one contender on one machine, in a folder: started, continued and evaluated."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from child import MISSING
from contender import environment
from contenders import Contender
from ledger import Ledger, Mark
from pieces import detokenised, processor_of, read_lines
from results import Line

from dragoman.metrics.bleu import BLEU

_LOOK = 5.0
"""Polling interval for new points (seconds)."""


class Failed(Exception):
    """The program did not reach its limit; the message gives the reason."""


@dataclass(frozen=True)
class Conditions:
    """The common conditions. every: minimum number of minutes between points; data: folder of the peers' corpus."""

    data: Path
    machine: dict[str, Any]
    threads: int
    minutes: float
    every: float
    seed: int
    bf16: bool


class Run:
    """folder: of this run only. Raises Failed if it contains a run under other conditions."""

    def __init__(self, contender: Contender, conditions: Conditions, out: Path) -> None:
        self.contender, self.conditions = contender, conditions
        limit = f"-{conditions.minutes:g}min" if contender.fitted else ""
        self.folder = out / "runs" / f"{contender.name}{limit}-seed{conditions.seed}"
        self.ledger = Ledger(self.folder)
        self._scores: dict[int, float] = {}
        self._signature = ""
        self._bf16 = self._begin()

    @property
    def done(self) -> bool:
        """Return whether the run has reached this limit, or a later one."""
        return self._done().get("minutes", 0.0) >= self.conditions.minutes

    def sit(self, python: str) -> None:
        """Train until the limit. Raises Failed; the progress is kept, and the next call continues."""
        self._look(tell=False)
        process = self._start(python)
        while True:
            try:
                code: int | None = process.wait(_LOOK)
            except subprocess.TimeoutExpired:
                code = None
            self._look()
            if code is None:
                continue
            if code == 0:
                return
            last = " ".join((self.folder / "output").read_text("utf-8", "replace").strip().splitlines()[-1:])
            why = last if code == MISSING else f"its process ended ({code}): {last}; see {self.folder / 'output'}"
            raise Failed(why)

    def line(self) -> Line:
        """The result."""
        self._look(tell=False)
        contender, conditions = self.contender, self.conditions
        points = self._points()
        last, done = points[-1], self._done()
        return {
            "name": contender.name,
            "title": contender.title,
            "fitted": contender.fitted,
            "machine": conditions.machine,
            "threads": conditions.threads,
            "seed": conditions.seed,
            "minutes": done["minutes"],
            "updates": last.updates,
            "tokens": last.tokens,
            "seconds": last.seconds,
            "cpu_seconds": last.cpu_seconds,
            "own_seconds": last.own_seconds,
            "sittings": last.sitting,
            "facts": done["facts"],
            "signature": self._signature,
            "points": [
                {"minutes": mark.seconds / 60, "updates": mark.updates, "bleu": self._scores[mark.updates]}
                for mark in points
            ],
        }

    def _begin(self) -> bool:
        """Return whether a run that can choose uses bfloat16: this is measured, so the first measurement is kept."""
        conditions = self.conditions
        wanted = {"machine": conditions.machine, "threads": conditions.threads, "every": conditions.every}
        path = self.folder / "conditions.json"
        if not path.exists():
            path.write_text(json.dumps({**wanted, "bf16": conditions.bf16}, indent=1), "utf-8")
        began = json.loads(path.read_text("utf-8"))
        other = [f"{name} was {began[name]} and is {value}" for name, value in wanted.items() if began[name] != value]
        if other:
            raise Failed(f"{self.folder} was started under other conditions ({', '.join(other)}): choose another --out")
        return bool(began["bf16"])

    def _done(self) -> dict[str, Any]:
        path = self.folder / "done.json"
        return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}

    def _points(self) -> list[Mark]:
        return [mark for mark in self.ledger.marks() if mark.point and self.ledger.translations(mark.updates).exists()]

    def _look(self, tell: bool = True) -> None:
        """Score new points."""
        known = {mark.updates: mark for mark in self._points()}
        for updates in self._scores.keys() - known.keys():
            del self._scores[updates]
        for mark in (known[updates] for updates in sorted(known.keys() - self._scores.keys())):
            self._scores[mark.updates] = self._score(read_lines(self.ledger.translations(mark.updates)))
            if not tell:
                continue
            print(
                f"{time.strftime('%H:%M:%S')} {self.contender.name}: {mark.seconds / 60:.2f} minutes, "
                f"{mark.updates:,} updates: BLEU {self._scores[mark.updates]:.2f}",
                flush=True,
            )

    def _score(self, lines: Sequence[str]) -> float:
        data = self.conditions.data
        texts = detokenised(lines, processor_of(data)) if self.contender.writes_ids else list(lines)
        score = BLEU().score(texts, read_lines(data / "text" / "valid.target"))
        self._signature = score.signature
        return score.value

    def _start(self, python: str) -> subprocess.Popen[bytes]:
        """Start the process, which ends with this one, because only this one has the writing end of the pipe."""
        conditions = self.conditions
        reading, self._writing = os.pipe()
        asked = {
            "trainer": self.contender.trainer,
            "minutes": conditions.minutes,
            "every": conditions.every,
            "pipe": reading,
            "task": {
                "folder": str(conditions.data.resolve()),
                "own": str(self.folder.resolve()),
                "model": "small",
                "tokens": 4096,
                "bf16": self._bf16,
                "device": "cpu",
                "threads": conditions.threads,
                "seed": conditions.seed,
                "options": {**self.contender.options, "minutes": conditions.minutes},
            },
        }
        with (self.folder / "output").open("a") as output:
            process = subprocess.Popen(
                [python, str(Path(__file__).parent / "child.py"), json.dumps(asked)],
                env={**environment(conditions.threads, tuned=True), "CUDA_VISIBLE_DEVICES": ""},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(reading,),
            )
        os.close(reading)
        return process


def interpreter(given: dict[str, str], contender: Contender) -> str:
    """Return the Python interpreter by the contender's name, by its trainer's, or this one."""
    return given.get(contender.name) or given.get(contender.trainer) or sys.executable
