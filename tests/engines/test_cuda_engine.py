"""The engine for GPUs gives the results of the PyTorch search. All but the capture of its step is checked on a CPU."""

import random
from collections.abc import Callable
from itertools import pairwise
from math import inf
from typing import Any

import pytest
import torch
from native_searches import TARGETS, native_request, random_model, random_search, random_settings, searched

from dragoman.base.errors import ResourceError
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.cuda import session as sessions
from dragoman.engines.cuda.captured import CapturedSlots
from dragoman.engines.cuda.engine import CudaEngine, unsupported
from dragoman.engines.cuda.session import CudaRequest, CudaSession, Model
from dragoman.engines.cuda.slots import Slots
from dragoman.engines.engine import Row
from dragoman.models.kinds.encoder_decoder import Seq2Seq

pytestmark = pytest.mark.usefixtures("one_thread")

Search = tuple[list[int], list[int], SearchConfig]

BASE: dict[str, Any] = {
    "preset": None,
    "width": 16,
    "encoder": {"layers": 1, "heads": 2, "feedforward": 32},
    "decoder": {"layers": 1, "heads": 2, "feedforward": 32},
    "tie_embeddings": False,
}


def some_model(chance: random.Random, seed: int) -> Seq2Seq:
    """A model that the engine supports."""
    while unsupported(model := random_model(random_settings(chance), seed)) is not None:
        pass
    return model


def some_search(chance: random.Random) -> Search:
    """Search settings that the engine supports."""
    return random_search(chance)


def requests(model: Seq2Seq, searches: list[Search]) -> list[CudaRequest]:
    return [
        CudaRequest(Row(1, "", source, config), native_request(model, source, prefix, config))
        for source, prefix, config in searches
    ]


def no_fallback(request: CudaRequest) -> list[Hypothesis]:
    raise AssertionError("nothing is searched again")


def found(session: CudaSession) -> dict[int, list[Hypothesis]]:
    done: dict[int, list[Hypothesis]] = {}
    while session.in_progress:
        some = session.completed(inf)
        assert some
        assert not done.keys() & dict(some).keys()
        done |= dict(some)
    assert session.completed(0.0) == []
    return done


