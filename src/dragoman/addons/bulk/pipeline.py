"""The Ray Data pipeline: tasks read shards and actors translate them. It is run directly or through a relay."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dragoman.addons.bulk.actor import Failure, WindowTranslator, read_windows
from dragoman.addons.bulk.cluster import Actors
from dragoman.addons.bulk.job import Job
from dragoman.base.errors import DragomanError, ResourceError
from dragoman.base.packages import import_optional

_READERS = 2
"""Number of shards that are read at the same time: the current shard and the next."""
_QUEUED = 2
"""Number of windows that are assigned to an actor at the same time, so that it never waits for work."""
_RETRIES = 3
"""Number of retries of a window after the process of its actor has ended. After that, the run fails."""


def run(job: Job, actors: Actors) -> Iterator[tuple[int, Any]]:
    """Yield the results of all windows of a job, in order: the index of the shard and the item of `WindowTranslator`.

    Raises ResourceError if the processes of actors end repeatedly.
    """
    data, exceptions = (
        import_optional("ray.data", "ray", "ray[data]"),
        import_optional("ray.exceptions", "ray", "ray[data]"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the copy accesses deprecated settings
        context = data.DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1  # each window is a block, and thus a task
    with data.DataContext.current(context), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # max_task_retries is deprecated without a replacement
        rows = (
            data.from_items([{"shard": index} for index in range(len(job.shards))], override_num_blocks=len(job.shards))
            .map_batches(
                read_windows,
                fn_kwargs={"job": job},
                batch_size=1,
                num_cpus=0,  # the actors use all of them
                compute=data.TaskPoolStrategy(size=min(_READERS, len(job.shards))),
            )
            .map_batches(
                WindowTranslator,
                fn_constructor_args=[job],
                batch_size=1,
                num_cpus=actors.threads,
                compute=data.ActorPoolStrategy(size=actors.count, max_tasks_in_flight_per_actor=_QUEUED),
                max_restarts=-1,
                max_task_retries=_RETRIES,
            )
        )
    try:
        for each in rows.iter_rows():
            yield each["shard"], each["item"]
    except exceptions.RayActorError as error:
        raise ResourceError(
            f"the process of an actor ended {_RETRIES + 1} times at the same lines, possibly for lack of memory: "
            f"use a smaller --batch-size or fewer --actors. Ray's message: {error}"
        ) from None


def is_client(ray: Any) -> bool:
    """Return whether the process is connected to the cluster through Ray's client (ray://…)."""
    return bool(ray.util.client.ray.is_connected())


def run_through_relay(ray: Any, job: Job, actors: Actors) -> Iterator[tuple[int, Any]]:
    """Like `run`, but for a process outside the cluster. An actor runs the pipeline, because Ray Data does not support
    Ray's client.

    Also raises ResourceError if the connection to the cluster is lost.
    """
    exceptions = import_optional("ray.exceptions", "ray", "ray[data]")
    # the relay reserves no processor, because the translating actors use all of them
    relay = ray.remote(num_cpus=0)(Relay).remote(job, actors)
    try:
        pending = relay.next_item.remote()
        while (item := ray.get(pending)) is not None:
            if isinstance(item, Failure):
                raise item.kind(item.message)
            pending = relay.next_item.remote()  # fetched while the caller writes the current item
            yield item
    except (exceptions.RayActorError, exceptions.RaySystemError, ConnectionError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ResourceError(
            "the connection to the cluster, or the process that relays translations, was lost "
            f"({' … '.join(dict.fromkeys((lines[0], lines[-1])))}). "
            "Completed shards are kept; run the same command to continue"
        ) from None
    finally:
        with suppress(ConnectionError):
            ray.kill(relay)  # also ends the actors that it has started


class Relay:
    """Runs the pipeline as an actor of the cluster, and returns its items one by one."""

    def __init__(self, job: Job, actors: Actors) -> None:
        self._rows = run(job, actors)

    def next_item(self) -> tuple[int, Any] | Failure | None:
        """Return the next item of `run`, a `Failure` if it raised an error, or None after the last item."""
        try:
            return next(self._rows, None)
        except DragomanError as error:
            return Failure(type(error), str(error))
