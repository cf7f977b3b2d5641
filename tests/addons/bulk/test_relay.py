"""The pipeline through Ray's client, with a class without processes in place of Ray."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.addons.bulk import pipeline
from dragoman.addons.bulk.cluster import Actors, join_cluster
from dragoman.addons.bulk.pipeline import is_client, run_through_relay
from dragoman.base.errors import ConfigError, ModelError, ResourceError

exceptions = pytest.importorskip("ray.exceptions")
JOB: Any = "a job"
ACTORS = Actors(1, 1)
SAID = "The actor died unexpectedly.\n\tclass_name: Relay\n\tpid: 7\nIts worker process has died."


class Cluster:
    """The part of `ray` that `run_through_relay` uses. lost: errors by the number of the awaited answer."""

    def __init__(self, lost: dict[int, Exception] | None = None) -> None:
        self.lost, self.asked, self.waited, self.killed = lost or {}, 0, 0, 0

    def remote(self, **resources: object) -> Any:
        assert resources == {"num_cpus": 0}
        return lambda kind: SimpleNamespace(remote=lambda *given: self._actor(kind(*given)))

    def _actor(self, made: Any) -> Any:
        def next_item() -> object:
            self.asked += 1
            return made.next_item()

        return SimpleNamespace(next_item=SimpleNamespace(remote=next_item))

    def get(self, answer: object) -> object:
        self.waited += 1
        if self.waited in self.lost:
            raise self.lost[self.waited]
        return answer

    def kill(self, actor: object) -> None:
        self.killed += 1


def gives(monkeypatch: pytest.MonkeyPatch, *rows: object) -> None:
    """Let the pipeline in the cluster yield these rows, and raise those that are errors."""

    def run(job: object, actors: object) -> Iterator[object]:
        assert (job, actors) == (JOB, ACTORS)
        for row in rows:
            if isinstance(row, Exception):
                raise row
            yield row

    monkeypatch.setattr(pipeline, "run", run)


def test_rows_come_in_order_and_the_relay_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    gives(monkeypatch, (0, "a"), (0, "b"), (1, "c"))
    cluster = Cluster()
    assert list(run_through_relay(cluster, JOB, ACTORS)) == [(0, "a"), (0, "b"), (1, "c")]
    assert cluster.killed == 1


def test_the_next_row_is_requested_before_one_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    gives(monkeypatch, (0, "a"), (0, "b"))
    cluster = Cluster()
    rows = run_through_relay(cluster, JOB, ACTORS)
    next(rows)
    assert (cluster.asked, cluster.waited) == (2, 1)


def test_stopping_early_ends_the_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    gives(monkeypatch, (0, "a"), (0, "b"))
    cluster = Cluster()
    rows = run_through_relay(cluster, JOB, ACTORS)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert cluster.killed == 1


def test_errors_of_the_pipeline_are_raised_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    gives(monkeypatch, (0, "a"), ModelError("no model there"))
    cluster = Cluster()
    rows = run_through_relay(cluster, JOB, ACTORS)
    assert next(rows) == (0, "a")
    with pytest.raises(ModelError, match="^no model there$"):
        next(rows)
    assert cluster.killed == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (exceptions.RayActorError(error_msg=SAID), r"\(The actor died unexpectedly. … Its worker process has died.\)"),
        (ConnectionError("the channel is closed"), r"\(the channel is closed\)"),
        (exceptions.RaySystemError("head gone"), r"head gone"),
    ],
    ids=["killed", "connection", "system"],
)
def test_a_lost_cluster_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    gives(monkeypatch, (0, "a"), (0, "b"))
    cluster = Cluster({2: error})
    rows = run_through_relay(cluster, JOB, ACTORS)
    next(rows)
    with pytest.raises(ResourceError, match=told) as raised:
        next(rows)
    assert "run the same command to continue" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert cluster.killed == 1


def test_failing_to_kill_the_relay_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gives(monkeypatch, (0, "a"))

    class Gone(Cluster):
        def kill(self, actor: object) -> None:
            raise ConnectionError

    assert list(run_through_relay(Gone(), JOB, ACTORS)) == [(0, "a")]


def test_without_a_client_nothing_is_relayed() -> None:
    assert not is_client(pytest.importorskip("ray"))


@pytest.mark.parametrize(("address", "token"), [("ray://127.0.0.1:1", True), ("127.0.0.1:1", False)])
def test_an_unreachable_head_is_reported(monkeypatch: pytest.MonkeyPatch, address: str, token: bool) -> None:
    """The client's own message does not say that the head may require a token."""
    pytest.importorskip("grpc")
    monkeypatch.setenv("RAY_ADDRESS", "another:1")  # an explicit address takes precedence

    def init(**how: object) -> None:
        raise ConnectionError("ray client connection timeout")

    monkeypatch.setattr(pytest.importorskip("ray"), "init", init)
    with pytest.raises(ConfigError, match=f"no Ray cluster responds at {address}") as raised, join_cluster(address):
        pass
    assert ("RAY_AUTH_MODE=token" in str(raised.value)) == token


def test_an_address_from_the_environment_needs_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigError, match=r"dragoman\[ray\]"), join_cluster("auto"):
        pass
