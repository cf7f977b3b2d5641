"""`relayed_run`: the pipeline for a command outside the cluster, which reaches it through Ray's client (ray://…).

Ray Data does not run through the client, so an actor of the cluster runs the pipeline and hands over what comes of it.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dragoman.base.errors import DragomanError, ResourceError
from dragoman.base.packages import import_optional
from dragoman.translation.bulk.actor import Failure
from dragoman.translation.bulk.cluster import Actors
from dragoman.translation.bulk.job import Job
from dragoman.translation.bulk.pipeline import run


def is_client(ray: Any) -> bool:
    """Whether the cluster is reached through Ray's client."""
    return bool(ray.util.client.ray.is_connected())


def relayed_run(ray: Any, job: Job, actors: Actors) -> Iterator[tuple[int, Any]]:
    """As `run`. Raises ResourceError also where the cluster is lost on the way."""
    exceptions = import_optional("ray.exceptions", "ray", "ray[data]")
    # no processor: the actors that translate have them all
    relay = ray.remote(num_cpus=0)(Relay).remote(job, actors)
    try:
        coming = relay.following.remote()
        while (found := ray.get(coming)) is not None:
            if isinstance(found, Failure):
                raise found.kind(found.message)
            coming = relay.following.remote()  # so that it is on its way while this one is written
            yield found
    except (exceptions.RayActorError, exceptions.RaySystemError, ConnectionError) as error:
        said = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ResourceError(
            "the cluster, or its process that hands over translations, was lost "
            f"({' … '.join(dict.fromkeys((said[0], said[-1])))}). "
            "Shards that are done are kept; go on with the same command"
        ) from None
    finally:
        with suppress(ConnectionError):
            ray.kill(relay)  # and with it the actors that it has started


class Relay:
    """Runs the pipeline within the cluster."""

    def __init__(self, job: Job, actors: Actors) -> None:
        self._rows = run(job, actors)

    def following(self) -> tuple[int, Any] | Failure | None:
        """The next of what `run` gives; the error that it raises, as a value; None after the last one."""
        try:
            return next(self._rows, None)
        except DragomanError as error:
            return Failure(type(error), str(error))
