"""Searches with constraints in the native engine give the results of PyTorch's search."""

import random
from pathlib import Path
from typing import Any

import pytest
from native_searches import (
    TARGETS,
    RestrictedSearch,
    compare_restricted,
    random_constraints,
    random_edges,
    random_model,
    random_search,
    random_settings,
)
from tiny_model import write_tiny_model

from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Edges, tokens_needed
from dragoman.decode.constraints.states import AutomatonStates
from dragoman.decode.search import SearchConfig
from dragoman.engines.native.constraints import NativeConstraints, TokenKinds
from dragoman.engines.native.model import NativeModel
from dragoman.engines.native.request import NativeRequest
from dragoman.inference.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("one_thread")


def compare(seed: int, count: int) -> None:
    """Compare random searches of one model, which share their batches with searches without constraints."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    edges, limit = random_edges(chance), model.limits.target.positions
    searches: list[RestrictedSearch] = []
    while len(searches) < count:
        source, prefix, config = random_search(chance)
        required = random_constraints(chance, edges)
        if limit is None or tokens_needed(required) <= limit - len(prefix):
            searches.append(RestrictedSearch(source, prefix, config, required, edges))
    found = compare_restricted(model, NativeModel(model, "float32", threads=1), searches)
    for hypotheses, (_, _, _, required, *_) in zip(found, searches, strict=True):
        for each in hypotheses:
            assert not each.finished or len(Automaton(required, edges).positions(each.tokens)) == len(required)


@pytest.mark.parametrize("seed", range(3))
def test_constrained_searches_equal_those_of_pytorch(seed: int) -> None:
    compare(seed, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 30))
def test_many_constrained_searches_equal_those_of_pytorch(seed: int) -> None:
    compare(seed, 15)


def a_request(cancellation: Cancellation | None = None) -> tuple[NativeModel, NativeRequest]:
    model = random_model(random_settings(random.Random(1)), 1)
    kinds = TokenKinds(Edges.none(TARGETS))
    with (cancellation or Cancellation()).active():
        constraints = NativeConstraints([(Alternative((5, 6)),)], kinds, ())
    config = SearchConfig(beam=2, length_margin=8)
    return NativeModel(model, "float32"), NativeRequest.of([7, 8, 2], (), config, None, constraints=constraints)


def test_an_error_of_an_automaton_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    native, request = a_request()
    monkeypatch.setattr(AutomatonStates, "follow", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        native.translate([request], 1, 1)


def test_an_automaton_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search calls it in a thread of the library, where no cancellation is active by itself."""
    cancellation = Cancellation()
    native, request = a_request(cancellation)
    follow = AutomatonStates.follow

    def cancelled(*arguments: Any) -> int:
        cancellation.cancel()
        return follow(*arguments)

    monkeypatch.setattr(AutomatonStates, "follow", cancelled)
    with pytest.raises(Cancelled):
        native.translate([request], 1, 2)


def test_a_translator_constrains_in_the_native_engine(tmp_path: Path) -> None:
    """It finds what PyTorch finds for phrases, a glossary and protected spans."""
    write_tiny_model(tmp_path)
    native = Translator.load(tmp_path, "cpu", engine="native", precision="float32", threads=1)
    torch_engine = Translator.load(tmp_path, "cpu", engine="torch")
    native.engine.reference.hypotheses = None  # type: ignore[attr-defined]  # not used
    texts = ["a man 1,234 runs", "two men", "https://a.b/c x"]
    for settings in ({"constraints": ["ein Hund"]}, {"glossary": {"men": "Mann"}}, {"keep": ["all"]}):
        assert native.translate(texts, beam=3, **settings) == torch_engine.translate(texts, beam=3, **settings)
