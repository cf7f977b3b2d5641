"""CTranslate2 finds what our search finds: the same hypotheses with the same scores, whatever stands beside them."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from exported_models import engines, random_model, random_texts
from tiny_model import tiny_tokenizers

from dragoman.checkpoint.folder import LoadedModel
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.exchange.ctranslate2.specification import POSITIONS
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.translation.engine import Engine, Pair, Prefix, Row
from dragoman.translation.request import Sampling

pytest.importorskip("ctranslate2")

STACK = {"layers": 2, "heads": 2, "feedforward": 16}
POST = {**STACK, "norm": "post"}
GATED = {**STACK, "activation": "swiglu", "normalisation": {"kind": "rms"}}
# presets of two layers a side, and blocks and positions that they do not have
MODELS: dict[str, dict[str, Any]] = {
    "tiny": {"preset": "tiny", "width": 32, "encoder": {"layers": 2}, "decoder": {"layers": 2}},
    "small": {"preset": "small", "width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 2}},
    "base": {"preset": "base", "width": 32, "encoder": {"layers": 2}, "decoder": {"layers": 2}},
    "gated, learned": {"width": 16, "encoder": GATED, "decoder": GATED, "positions": {"kind": "learned", "limit": 30}},
    "Shaw": {"width": 16, "encoder": STACK, "decoder": POST, "positions": {"kind": "relative", "distance": 3}},
    "none": {"width": 16, "encoder": POST, "decoder": {**STACK, "activation": "gelu"}, "positions": {"kind": "none"}},
}
PENALTIES = ({"kind": "none"}, {"kind": "gnmt", "alpha": 0.6}, {"kind": "mean"})
FREE: tuple[int, ...] = ()


@cache
def loaded(name: str) -> LoadedModel:
    """A random model of which some translations end early, some late, and some never."""
    # a projection of its own, or the end's embedding would be longer than the others
    config = ModelConfig.model_validate({"preset": None, "tie_projection": False, **MODELS[name]})
    return random_model(config, tiny_tokenizers(), seed=4, end=-3.0 if name == "none" else 3.0)


def rows_of_every_kind(size: int, count: int = 45) -> list[Row]:
    lengths = torch.randint(1, 20, (count,), generator=torch.Generator().manual_seed(1)).tolist()
    rows = []
    for number, source in enumerate(random_texts(size, lengths)):
        beam = (1, 3, 5)[number % 3]
        config = SearchConfig(
            beam=beam,
            nbest=1 if number % 2 else beam,
            length_penalty=PENALTIES[number // 3 % 3],  # type: ignore[arg-type]
            forbid=(PAD, BOS, UNK) if number % 6 == 0 else FREE,
            maximum_length=8 if number % 4 == 0 else None,
            minimum_length=6 if beam == 1 and number % 5 == 0 else 0,
        )
        rows.append(Row(number + 1, "", source, config, Prefix((7, 3, 9), ("?",)) if number % 12 == 0 else Prefix()))
    return rows


def found(engine: Engine, rows: list[Row], batch_size: int = 7) -> list[list[Hypothesis]]:
    assert not [reason for row in rows if (reason := engine.refusal(row)) is not None]
    results = dict(engine.hypotheses(rows, batch_size))
    return [results[place] for place in range(len(rows))]


def same(one: list[list[Hypothesis]], other: list[list[Hypothesis]], tolerance: float = 1e-3) -> None:
    for place, (first, second) in enumerate(zip(one, other, strict=True)):
        for each, expected in zip(first, second, strict=True):
            assert replace(each, score=0, log_probability=0) == replace(expected, score=0, log_probability=0), place
            assert each.score == pytest.approx(expected.score, abs=tolerance), place
            assert each.log_probability == pytest.approx(expected.log_probability, abs=tolerance), place


@pytest.mark.parametrize("name", MODELS)
def test_hypotheses_and_scores_are_those_of_the_reference(name: str) -> None:
    theirs, ours = engines(loaded(name))
    rows = rows_of_every_kind(loaded(name).tokenizers.source.size)
    expected = found(ours, rows)
    same(found(theirs, rows), expected)
    assert {each.finished for hypotheses in expected for each in hypotheses} == {True, False}


def test_a_row_gets_what_it_gets_alone() -> None:
    theirs, _ = engines(loaded("tiny"))
    rows = rows_of_every_kind(280, 24)
    together = found(theirs, rows)
    same(found(theirs, rows, batch_size=64), together)
    same(found(theirs, rows[::-1], batch_size=2)[::-1], together)
    same([found(theirs, [row])[0] for row in rows], together)


def test_what_is_forbidden_is_never_written() -> None:
    """In a random model forbidden tokens are as likely as others, so taking them out changes the distribution."""
    theirs, ours = engines(loaded("small"))
    forbid = tuple(range(3, 200))
    sources = random_texts(280, [9] * 12)
    rows = [Row(n, "", s, SearchConfig(beam=1 + 2 * (n % 2), forbid=forbid)) for n, s in enumerate(sources, start=1)]
    hypotheses = found(theirs, rows)
    assert all(set(forbid).isdisjoint(best.tokens) for (best,) in hypotheses)
    pairs = [Pair(row.number, row.source, best.tokens) for row, (best,) in zip(rows, hypotheses, strict=True)]
    scored = ours.scores(pairs, 8)
    ended = [(best.log_probability, score) for (best,), score in zip(hypotheses, scored, strict=True) if best.finished]
    assert ended
    assert all(one == pytest.approx(other, abs=1e-3) for one, other in ended)


def test_forced_decoding() -> None:
    theirs, ours = engines(loaded("gated, learned"))
    texts = random_texts(280, [1, 5, 29, 12])
    pairs = [Pair(number, texts[number], target) for number, target in enumerate([*texts[1:], ()])]
    assert theirs.scores(pairs, 3) == pytest.approx(ours.scores(pairs, 3), abs=1e-3)


def test_int8_is_near() -> None:
    theirs, ours = engines(loaded("base"), "int8")
    texts = random_texts(280, [8] * 6)
    pairs = [Pair(number, text, text[::-1]) for number, text in enumerate(texts)]
    exact = ours.scores(pairs, 6)
    assert theirs.scores(pairs, 6) == pytest.approx(exact, rel=0.2)
    assert theirs.scores(pairs, 6) != pytest.approx(exact, rel=1e-6)


def test_int8_searches_by_its_own_rule() -> None:
    """Other hypotheses may be found, but what they are worth is computed by our rules, and nothing else changes."""
    theirs, _ = engines(loaded("tiny"), "int8")
    rows = [row for row in rows_of_every_kind(280) if not row.prefix.ids]
    hypotheses = found(theirs, rows)
    for row, each in zip(rows, hypotheses, strict=True):
        config = row.decoding
        assert isinstance(config, SearchConfig)
        assert len(each) == config.nbest
        assert len({best.tokens for best in each}) == config.nbest
        assert [(-one.finished, -one.score) for one in each] == sorted((-one.finished, -one.score) for one in each)
        longest = config.max_length(len(row.source) + 1)
        for best in each:
            length = len(best.tokens) + best.finished
            assert length <= longest and (best.finished or length == longest)
            assert best.score == pytest.approx(best.log_probability / config.length_penalty.divisor(length))
    pairs = [Pair(row.number, row.source, each[0].tokens) for row, each in zip(rows, hypotheses, strict=True)]
    forced = theirs.scores(pairs, 1)
    ended = [(one, each[0].log_probability) for one, each in zip(forced, hypotheses, strict=True) if each[0].finished]
    assert len(ended) > 10
    assert all(one == pytest.approx(other, rel=0.05, abs=0.1) for one, other in ended)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Row(1, "", [5], Sampling()), "random numbers"),
        (Row(1, "", [5], SearchConfig(coverage_penalty=0.1)), "coverage"),
        (Row(1, "", [5], SearchConfig(beam=2), Prefix((5,))), "prefix"),
        (Row(1, "", [5], SearchConfig(beam=2, minimum_length=1)), "least length"),
        (Row(1, "", [5] * (POSITIONS // 2), SearchConfig(beam=1)), f"{POSITIONS} positions"),
        (Row(1, "", [], SearchConfig(beam=1)), "without a token"),
    ],
    ids=["sampling", "coverage", "prefix", "minimum", "positions", "empty"],
)
def test_what_means_something_else_is_refused(row: Row, reason: str) -> None:
    theirs, _ = engines(loaded("base"))
    refusal = theirs.refusal(row)
    assert refusal is not None
    assert reason in refusal
    assert "--engine torch" in refusal


def test_unknown_words_need_attention() -> None:
    words = train_tokenizers(
        TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}}), ["a b"], ["c d"]
    )
    theirs, _ = engines(random_model(small_config(), words))
    assert "unknown" in str(theirs.refusal(Row(1, "a", [5], SearchConfig())))
    assert theirs.refusal(Row(1, "a", [5], SearchConfig.model_validate({"unknown": "forbid"}))) is None


def small_config() -> ModelConfig:
    return ModelConfig.model_validate({"preset": None, "width": 8, "encoder": STACK, "decoder": STACK})


def test_vocabularies_of_their_own() -> None:
    shared = tiny_tokenizers()
    apart = Tokenizers(shared.source, tiny_tokenizers(270, shared=False).target)
    config = ModelConfig.model_validate({**small_config().model_dump(), "tie_embeddings": False})
    theirs, ours = engines(random_model(config, apart, end=3.0))
    rows = [Row(n, "", s, SearchConfig(forbid=FREE, nbest=2)) for n, s in enumerate(random_texts(270, [3, 9, 4]), 1)]
    same(found(theirs, rows), found(ours, rows))
