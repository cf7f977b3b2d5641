"""`WorkerPool`: worker processes that share one copy of a model's weights. A worker that ends is replaced."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any
from weakref import finalize

from dragoman.addons.serving.models.prefork import (
    ENVIRONMENT,
    Batch,
    BatchDone,
    CancelBatch,
    Failure,
    ProcessReady,
    WorkerSpec,
    attach_tokenizer,
)
from dragoman.addons.serving.queueing.line_queue import Hypotheses
from dragoman.base.cancellation import Cancellation, active_cancellation, check_cancelled
from dragoman.base.errors import ResourceError
from dragoman.base.log import warn
from dragoman.inference.translation.request import TextRequest
from dragoman.text.tokenizer import Tokenizer

_ATTEMPTS = 2
"""Maximum number of workers that attempt a batch, one after another, if they end while translating it."""

_POLL_SECONDS = 0.05
"""Time in seconds between two checks for cancellation."""


class _WorkerEnded(Exception):
    """The process at the other end of a connection has ended or does not respond."""


class WorkerPool:
    """A thread-safe `Backend` that translates each batch in an idle worker process.

    A prefork process (`addons.serving.models.prefork`) holds the model and forks the workers. A worker that ends is
    replaced, and another worker translates its batch. All processes end when the pool is closed or garbage-collected.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        count: int,
        tokenizer: Tokenizer,
        batch_lines: int = 64,
        parent: "WorkerPool | None" = None,
    ) -> None:
        """count: the number of workers; tokenizer: the model's target tokenizer; batch_lines: lines decoded together.

        parent: a pool whose prefork process forks these workers, and whose end is theirs; None for an own process.
        Raises the errors of `load_translator`.
        """
        self._spec, self._tokenizer, self._batch_lines, self._parent = spec, tokenizer, batch_lines, parent
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._processes: _Processes = _Processes(_Prefork(spec)) if parent is None else parent._processes
        self._end = None if parent is not None else finalize(self, self._processes.close)
        self.is_shared = self._processes.prefork.is_shared
        """Whether all workers share one copy of the weights."""
        self.precision = self._processes.prefork.precision
        """See `Engine.precision`."""
        for _ in range(count):
            with self._processes.lock:
                self._idle.put(self._processes.new_worker())

    def extended(self, count: int) -> "WorkerPool":
        """Return a pool of further workers that share the weights of this pool's workers, and end with them."""
        return WorkerPool(self._spec, count, self._tokenizer, self._batch_lines, self)

    def translate(self, lines: Sequence[TextRequest]) -> Iterator[Hypotheses]:
        """Yield the hypotheses of each line in order. Raises the errors of `Translator.translate_window`.

        Raises ResourceError if several workers in a row end while they translate these lines.
        """
        done = 0
        for _ in range(_ATTEMPTS):
            worker = self._idle.get()
            if worker.has_ended:  # it ended while idle, so these lines are not the cause
                worker = self._replace(worker)
            try:
                for hypotheses in worker.translate(lines[done:], self._batch_lines, self._spec.engine.worker_seconds):
                    yield attach_tokenizer(hypotheses, self._tokenizer)
                    done += 1
                return
            except _WorkerEnded:
                pass
            finally:
                self._idle.put(worker if worker.is_idle else self._replace(worker))
        raise ResourceError("several worker processes ended while translating this: they may have run out of memory")

    def continuous(self) -> None:
        """Return None, because workers do not support continuous batches."""
        return None

    def close(self) -> None:
        """End all processes, unless they belong to another pool."""
        if self._end is not None:
            self._end()

    def _replace(self, worker: "_Worker") -> "_Worker":
        """Replace a worker that has ended. If that fails, return the same worker; the next batch tries again."""
        model = self._spec.model.path
        warn(f"worker process {worker.pid} of {model} has ended: starting another one")
        with self._processes.lock:
            self._processes.end(worker)
            try:
                try:
                    return self._processes.new_worker()
                except _WorkerEnded:
                    self._processes.prefork.close()
                    self._processes.prefork = _Prefork(self._spec)
                    return self._processes.new_worker()
            except Exception as error:  # any error, because a worker that is not returned would be awaited forever
                warn(f"cannot start another worker process for {model}: {error}")
                return worker


