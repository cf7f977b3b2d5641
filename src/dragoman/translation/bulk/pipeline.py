"""The pipeline that runs on the cluster: tasks that read shards, and actors that translate them."""

import warnings
from collections.abc import Iterator
from typing import Any

from dragoman.base.errors import ResourceError
from dragoman.base.packages import import_optional
from dragoman.translation.bulk.actor import WindowTranslator, read_windows
from dragoman.translation.bulk.cluster import Actors
from dragoman.translation.bulk.job import Job

_READERS = 2
"""Shards that are read at once: one, and the next one's beginning."""
_WAITING = 2
"""Windows that an actor has at once, so that it never waits for one."""
_RETRIES = 3
"""Times that a window is given to an actor again whose process ended; then the window itself is to blame."""


def run(job: Job, actors: Actors) -> Iterator[tuple[int, Any]]:
    """What became of the windows of all shards of a job, in order: the place of the shard, and the item.

    Raises ResourceError where the processes of actors end again and again.
    """
    data, exceptions = (
        import_optional("ray.data", "ray", "ray[data]"),
        import_optional("ray.exceptions", "ray", "ray[data]"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of old names of settings, all of which a copy reads
        context = data.DataContext.get_current().copy()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1  # a window is a block, and so a task
    with data.DataContext.current(context), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of max_task_retries, which has no other name yet
        found = (
            data.from_items([{"shard": place} for place in range(len(job.shards))], override_num_blocks=len(job.shards))
            .map_batches(
                read_windows,
                fn_kwargs={"job": job},
                batch_size=1,
                num_cpus=0,  # the actors have them all
                compute=data.TaskPoolStrategy(size=min(_READERS, len(job.shards))),
            )
            .map_batches(
                WindowTranslator,
                fn_constructor_args=[job],
                batch_size=1,
                num_cpus=actors.threads,
                compute=data.ActorPoolStrategy(size=actors.count, max_tasks_in_flight_per_actor=_WAITING),
                max_restarts=-1,
                max_task_retries=_RETRIES,
            )
        )
    try:
        for each in found.iter_rows():
            yield each["shard"], each["item"]
    except exceptions.RayActorError as error:
        raise ResourceError(
            f"the process of an actor ended {_RETRIES + 1} times at the same lines, perhaps for want of memory. "
            f"Give a smaller --batch-size, or fewer --actors. Ray says: {error}"
        ) from None
