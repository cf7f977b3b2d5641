"""`Workers`: processes that apply one function to task after task; the results come in the order of the tasks.

Not multiprocessing.Pool or concurrent.futures: their workers outlive a parent that is killed, import the user's main
module again, and need semaphores. These hold nothing but one end of a pipe, and end when the other end does.
"""

import os
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, TypeVar

from dragoman.base.errors import ConfigError, DataError, DragomanError, ModelError, ResourceError

Task = TypeVar("Task")
Result = TypeVar("Result")

MOST = 16
"""One process hands out all tasks; more workers than this would wait for it."""

ALONE = 2
"""So few tasks are done here instead of starting processes."""

_PLAIN = (ConfigError, DataError, ModelError, ResourceError)
_SECONDS_TO_END = 2


def available_cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], count: int | None = None
) -> Iterator[Result]:
    """`function` of each task, in order, in `count` processes (None: one a core); few tasks, or with 0: in this one."""
    count = min(available_cores(), MOST) if count is None else count
    stream = iter(tasks)
    first = list(islice(stream, ALONE + 1))
    if count == 0 or len(first) <= ALONE:
        yield from map(function, chain(first, stream))
        return
    with Workers(function, count) as workers:
        yield from workers.map(chain(first, stream))


class Workers(Generic[Task, Result]):
    """Close it, or use `with`. function: is sent to the processes once; it, tasks and results can be pickled.

    threads: whether each process may use threads of its own.
    """

    def __init__(self, function: Callable[[Task], Result], count: int, threads: bool = False) -> None:
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        if not threads:
            self._environment |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._processes: dict[Connection, subprocess.Popen[bytes]] = {}
        try:
            for _ in range(count):
                self._start(function)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Workers[Task, Result]":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results in the order of the tasks; a failure is raised in its task's place. One iteration at a time.

        Tasks are taken at most twice the number of processes ahead of the results.
        """
        stream = iter(tasks)
        idle, busy = deque(self._processes), dict[Connection, int]()
        done: dict[int, tuple[bool, Any]] = {}
        issued = given = 0
        more = True
        try:
            while more or given < issued:
                while more and idle and issued - given < 2 * len(self._processes):
                    for task in islice(stream, 1):
                        connection = idle.popleft()
                        self._send(connection, task)
                        busy[connection] = issued
                        issued += 1
                        break
                    else:
                        more = False
                if given in done:
                    fine, result = done.pop(given)
                    given += 1
                    if not fine:
                        raise result
                    yield result
                elif busy:
                    for ready in wait(list(busy)):
                        assert isinstance(ready, Connection)
                        done[busy.pop(ready)] = self._receive(ready)
                        idle.append(ready)
        except GeneratorExit:
            for connection in busy:  # or the next iteration would take their results for its own
                self._receive(connection)
            raise
        except BaseException:
            for connection in busy:
                self._processes.pop(connection).kill()
            raise

    def close(self) -> None:
        """End the processes; what they still work on is lost."""
        for connection in self._processes:
            connection.close()
        for process in self._processes.values():
            try:
                process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _start(self, function: Callable[[Task], Result]) -> None:
        ours, theirs = Pipe()
        with theirs:
            code = f"from dragoman.data.workers import _serve; _serve({theirs.fileno()})"
            process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C in the terminal is for the parent to handle
                env=self._environment,
            )
        self._processes[ours] = process
        self._send(ours, function)

    def _send(self, connection: Connection, message: Any) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._ended(connection) from None

    def _receive(self, connection: Connection) -> tuple[bool, Any]:
        try:
            fine, result = connection.recv()
        except (EOFError, ConnectionResetError):
            return False, self._ended(connection)
        return fine, result

    def _ended(self, connection: Connection) -> ResourceError:
        code = self._processes[connection].wait(_SECONDS_TO_END)
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ResourceError(f"a process that prepares data has ended ({reason}); was the memory used up? Start again")


def _serve(descriptor: int) -> None:
    """What a worker process does."""
    with Connection(descriptor) as connection:
        try:
            function = connection.recv()
            while True:
                task = connection.recv()
                try:
                    answer = True, function(task)
                except Exception as error:
                    answer = False, _portable(error)
                connection.send(answer)
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            return  # the parent has closed its end, or is gone


def _portable(error: Exception) -> Exception:
    """An exception that can be pickled: the same one where the user can act on it, else with its traceback as text."""
    if isinstance(error, DragomanError):
        kind = next((kind for kind in _PLAIN if isinstance(error, kind)), DragomanError)
        return kind(str(error))
    if isinstance(error, MemoryError):
        return ResourceError("not enough memory to prepare the data")
    return RuntimeError("".join(traceback.format_exception(error)))
