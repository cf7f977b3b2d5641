"""Searches with constraints in the native engine give the results of PyTorch's search."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from native_searches import (
    TARGETS,
    random_constraints,
    random_edges,
    random_model,
    random_search,
    random_settings,
)
from tiny_model import write_tiny_model

from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.data.batches.batch import pad
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Constraint, Constraints, Edges, tokens_needed
from dragoman.decode.constraints.states import AutomatonStates
from dragoman.decode.prompts import Prompts
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.models.seq2seq import Seq2Seq
from dragoman.translation.engines.native.constraints import NativeConstraints, TokenKinds
from dragoman.translation.engines.native.model import NativeModel
from dragoman.translation.engines.native.request import NativeRequest
from dragoman.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("one_thread")


@torch.no_grad()
def searched(
    model: Seq2Seq, source: list[int], prefix: list[int], config: SearchConfig, required: list[Constraint], edges: Edges
) -> list[Hypothesis]:
    memory = model.encode(*pad([source]))
    prompts = Prompts.of(model.decoder, memory, [config], [prefix], [tokens_needed(required)])
    return search(model.decoder, prompts, [config], constraints=Constraints([required], edges))[0]


def close(found: list[Hypothesis], expected: list[Hypothesis]) -> bool:
    return len(found) == len(expected) and all(
        one.tokens == other.tokens
        and one.finished == other.finished
        and abs(one.log_probability - other.log_probability) < 1e-3
        and abs(one.score - other.score) < 1e-3
        for one, other in zip(found, expected, strict=True)
    )


def compare(seed: int, count: int) -> None:
    """Compare random searches of one model, which share their batches with searches without constraints."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    edges = random_edges(chance)
    kinds, limit = TokenKinds(edges), model.limits.target.positions
    searches, requests, plain = [], list[NativeRequest](), list[NativeRequest]()
    while len(searches) < count:
        source, prefix, config = random_search(chance)
        required = random_constraints(chance, edges)
        if limit is not None and tokens_needed(required) > limit - len(prefix):
            continue
        searches.append((source, prefix, config, required, edges))
        constraints = NativeConstraints(required, kinds, prefix)
        requests.append(NativeRequest.of(source, prefix, config, limit, constraints=constraints))
        plain.append(NativeRequest.of(source, prefix, config, limit))
    native = NativeModel(model, "float32", threads=1)
    both = native.translate([each for pair in zip(requests, plain, strict=True) for each in pair], 5, 2)
    found = both[::2]
    assert both[1::2] == native.translate(plain, 3, 1), "constraints of other requests have no effect"
    equal = [close(one, searched(model, *each)) for one, each in zip(found, searches, strict=True)]
    assert sum(not each for each in equal) <= 1, "only near-ties may differ"
    for hypotheses, (_, _, _, required, _) in zip(found, searches, strict=True):
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
    """It finds what PyTorch finds for phrases, a glossary and kept spans."""
    write_tiny_model(tmp_path)
    native = Translator.load(tmp_path, "cpu", engine="native", precision="float32", threads=1)
    torch_engine = Translator.load(tmp_path, "cpu", engine="torch")
    native.engine.reference.hypotheses = None  # type: ignore[attr-defined]  # not used
    texts = ["a man 1,234 runs", "two men", "https://a.b/c x"]
    for settings in ({"constraints": ["ein Hund"]}, {"glossary": {"men": "Mann"}}, {"keep": ["all"]}):
        assert native.translate(texts, beam=3, **settings) == torch_engine.translate(texts, beam=3, **settings)
