"""The path of a request: the functions between the call of the application and that of the engine."""

import sys
from collections.abc import Sequence

import pytest
from scripted_server import posted, served, shouting

from dragoman.addons.serving.http.application import Application
from dragoman.addons.serving.queueing.batcher import Batcher
from dragoman.addons.serving.queueing.line_queue import LineQueue, Ticket
from dragoman.engines.engine import Row

LONGEST = 16


def path_from(name: str) -> list[str]:
    """Return the functions that are called by the function `name`, which is included, up to the caller of this one."""
    frame, path = sys._getframe(1), list[str]()
    while frame.f_code.co_qualname != name:
        path.append(frame.f_code.co_qualname)
        assert frame.f_back is not None, f"{path} was not called by {name}"
        frame = frame.f_back
    return [*path, name]


def test_a_request_passes_few_functions_on_its_way_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    paths: dict[str, list[str]] = {}
    put = LineQueue.put

    def counted(queue: LineQueue, ticket: Ticket, indices: Sequence[int]) -> None:
        paths["queue"] = path_from(Application.__call__.__qualname__)
        put(queue, ticket, indices)

    def script(row: Row) -> list[str]:
        paths["engine"] = path_from(Batcher._run.__qualname__)
        return shouting(row)

    with served({"en-de": script}) as service:
        monkeypatch.setattr(LineQueue, "put", counted)
        assert posted(service, "/translate", q="A dog.", source="en", target="de").json() == {
            "translatedText": "A DOG."
        }
    # the script is not counted; `counted` stands for `LineQueue.put`
    assert len(paths["queue"]) + len(paths["engine"]) - 1 <= LONGEST, paths
