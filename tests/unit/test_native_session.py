"""Texts that are given to the native engine while it works on others are found as they are alone."""

import random
import time

import pytest
import torch
from native_searches import native_request, random_model, random_search, random_settings

from dragoman.base.errors import ModelError
from dragoman.decode.search import Hypothesis
from dragoman.translation.engines.native.model import NativeModel, NativeSession, Precision
from dragoman.translation.engines.native.request import NativeRequest

pytestmark = pytest.mark.usefixtures("one_thread")


def settled(session: NativeSession) -> dict[int, list[Hypothesis]]:
    """All that is under way, in the end."""
    done: dict[int, list[Hypothesis]] = {}
    until = time.monotonic() + 30
    while session.in_progress:
        assert time.monotonic() < until
        for number, found in session.completed(0.2):
            assert number not in done, "found once"
            done[number] = found
    return done


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_does_not_depend_on_when_it_came(seed: int, precision: Precision) -> None:
    """Groups of all sizes and beams, given at any time, to one worker and to several."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    native = NativeModel(model, precision)
    texts = [native_request(model, *random_search(chance)) for _ in range(80)]
    expected = [native.translate([text], 1, 1)[0] for text in texts]
    done: dict[int, list[Hypothesis]] = {}
    with native.session(texts[:3], batch_size=chance.choice([1, 3, 16]), workers=chance.choice([1, 2, 3])) as session:
        given = 3
        while given < len(texts):
            some = texts[given : given + chance.choice([1, 2, 9])]
            assert all(session.accepts(text) for text in some)
            session.submit(some)
            given += len(some)
            done.update(session.completed(chance.choice([0, 0, 0.01])))
            assert session.in_progress == given - len(done)
        done.update(settled(session))
        assert session.queued == 0 and session.completed(0) == []
    assert [done[number] for number in range(len(texts))] == expected


def test_texts_that_no_table_reaches_are_for_another_session() -> None:
    model = random_model({**random_settings(random.Random(1)), "positions": {"kind": "rotary"}}, 1)
    native = NativeModel(model, "float32")
    _, _, config = random_search(random.Random(2))
    short, long = (NativeRequest.of([5] * length + [3], [], config, None) for length in (5, 600))
    with native.session([short], 4, 1) as session:
        assert session.accepts(short) and not session.accepts(long)
        # the tables of a session outlive longer ones
        with native.session([long], 4, 1) as other:
            assert other.accepts(long)
            found = settled(other)
        assert settled(session) == {0: native.translate([short], 1, 1)[0]}
    assert found == {0: native.translate([long], 1, 1)[0]}


def test_what_is_given_up_is_not_waited_for() -> None:
    """With texts at work, and others that wait; what ends twice has ended."""
    model = random_model(random_settings(random.Random(3)), 3)
    native = NativeModel(model, "float32")
    chance = random.Random(4)
    texts = [native_request(model, *random_search(chance)) for _ in range(300)]
    session = native.session(texts, 2, 2)
    session.close()
    session.close()
    assert session.in_progress == 0
    assert native.translate(texts[:5], 5, 2) == [native.translate([text], 1, 1)[0] for text in texts[:5]]


def test_parameters_that_are_not_numbers_are_told_of() -> None:
    model = random_model({**random_settings(random.Random(5)), "tie_projection": False}, 5)
    with torch.no_grad():
        model.decoder.projection.weight.fill_(3e38)
    source, _, config = random_search(random.Random(1))
    text = native_request(model, source, [], config)
    with (
        NativeModel(model, "float32").session([text, text], 2, 2) as session,
        pytest.raises(ModelError, match="not numbers"),
    ):
        settled(session)


def test_ids_beyond_the_vocabulary_are_refused_before_they_wait() -> None:
    model = random_model(random_settings(random.Random(7)), 7)
    native = NativeModel(model, "float32")
    text = native_request(model, *random_search(random.Random(8)))
    wrong = native_request(model, [99, 3], *random_search(random.Random(8))[1:])
    with native.session([text], 2, 2) as session:
        with pytest.raises(ModelError, match="token 99"):
            session.submit([wrong])
        assert list(settled(session)) == [0]
