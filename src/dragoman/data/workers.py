"""`Workers`: processes that apply a function to tasks and return the results in the order of the tasks.

multiprocessing.Pool and concurrent.futures are not used, because their workers outlive a killed parent, import the
user's main module again, and require semaphores. The workers of this module hold only one end of a pipe, and exit when
the other end is closed.
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

MAX_WORKERS = 16
"""Maximum number of workers. A single process distributes the tasks, and more workers would wait for it."""

MAX_LOCAL_TASKS = 2
"""Maximum number of tasks that run in the current process, without workers."""

_ERRORS = (ConfigError, DataError, ModelError, ResourceError)
_EXIT_SECONDS = 2


def available_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], count: int | None = None
) -> Iterator[Result]:
    """Yield `function(task)` for each task, in order.

    count: number of processes; None: one per core; 0: run the tasks in the current process. At most MAX_LOCAL_TASKS
    tasks always run in the current process.
    """
    count = min(available_cores(), MAX_WORKERS) if count is None else count
    stream = iter(tasks)
    first = list(islice(stream, MAX_LOCAL_TASKS + 1))
    if count == 0 or len(first) <= MAX_LOCAL_TASKS:
        yield from map(function, chain(first, stream))
        return
    with Workers(function, count) as workers:
        yield from workers.map(chain(first, stream))


class Workers(Generic[Task, Result]):
    """A pool of processes. Close the pool after use, or use it as a context manager.

    function: sent to each process once. The function, the tasks and the results must be picklable. threads: whether
    each process may use several threads.
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
        """Yield the results in the order of the tasks. An error is raised in place of the result of its task.

        Only one iteration may run at a time. At most twice as many tasks as processes are read in advance.
        """
        stream = iter(tasks)
        idle, busy = deque(self._processes), dict[Connection, int]()
        done: dict[int, tuple[bool, Any]] = {}
        issued = returned = 0
        has_more = True
        try:
            while has_more or returned < issued:
                while has_more and idle and issued - returned < 2 * len(self._processes):
                    for task in islice(stream, 1):
                        connection = idle.popleft()
                        self._send(connection, task)
                        busy[connection] = issued
                        issued += 1
                        break
                    else:
                        has_more = False
                if returned in done:
                    succeeded, result = done.pop(returned)
                    returned += 1
                    if not succeeded:
                        raise result
                    yield result
                elif busy:
                    for ready in wait(list(busy)):
                        assert isinstance(ready, Connection)
                        done[busy.pop(ready)] = self._receive(ready)
                        idle.append(ready)
        except GeneratorExit:
            for connection in busy:  # discard their results, so that the next iteration does not receive them
                self._receive(connection)
            raise
        except BaseException:
            for connection in busy:
                self._processes.pop(connection).kill()
            raise

    def close(self) -> None:
        """End the processes. Unfinished tasks are discarded."""
        for connection in self._processes:
            connection.close()
        for process in self._processes.values():
            try:
                process.wait(_EXIT_SECONDS)
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
                process_group=0,  # the parent handles Ctrl-C in the terminal
                env=self._environment,
            )
        self._processes[ours] = process
        self._send(ours, function)

    def _send(self, connection: Connection, message: Any) -> None:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._exit_error(connection) from None

    def _receive(self, connection: Connection) -> tuple[bool, Any]:
        try:
            succeeded, result = connection.recv()
        except (EOFError, ConnectionResetError):
            return False, self._exit_error(connection)
        return succeeded, result

    def _exit_error(self, connection: Connection) -> ResourceError:
        code = self._processes[connection].wait(_EXIT_SECONDS)
        reason = f"signal {-code}" if code < 0 else f"exit code {code}"
        return ResourceError(
            f"a process that prepares data has ended ({reason}), possibly for lack of memory. Start again to resume"
        )


def _serve(descriptor: int) -> None:
    """Run tasks in a worker process until the parent closes the connection with this file descriptor."""
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
            return  # the parent closed its end or ended


def _portable(error: Exception) -> Exception:
    """Return a picklable exception: dragoman's own errors as such, others as a RuntimeError with the traceback."""
    if isinstance(error, DragomanError):
        kind = next((kind for kind in _ERRORS if isinstance(error, kind)), DragomanError)
        return kind(str(error))
    if isinstance(error, MemoryError):
        return ResourceError("not enough memory to prepare the data")
    return RuntimeError("".join(traceback.format_exception(error)))