class _Processes:
    """All processes of a pool, and of the pools that extend it. lock: held while processes are started or ended."""

    def __init__(self, prefork: "_Prefork") -> None:
        self.prefork, self.lock = prefork, Lock()
        self.workers: list[_Worker] = []

    def new_worker(self) -> "_Worker":
        worker = self.prefork.fork()
        self.workers.append(worker)
        return worker

    def end(self, worker: "_Worker") -> None:
        worker.close()
        if worker in self.workers:
            self.workers.remove(worker)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.prefork.close()


class _Prefork:
    """A running prefork process."""

    def __init__(self, spec: WorkerSpec) -> None:
        """Start the process. Raises the errors of `load_translator`."""
        self._control, child_end = socket.socketpair()
        with child_end:
            self._process = subprocess.Popen(
                # with `-m`, the classes of its messages would belong to `__main__`, and could not be unpickled
                [
                    sys.executable,
                    "-c",
                    "from dragoman.addons.serving.models.prefork import main; main()",
                    str(child_end.fileno()),
                ],
                pass_fds=[child_end.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ENVIRONMENT},
            )
        with closing(Connection(os.dup(self._control.fileno()))) as connection:
            try:
                connection.send(spec)
                ready = _await_ready(connection)
                self.is_shared, self.precision = ready.is_shared, ready.precision
            except BaseException as error:
                self.close()
                if isinstance(error, _WorkerEnded):
                    raise ResourceError(f"the process that loads {spec.model.path} has ended") from None
                raise

    def fork(self) -> "_Worker":
        """Return a new worker that is ready. Raises _WorkerEnded and the errors of `load_translator`."""
        try:
            self._control.send(b"f")
            pid, descriptors, _, _ = socket.recv_fds(self._control, 8, 1)
        except OSError:
            raise _WorkerEnded from None
        if not descriptors:
            raise _WorkerEnded
        worker = _Worker(int.from_bytes(pid, "little"), Connection(descriptors[0]))
        try:
            _await_ready(worker.connection)
        except BaseException:
            worker.close()
            raise
        return worker

    def close(self) -> None:
        """End the process, but not its workers."""
        self._control.close()
        self._process.wait()


class _Worker:
    """A worker process. It ends when its connection is closed."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid, self.connection = pid, connection
        self._number = 0
        self.is_idle = True
        """Whether the worker is waiting for a batch."""

    @property
    def has_ended(self) -> bool:
        """Whether an idle worker has ended."""
        try:
            return self.connection.poll()
        except OSError:
            return True

    def translate(self, lines: Sequence[TextRequest], batch_lines: int, seconds: float) -> Iterator[Hypotheses]:
        """Yield the hypotheses of each line. seconds: the timeout for each message.

        Raises _WorkerEnded if the worker ends or a message does not arrive in time, Cancelled, and the errors of the
        translation.
        """
        self.is_idle = False  # until all results have been received
        self._number += 1
        self._send(Batch(self._number, list(lines), batch_lines))
        cancellation, is_cancelled = active_cancellation() or Cancellation(), False
        while not isinstance(answer := self._receive(seconds, cancellation), BatchDone | Failure):
            if answer is not None:
                yield answer
            elif not is_cancelled:
                is_cancelled = True
                self._send(CancelBatch(self._number))
                cancellation = Cancellation()  # so that the remaining messages are awaited
        self.is_idle = True
        check_cancelled()
        if isinstance(answer, Failure):
            raise answer.error

    def close(self) -> None:
        with suppress(OSError):
            self.connection.close()

    def _send(self, message: Batch | CancelBatch) -> None:
        try:
            self.connection.send(message)
        except OSError:
            raise _WorkerEnded from None

    def _receive(self, seconds: float, cancellation: Cancellation) -> Any:
        """Return the next message, or None once the translation is cancelled.

        A worker that sends nothing in time is killed. Raises _WorkerEnded.
        """
        deadline = monotonic() + seconds
        try:
            while not self.connection.poll(min(_POLL_SECONDS, max(0.0, deadline - monotonic()))):
                if cancellation.is_cancelled:
                    return None
                if monotonic() < deadline:
                    continue
                warn(f"killing worker process {self.pid}: no result for {seconds:g} s")
                os.kill(self.pid, signal.SIGKILL)  # its socket is open, so its pid has not been reused
                raise _WorkerEnded
        except OSError:
            raise _WorkerEnded from None
        return _receive(self.connection)


def _await_ready(connection: Connection) -> ProcessReady:
    answer = _receive(connection)
    if isinstance(answer, Failure):
        raise answer.error
    assert isinstance(answer, ProcessReady)
    return answer


def _receive(connection: Connection) -> Any:
    """Return the next message. Raises _WorkerEnded."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise _WorkerEnded from None
