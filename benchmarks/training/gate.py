"""`Gate`: in a program's process, starts windows of updates at the request of the measuring process."""

import json
import os
import resource
import time
from typing import Any


class Gate:
    """Called between updates. The first `next` reports that the program is ready; a window ends with its last update.

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
        """Called before each update; the previous one, if any, is done."""
        if self._left > 0:
            self._left -= 1
            return
        self._say(self._result() if self._open else {"ready": True, **self.facts})
        self._left = self._wait() - 1
        self._open = True
        self._counted.clear()
        self._begin = self._now()

    def count(self, tokens: Any, padded: int, loss: Any) -> None:
        """Record an update: target tokens without padding, including the end of each sentence; the same with padding;
        and the loss per token (nats). Numbers or tensors, which are read at the end of the window, or a function that
        returns the loss then."""
        self._counted.append((tokens, loss, padded))

    def fail(self, why: str) -> None:
        """Report why this program is not available, and exit."""
        self._say({"skipped": why})
        os._exit(0)

    def _result(self) -> dict[str, Any]:
        seconds = self._now() - self._begin
        tokens = [int(tokens) for tokens, _, _ in self._counted]
        losses = [float(loss() if callable(loss) else loss) for _, loss, _ in self._counted]
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
            os._exit(0)  # the measuring process is done, or has ended
        return int(json.loads(line)["updates"])