def close(found: list[Hypothesis], expected: list[Hypothesis]) -> bool:
    """Compare hypotheses; two whose scores differ only by rounding may be swapped."""
    if [each.tokens for each in found] != [each.tokens for each in expected]:
        scores = [each.score for each in (*found, *expected)]
        return len(found) == len(expected) and any(abs(a - b) < 1e-4 for a, b in pairwise(scores))
    return all(
        abs(a.log_probability - b.log_probability) < 1e-3 and abs(a.score - b.score) < 1e-3 and a.finished == b.finished
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_finds_what_the_search_finds(seed: int) -> None:
    """With prefixes, n-best lists, length limits and penalties; finished sentences are replaced by others."""
    chance = random.Random(seed)
    model = some_model(chance, seed)
    searches = [some_search(chance) for _ in range(24)]
    later = [some_search(chance) for _ in range(8)]
    engine = Model(model, TARGETS)
    with CudaSession(engine, requests(model, searches), chance.choice([1, 3, 8]), no_fallback) as session:
        session.submit(requests(model, later[:5]))
        done = dict(session.completed(0.0))  # one round, regardless of the number of completed sentences
        session.submit(requests(model, later[5:]))
        done |= found(session)
    assert sorted(done) == list(range(32))
    for number, search in enumerate(searches + later):
        assert close(done[number], searched(model, *search)), search
    assert close(found(CudaSession(engine, requests(model, searches[:1]), 64, no_fallback))[0], done[0])


def test_the_last_sentences_continue_in_fewer_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer sentences get longer slots; generated tokens are kept."""
    chance = random.Random(3)
    model = random_model(BASE, 3)
    sizes: list[tuple[int, int]] = []
    acquire = Model.acquire

    def record(self: Model, each: sessions.SlotSizes) -> CapturedSlots:
        sizes.append((each.slots, each.target))
        return acquire(self, each)

    monkeypatch.setattr(Model, "acquire", record)

    def search(limit: int, beam: int = 2) -> Search:
        config = SearchConfig(beam=beam, length_factor=0, length_margin=limit, minimum_length=limit - 1, nbest=beam)
        return [chance.randrange(4, 30) for _ in range(5)] + [3], [], config

    searches = [search(3) for _ in range(60)] + [search(30), search(31)]
    with CudaSession(Model(model, TARGETS), requests(model, searches), 64, no_fallback) as session:
        done = dict(session.completed(inf))
        assert len(done) == 60
        searches.append(search(90))
        session.submit(requests(model, searches[-1:]))
        done |= found(session)
    assert sizes == [(64, 32), (4, 32), (4, 96)]
    for number, each in enumerate(searches):
        assert close(done[number], searched(model, *each))


def test_cancelled_sentences_free_their_slots_at_once() -> None:
    """Both sentences that are being decoded and one that waits are cancelled; the others' results do not change."""
    chance = random.Random(4)
    model = some_model(chance, 4)
    config = SearchConfig(beam=3, length_factor=0.0, length_margin=30, minimum_length=20)
    searches: list[Search] = [([5 + number, 6, 7, 2], [], config) for number in range(6)]
    with CudaSession(Model(model, TARGETS), requests(model, searches), 2, no_fallback) as session:
        assert session.completed(0.0) == [] and session.queued == 4
        for number in (0, 1, 4, 1):
            session.cancel(number)
        assert session.in_progress == 6 and session.queued == 3
        results = found(session)
        session.cancel(3)  # completed already
        assert session.in_progress == 0
        session.submit(requests(model, searches[:1]))
        session.completed(0.0)
        session.cancel(6)  # the only one
        assert session.completed(inf) == [(6, [])] and session.completed(0.0) == []
    assert results[0] == results[1] == results[4] == []
    assert all(close(results[number], searched(model, *searches[number])) for number in (2, 3, 5))


def test_a_batch_that_does_not_fit_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    model = random_model(BASE, 4)
    searches = [some_search(chance) for _ in range(20)]
    run: Callable[[CapturedSlots, int], None] = CapturedSlots.run

    def limited(self: CapturedSlots, steps: int) -> None:
        if len(self.slots.occupied) > 3:
            raise RuntimeError("CUDA out of memory: made up")
        run(self, steps)

    monkeypatch.setattr(CapturedSlots, "run", limited)
    done = found(CudaSession(Model(model, TARGETS), requests(model, searches), 64, no_fallback))
    assert all(close(done[number], searched(model, *each)) for number, each in enumerate(searches))
    monkeypatch.setattr(sessions.Model, "_free_bytes", lambda self: 1000)
    with pytest.raises(ResourceError, match="does not fit"):
        found(CudaSession(Model(model, TARGETS), requests(model, searches), 64, no_fallback))


def test_sources_without_tokens_are_searched_by_the_reference() -> None:
    chance = random.Random(5)
    model = random_model(BASE, 5)
    searches = [some_search(chance) for _ in range(6)]
    with torch.no_grad():
        model.decoder.projection.weight[20].fill_(torch.nan)
    stand_in = [Hypothesis((9,), -1.0, -1.0, True)]
    done = found(CudaSession(Model(model, TARGETS), requests(model, searches), 4, lambda request: stand_in))
    assert done == dict.fromkeys(range(6), stand_in)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_scores_in_float32(kind: torch.dtype) -> None:
    model = random_model({**BASE, "positions": {"kind": "rotary"}}, 6)
    chance = random.Random(6)
    prefix = [5, 6, 7, 8]
    config = SearchConfig(beam=1, length_factor=0, length_margin=5)
    searches = [([chance.randrange(4, 30), 3], prefix, config) for _ in range(4)]
    half = found(CudaSession(Model(model.to(kind), TARGETS), requests(model, searches), 4, no_fallback))
    model.float()
    for number, each in enumerate(searches):
        (one,), (two,) = half[number], searched(model, *each)
        assert one.tokens[:4] == two.tokens[:4] == (5, 6, 7, 8)
        if one.tokens == two.tokens:
            assert one.log_probability == pytest.approx(two.log_probability, abs=0.3)
            assert one.log_probability != two.log_probability


def test_a_slot_without_a_sentence_changes_nothing() -> None:
    model = random_model(BASE, 7)
    with torch.inference_mode():
        captured = Model(model, TARGETS).acquire(sessions.SlotSizes(4, 2, 16, 32))
        before = {name: tensor.clone() for name, tensor in captured.slots.state.items() if name != "branches"}
        captured.run(3)
        assert all(torch.equal(captured.slots.state[name], tensor) for name, tensor in before.items())
        assert captured.slots.collect() == {}
    assert isinstance(captured.slots, Slots)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"decoder": {"kind": "recurrent"}}, "model.decoder.kind is not transformer"),
        ({"positions": {"kind": "alibi"}}, "model.positions.kind"),
        ({"positions": {"kind": "relative"}}, "model.positions.kind"),
        ({"decoder": {"attention": {"kind": "window", "window": 4}}}, "model.decoder.attention.kind is not soft"),
        ({"decoder": {"cross_attention": {"kind": "hard"}}}, "model.decoder.cross_attention.kind is not soft"),
        ({"decoder": {"attention": {"scorer": {"kind": "additive"}}}}, "additive"),
        ({"decoder": {"attention": {"normaliser": "sum"}}}, "model.decoder.attention.normaliser is sum"),
        ({"decoder": {"experts": {"count": 2}}}, "model.decoder.experts"),
        ({"encoder": {"kind": "recurrent"}}, None),
    ],
)
def test_unsupported_models_are_named(settings: dict[str, Any], named: str | None) -> None:
    reason = unsupported(random_model({**BASE, **settings}, 1))
    assert reason is None if named is None else named in (reason or "")


def test_unsupported_requests_are_named(tmp_path: Any) -> None:
    class Tokenizer:
        lossless, size = True, TARGETS

    class Both:
        target = Tokenizer()

    engine = CudaEngine(random_model(BASE, 1), Both(), None, torch.float32)  # type: ignore[arg-type]

    def refusal(decoding: SearchConfig | Sampling) -> str:
        return engine.refusal(Row(1, "", [5], decoding)) or ""

    assert refusal(SearchConfig()) == ""
    assert "sampling" in refusal(Sampling())
    assert "coverage_penalty" in refusal(SearchConfig(coverage_penalty=0.2))
    assert "at most 8" in refusal(SearchConfig(forbid=tuple(range(4, 13))))
    assert "not in the vocabulary" in refusal(SearchConfig(forbid=(TARGETS,)))
    Tokenizer.lossless = False
    assert "--unknown forbid" in refusal(SearchConfig())
