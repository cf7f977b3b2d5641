"""Joins a Ray cluster, and computes the number of actors that fit on it."""

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
_TOKEN = "; if the cluster requires a token, set RAY_AUTH_MODE=token"


@dataclass(frozen=True)
class Actors:
    """The actors of a run. threads: per actor, each on a separate processor."""

    count: int
    threads: int

    @classmethod
    def of(cls, processors: Sequence[int], count: int | None, threads: int | None) -> "Actors":
        """Choose the number of actors. processors: per machine.

        threads: None for all processors of the smallest machine, which then has one actor. count: None for as many as
        fit. Raises ConfigError if more are requested.
        """
        available = [each for each in processors if each]
        if not available:
            raise ConfigError("the cluster has no processors to translate with: start its machines with --num-cpus")
        threads = threads or min(available)
        fitting = sum(each // threads for each in available)
        if not fitting:
            raise ConfigError(
                f"--threads {threads}: no machine of the cluster has more than {max(available)} processors"
            )
        if count is not None and count > fitting:
            raise ConfigError(
                f"--actors {count} with {threads} thread(s) each: the cluster has processors for {fitting}; use fewer"
            )
        return cls(count or fitting, threads)


@contextmanager
def join_cluster(address: str) -> Iterator[Any]:
    """Yield the module ray, connected to a cluster: `auto`, `local`, HOST:PORT, or ray://HOST:PORT for Ray's client.

    An existing connection of this process is used and kept. auto: the cluster on this machine or at RAY_ADDRESS; if
    there is none, start a cluster of this machine only, like `local`. Raises ConfigError if Ray is not installed or no
    cluster answers.
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
                    f"no Ray cluster answers at {resolved} ({error}): start one with ray start --head, or see --cluster"
                    f"{_TOKEN if resolved.startswith(_CLIENT) else ''}"
                ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _silent_stderr(), _local_only():
        ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **how)
    info(f"No Ray cluster is running here: translating with this machine's {processors(ray)[0]} processor(s).")


@contextmanager
def _local_only() -> Iterator[None]:
    """Make a cluster that is started in this context listen on this machine only.

    By default, its ports would be open to the network without a password.
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
    """Discard stderr, to which Ray's library prints its log level."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
