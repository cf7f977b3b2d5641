"""`FairExecutor`: runs expensive functions in a few threads, where clients take turns."""

import asyncio
import contextvars
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, NamedTuple, TypeVar

from dragoman.addons.serving.queueing.background import Background
from dragoman.base.cancellation import Cancellation

Result = TypeVar("Result")


class _Job(NamedTuple):
    """A function to call, with the context of its caller."""

    function: Callable[[], Any]
    context: contextvars.Context
    done: Future[Any]


class FairExecutor:
    """Runs functions in a fixed number of background threads. The waiting functions of several clients take turns.

    Unlike the threads of `concurrent.futures`, these threads do not delay the end of the process. Cancelling the
    coroutine that waits for a function cancels the function too, as soon as it calls `check_cancelled`.
    """

    def __init__(self, threads: int, name: str, background: Background) -> None:
        """name: the name of the threads. background: lets them give way to short requests."""
        self._background = background
        self._jobs: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._changed = Condition()
        self._open = True
        for _ in range(threads):
            Thread(target=self._work, name=name, daemon=True).start()

    async def run(self, client: str, function: Callable[[], Result]) -> Result:
        """Return the result of a function, or raise its error. client: the name of the client that waits for it."""
        cancellation, done = Cancellation(self._background.pause), Future[Result]()

        def call() -> Result:
            with cancellation.active(), self._background.thread():
                return function()

        job = _Job(call, contextvars.copy_context(), done)
        with self._changed:
            self._jobs.setdefault(client, deque()).append(job)
            self._changed.notify()
        try:
            return await asyncio.wrap_future(done)
        finally:
            cancellation.cancel()
            if done.cancelled():
                self._withdraw(client, job)

    def close(self) -> None:
        """End the threads once their functions have ended. Functions that wait are not called."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _withdraw(self, client: str, job: _Job) -> None:
        """Remove a function that still waits, so that its document does not stay in memory."""
        with self._changed:
            jobs = self._jobs.get(client)
            if jobs is not None and job in jobs:
                jobs.remove(job)
                if not jobs:
                    del self._jobs[client]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            if not job.done.set_running_or_notify_cancel():
                continue
            try:
                result = job.context.run(job.function)
            except BaseException as error:
                with suppress(InvalidStateError):
                    job.done.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    job.done.set_result(result)
                del result
            del job  # an idle thread must not keep a document in memory
            self._background.repay()

    def _next(self) -> _Job | None:
        """Wait for a job, and return the first one of the client whose turn it is; None if the executor is closed."""
        with self._changed:
            while not self._jobs:
                if not self._open:
                    return None
                self._changed.wait()
            if not self._open:
                return None
            client, jobs = self._jobs.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                self._jobs[client] = jobs
            return job
