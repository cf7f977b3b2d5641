"""`Gate`: in a program's process, lets windows of updates through when the measuring process asks for one."""

import json
import os
import resource
import time
from typing import Any


class Gate:
    """Between updates. The first `next` says that the program is ready; a window ends where its last update has.

    clock: "wall" or "cpu" seconds of this process. cuda: wait for the GPU before the clock is read.
    """

    def __init__(self, reading: int, writing: int, clock: str, cuda: bool) -> None:
        self._reading, self._writing = os.fdopen(reading, "r"), os.fdopen(writing, "w")
        self._clock = time.process_time if clock == "cpu" else time.perf_counter
        self._cuda = cuda
        self._left = 0
        self._begin = 0.0
        self._open = False
        self._counted: list[tuple[Any, Any, int]] = []
        self.facts: dict[str, Any] = {}

    def next(self) -> None:
        """Before an update: the one before it, if any, is over."""
        if self._left > 0:
            self._left -= 1
            return
        self._say(self._result() if self._open else {"ready": True, **self.facts})
        self._left = self._wait() - 1
        self._open = True
        self._counted.clear()
        self._begin = self._now()

    def count(self, tokens: Any, padded: int, loss: Any) -> None:
        """What an update read: target tokens without padding, with the end of each sentence; the same with padding; and
        its loss a token (nats). Numbers or tensors, which are looked at when the window is over."""
        self._counted.append((tokens, loss, padded))

    def fail(self, why: str) -> None:
        """Say why this program cannot take part, and end."""
        self._say({"skipped": why})
        os._exit(0)

    def _result(self) -> dict[str, Any]:
        seconds = self._now() - self._begin
        tokens = [int(tokens) for tokens, _, _ in self._counted]
        losses = [float(loss) for _, loss, _ in self._counted]
        return {
            "seconds": seconds,
            "tokens": sum(tokens),
            "updates": len(tokens),
            "largest": max(padded for _, _, padded in self._counted),
            "loss": sum(loss * count for loss, count in zip(losses, tokens, strict=True)) / sum(tokens),
            "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }

    def _now(self) -> float:
        if self._cuda:
            import torch

            torch.cuda.synchronize()
        return self._clock()

    def _say(self, message: dict[str, Any]) -> None:
        self._writing.write(json.dumps(message) + "\n")
        self._writing.flush()

    def _wait(self) -> int:
        line = self._reading.readline()
        if not line:
            os._exit(0)  # the measuring process has what it wanted, or is gone
        return int(json.loads(line)["updates"])
