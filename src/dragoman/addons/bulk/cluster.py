"""Functions that join a Ray cluster and compute the number of actors that fit on it."""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.base.packages import import_optional

AUTO, LOCAL = "auto", "local"
_CLIENT = "ray://"
_TOKEN = ". If the cluster requires a token, set RAY_AUTH_MODE=token"


@dataclass(frozen=True)
class Actors:
    """The actors of a run. count: number of actors. threads: number of threads per actor, each on its own processor."""

    count: int
    threads: int

    @classmethod
    def of(cls, processors: Sequence[int], count: int | None, threads: int | None) -> "Actors":
        """Choose the numbers of actors and threads. processors: number of processors of each machine.

        threads: None for the number of processors of the smallest machine. count: None for as many actors as fit.
        Raises ConfigError if the cluster has too few processors.
        """
        available = [each for each in processors if each]
        if not available:
            raise ConfigError("the cluster has no available processors: start its machines with --num-cpus")
        threads = threads or min(available)
        fitting = sum(each // threads for each in available)
        if not fitting:
            raise ConfigError(
                f"--threads {threads}: no machine of the cluster has more than {max(available)} processors"
            )
        if count is not None and count > fitting:
            raise ConfigError(
                f"--actors {count} with {threads} thread(s) each: processors suffice for {fitting} actor(s) only"
            )
        return cls(count or fitting, threads)


@contextmanager
def join_cluster(address: str) -> Iterator[Any]:
    """Yield the `ray` module, connected to a cluster.

    address: `auto`, `local`, HOST:PORT, or ray://HOST:PORT for Ray's client. `auto` uses the cluster on this machine or
    at RAY_ADDRESS; if there is none, it starts a cluster on this machine only, like `local`. If the process already has
    a connection, this connection is used and stays open. Raises ConfigError if Ray is not installed or the cluster does
    not respond.
    """
    ray = import_optional("ray", "ray", "ray[data]")
    import_optional("ray.data", "ray", "ray[data]")
    if _resolved(address).startswith(_CLIENT):
        import_optional("grpc", "ray", "ray[client]")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield ray
        return
    _join(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


def processors(ray: Any) -> list[int]:
    """Return the number of processors of each machine of the cluster."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _resolved(address: str) -> str:
    """Return the address that Ray connects to."""
    return os.environ.get("RAY_ADDRESS", address) if address == AUTO else address


def _join(ray: Any, address: str) -> None:
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are raised as exceptions
    how: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address != LOCAL:
        try:
            with _silent_stderr():
                ray.init(address=address, **how)
            return
        except (ConnectionError, ValueError, RuntimeError) as error:
            if address != AUTO or "RAY_ADDRESS" in os.environ:
                resolved = _resolved(address)
                raise ConfigError(
                    f"no Ray cluster responds at {resolved} ({error}): start one with ray start --head, or change "
                    f"--cluster{_TOKEN if resolved.startswith(_CLIENT) else ''}"
                ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _silent_stderr(), _local_only():
        ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **how)
    info(f"No Ray cluster is running: translating with the {processors(ray)[0]} processor(s) of this machine.")


@contextmanager
def _local_only() -> Iterator[None]:
    """Restrict a cluster that is started in this context to connections from this machine.

    By default, Ray's ports are open to the network without a password.
    """
    constants, name = (
        import_optional("ray._private.ray_constants", "ray", "ray[data]"),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER",
    )
    before, constants.ENABLE_RAY_CLUSTER, os.environ[name] = constants.ENABLE_RAY_CLUSTER, False, "0"
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before
        del os.environ[name]


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discard output to stderr, where Ray's library prints its log level."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
