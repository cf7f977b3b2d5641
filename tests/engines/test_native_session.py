"""Requests that are submitted while others are decoded get the same results as alone."""

import random
import time

import pytest
import torch
from native_searches import native_request, random_model, random_search, random_settings
from waiting import PATIENCE

from dragoman.base.errors import ModelError
from dragoman.decode.search import Hypothesis
from dragoman.engines.native.model import NativeModel, NativeSession
from dragoman.engines.native.packing import Precision
from dragoman.engines.native.request import NativeRequest

pytestmark = pytest.mark.usefixtures("one_thread")


def drain(session: NativeSession) -> dict[int, list[Hypothesis]]:
    """The results of all requests in progress."""
    done: dict[int, list[Hypothesis]] = {}
    until = time.monotonic() + PATIENCE
    while session.in_progress:
        assert time.monotonic() < until
        for number, found in session.completed(0.2):
            assert number not in done, "returned once"
            done[number] = found
    return done


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("seed", range(4))
def test_results_do_not_depend_on_the_time_of_submission(seed: int, precision: Precision) -> None:
    """Groups of all sizes and beam sizes, submitted at any time, to one worker and to several."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    native = NativeModel(model, precision)
    requests = [native_request(model, *random_search(chance)) for _ in range(80)]
    expected = [native.translate([request], 1, 1)[0] for request in requests]
    done: dict[int, list[Hypothesis]] = {}
    with native.session(
        requests[:3], batch_size=chance.choice([1, 3, 16]), workers=chance.choice([1, 2, 3])
    ) as session:
        given = 3
        while given < len(requests):
            some = requests[given : given + chance.choice([1, 2, 9])]
            assert all(session.accepts(request) for request in some)
            session.submit(some)
            given += len(some)
            done.update(session.completed(chance.choice([0, 0, 0.01])))
            assert session.in_progress == given - len(done)
        done.update(drain(session))
        assert session.queued == 0 and session.completed(0) == []
    assert [done[number] for number in range(len(requests))] == expected


def test_requests_longer_than_the_position_tables_are_not_accepted() -> None:
    model = random_model({**random_settings(random.Random(1)), "positions": {"kind": "rotary"}}, 1)
    native = NativeModel(model, "float32")
    _, _, config = random_search(random.Random(2))
    short, long = (NativeRequest.of([5] * length + [3], [], config, None) for length in (5, 600))
    with native.session([short], 4, 1) as session:
        assert session.accepts(short) and not session.accepts(long)
        # longer tables of another session do not affect this one's
        with native.session([long], 4, 1) as other:
            assert other.accepts(long)
            found = drain(other)
        assert drain(session) == {0: native.translate([short], 1, 1)[0]}
    assert found == {0: native.translate([long], 1, 1)[0]}


def test_closing_drops_requests_without_waiting() -> None:
    """With running and waiting requests; closing twice is allowed."""
    model = random_model(random_settings(random.Random(3)), 3)
    native = NativeModel(model, "float32")
    chance = random.Random(4)
    requests = [native_request(model, *random_search(chance)) for _ in range(300)]
    session = native.session(requests, 2, 2)
    session.close()
    session.close()
    assert session.in_progress == 0
    assert native.translate(requests[:5], 5, 2) == [native.translate([request], 1, 1)[0] for request in requests[:5]]


def test_parameters_that_are_not_numbers_are_reported() -> None:
    model = random_model({**random_settings(random.Random(5)), "tie_projection": False}, 5)
    with torch.no_grad():
        model.decoder.projection.weight.fill_(3e38)
    source, _, config = random_search(random.Random(1))
    request = native_request(model, source, [], config)
    with (
        NativeModel(model, "float32").session([request, request], 2, 2) as session,
        pytest.raises(ModelError, match="log-probabilities are NaN"),
    ):
        drain(session)


def test_unknown_ids_are_refused_at_submission() -> None:
    model = random_model(random_settings(random.Random(7)), 7)
    native = NativeModel(model, "float32")
    request = native_request(model, *random_search(random.Random(8)))
    wrong = native_request(model, [99, 3], *random_search(random.Random(8))[1:])
    with native.session([request], 2, 2) as session:
        with pytest.raises(ModelError, match="token 99"):
            session.submit([wrong])
        assert list(drain(session)) == [0]
