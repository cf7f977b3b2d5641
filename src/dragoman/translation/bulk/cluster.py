"""The cluster: joining it, and how many actors it has room for."""

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
_TOKEN = "; where the cluster asks for a token, set RAY_AUTH_MODE=token"


@dataclass(frozen=True)
class Actors:
    """count: of them; threads: that each computes with, and the processors that it takes."""

    count: int
    threads: int

    @classmethod
    def of(cls, processors: Sequence[int], count: int | None, threads: int | None) -> "Actors":
        """processors: of each machine. threads: None is all of the smallest machine's, so that it holds the model once.

        count: None is as many as there is room for. Raises ConfigError for more than that.
        """
        having = [each for each in processors if each]
        if not having:
            raise ConfigError("the cluster has no processors to translate with: start its machines with some")
        threads = threads or min(having)
        room = sum(each // threads for each in having)
        if not room:
            raise ConfigError(f"--threads {threads}: no machine of the cluster has more than {max(having)} processors")
        if count is not None and count > room:
            raise ConfigError(
                f"--actors {count} with {threads} thread(s) each: the cluster has room for {room}; give fewer of either"
            )
        return cls(count or room, threads)


@contextmanager
def joined_cluster(address: str) -> Iterator[Any]:
    """Ray, joined to the cluster at an address: `auto`, `local`, HOST:PORT, or ray://HOST:PORT through Ray's client.
    A cluster that is joined already stays.

    auto: the one that runs on this machine or that RAY_ADDRESS names, else this machine alone, as local. Raises
    ConfigError where Ray is missing or nobody answers.
    """
    ray = import_optional("ray", "ray", "ray[data]")
    import_optional("ray.data", "ray", "ray[data]")
    if _asked(address).startswith(_CLIENT):
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
    """Of each machine of the cluster."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


def _asked(address: str) -> str:
    """What Ray takes an address for."""
    return os.environ.get("RAY_ADDRESS", address) if address == AUTO else address


def _join(ray: Any, address: str) -> None:
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what goes wrong comes as an exception
    how: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address != LOCAL:
        try:
            with _hushed():
                ray.init(address=address, **how)
            return
        except (ConnectionError, ValueError, RuntimeError) as error:
            if address != AUTO or "RAY_ADDRESS" in os.environ:
                asked = _asked(address)
                raise ConfigError(
                    f"no Ray cluster answers at {asked} ({error}): start one with ray start --head, or see --cluster"
                    f"{_TOKEN if asked.startswith(_CLIENT) else ''}"
                ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with _hushed(), _unreachable():
        ray.init(address="local", include_dashboard=False, _node_ip_address="127.0.0.1", **how)
    info(f"No Ray cluster runs here: this machine's {processors(ray)[0]} processor(s) translate alone.")


@contextmanager
def _unreachable() -> Iterator[None]:
    """A cluster that is started meanwhile listens to this machine only, as Ray has it where it knows one machine alone.

    Otherwise its ports are open to all of the network, without a password.
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
def _hushed() -> Iterator[None]:
    """Nothing comes to stderr, where Ray's own library would announce its log level."""
    sys.stderr.flush()
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)
