"""`WorkerPool`: processes that translate for a server with one copy of a model's weights; one that ends is replaced."""

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
from typing import Any
from weakref import finalize

from dragoman.base.errors import ResourceError
from dragoman.base.log import warn
from dragoman.serving.prefork import ALONE, Done, Failed, Nursed, Ready, with_tokenizer
from dragoman.serving.queue import Found
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.request import TextRequest

_TRIES = 2
"""Processes that a batch is given to, one after another, while they end at it."""


class _Ended(Exception):
    """The process at the other end is there no more, or says nothing."""


class WorkerPool:
    """Batches go to a worker that is free, each to one. Safe between threads.

    A nursery (`serving.prefork`) holds the model and forks them, at first and whenever one has ended; what that
    one had at hand another one gets. All end when the pool is closed, or nobody has it any more.
    """

    def __init__(self, nursed: Nursed, count: int, tokenizer: Tokenizer) -> None:
        """tokenizer: of the model's target. Raises what loading the model raises."""
        self._nursed, self._tokenizer, self._lock = nursed, tokenizer, Lock()
        self._free: SimpleQueue[_Worker] = SimpleQueue()
        self._processes = _Processes(_Nursery(nursed))
        self.close = finalize(self, self._processes.close)
        """Ends all processes."""
        self.is_shared = self._processes.nursery.is_shared
        """Whether all have one copy of the weights."""
        for _ in range(count):
            self._free.put(self._processes.new_worker())

    def translate(self, lines: Sequence[TextRequest], batch_lines: int) -> Iterator[Found]:
        """The hypotheses of each line, in order, as `Translator.translate_window`, whose errors it raises.

        Raises ResourceError where one process after another ends at these lines.
        """
        done = 0
        for _ in range(_TRIES):
            worker = self._free.get()
            if worker.has_ended:  # while it had nothing to do: that says nothing about these lines
                worker = self._instead_of(worker)
            try:
                for found in worker.translate(lines[done:], batch_lines, self._nursed.engine.worker_seconds):
                    yield with_tokenizer(found, self._tokenizer)
                    done += 1
                return
            except _Ended:
                pass
            finally:
                self._free.put(worker if worker.is_usable else self._instead_of(worker))
        raise ResourceError("one process after another ended while it translated this, perhaps for want of memory")

    def _instead_of(self, worker: "_Worker") -> "_Worker":
        """Another. Where there is none to be had, the same, so that whoever is given it tries again."""
        model = self._nursed.model.path
        warn(f"process {worker.identity}, which translated by {model}, has ended: another one begins")
        with self._lock:
            self._processes.end(worker)
            try:
                try:
                    return self._processes.new_worker()
                except _Ended:
                    self._processes.nursery.close()
                    self._processes.nursery = _Nursery(self._nursed)
                    return self._processes.new_worker()
            except Exception as error:  # whatever it is: a worker that is not given back would be waited for in vain
                warn(f"no other process translates by {model}: {error}")
                return worker


class _Processes:
    """All that a pool has."""

    def __init__(self, nursery: "_Nursery") -> None:
        self.nursery = nursery
        self.workers: list[_Worker] = []

    def new_worker(self) -> "_Worker":
        worker = self.nursery.worker()
        self.workers.append(worker)
        return worker

    def end(self, worker: "_Worker") -> None:
        worker.close()
        if worker in self.workers:
            self.workers.remove(worker)

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.nursery.close()


class _Nursery:
    """The process that forks."""

    def __init__(self, nursed: Nursed) -> None:
        """Raises what loading the model raises."""
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from dragoman.serving.prefork import main; main()", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ALONE},
            )
        with closing(Connection(os.dup(self._control.fileno()))) as talk:
            try:
                talk.send(nursed)
                self.is_shared = _ready(talk).is_shared
            except BaseException as error:
                self.close()
                if isinstance(error, _Ended):
                    raise ResourceError(f"the process that loads {nursed.model.path} has ended") from None
                raise

    def worker(self) -> "_Worker":
        """A new one, that is ready. Raises what loading the model raises, and _Ended."""
        try:
            self._control.send(b"f")
            identity, descriptors, _, _ = socket.recv_fds(self._control, 8, 1)
        except OSError:
            raise _Ended from None
        if not descriptors:
            raise _Ended
        worker = _Worker(int.from_bytes(identity, "little"), Connection(descriptors[0]))
        try:
            _ready(worker.connection)
        except BaseException:
            worker.close()
            raise
        return worker

    def close(self) -> None:
        """It ends; the workers do not."""
        self._control.close()
        self._process.wait()


class _Worker:
    """A process that translates. It ends when its connection is closed."""

    def __init__(self, identity: int, connection: Connection) -> None:
        self.identity, self.connection = identity, connection
        self.is_usable = True
        """Whether it waits for a batch."""

    @property
    def has_ended(self) -> bool:
        """Of one that waits for a batch."""
        try:
            return self.connection.poll()
        except OSError:
            return True

    def translate(self, lines: Sequence[TextRequest], batch_lines: int, seconds: float) -> Iterator[Found]:
        """Raises _Ended, also where it is silent for so long, and what the translating raises."""
        self.is_usable = False  # until all it says was heard
        try:
            self.connection.send((list(lines), batch_lines))
        except OSError:
            raise _Ended from None
        while not isinstance(answer := self._answer(seconds), Done | Failed):
            yield answer
        self.is_usable = True
        if isinstance(answer, Failed):
            raise answer.error

    def close(self) -> None:
        with suppress(OSError):
            self.connection.close()

    def _answer(self, seconds: float) -> Any:
        """Raises _Ended; whoever is silent for so long is killed."""
        try:
            if not self.connection.poll(seconds):
                warn(f"process {self.identity} has been silent over a batch for {seconds:g} s: it is killed")
                os.kill(self.identity, signal.SIGKILL)  # its socket is open, so it is no other process
                raise _Ended
        except OSError:
            raise _Ended from None
        return _heard(self.connection)


def _ready(connection: Connection) -> Ready:
    answer = _heard(connection)
    if isinstance(answer, Failed):
        raise answer.error
    assert isinstance(answer, Ready)
    return answer


def _heard(connection: Connection) -> Any:
    """Raises _Ended."""
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise _Ended from None
