"""The CTranslate2 engine returns the results of CTranslate2's own search, and scores pairs as PyTorch does."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from exported_models import engines, random_model, random_texts
from tiny_model import tiny_tokenizers

from dragoman.checkpoint.folder import LoadedModel
from dragoman.decode.decoding import Sampling
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Pair, Prefix, Row
from dragoman.exchange.ctranslate2.folder import ComputeSettings, load_into_ctranslate2
from dragoman.exchange.ctranslate2.specification import POSITIONS, token_names
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

pytest.importorskip("ctranslate2")

STACK = {"layers": 2, "heads": 2, "feedforward": 16}
POST = {**STACK, "norm": "post"}
GATED = {**STACK, "activation": "swiglu", "normalisation": {"kind": "rms"}}
# presets with two layers per side, and blocks and positions that they lack
MODELS: dict[str, dict[str, Any]] = {
    "tiny": {"preset": "tiny", "width": 32, "encoder": {"layers": 2}, "decoder": {"layers": 2}},
    "small": {"preset": "small", "width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 2}},
    "base": {"preset": "base", "width": 32, "encoder": {"layers": 2}, "decoder": {"layers": 2}},
    "gated, learned": {"width": 16, "encoder": GATED, "decoder": GATED, "positions": {"kind": "learned", "limit": 30}},
    "Shaw": {"width": 16, "encoder": STACK, "decoder": POST, "positions": {"kind": "relative", "distance": 3}},
    "none": {"width": 16, "encoder": POST, "decoder": {**STACK, "activation": "gelu"}, "positions": {"kind": "none"}},
}
FREE: tuple[int, ...] = ()
PENALTIES = {NoPenalty(): 0.0, GNMTPenalty(alpha=0.6): 0.6, MeanLogProbability(): 1.0}
"""CTranslate2's length exponent for each of our penalties."""


@cache
def loaded(name: str) -> LoadedModel:
    """A random model whose translations end early, late and never."""
    # a separate projection; otherwise the embedding of the end would be longer than the others
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
            length_penalty=list(PENALTIES)[number // 3 % 3],
            forbid=(PAD, BOS, UNK) if number % 6 == 0 else FREE,
            maximum_length=8 if number % 4 == 0 else None,
            minimum_length=6 if number % 5 == 0 else 0,
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


@cache
def exported_model(name: str) -> Any:
    return load_into_ctranslate2(loaded(name), ComputeSettings("float32", 1))


def plain(name: str, row: Row) -> list[Hypothesis]:
    """Return CTranslate2's own result for a single row, called as in its documentation."""
    exported = exported_model(name)
    config, symbols = row.decoding, token_names(exported.tokenizers.target)
    assert isinstance(config, SearchConfig)
    alpha = PENALTIES[config.length_penalty]  # type: ignore[index]
    longest = min(config.max_length(len(row.source) + 1), loaded(name).model.limits.target.positions or 999)
    (result,) = exported.translator.translate_batch(
        [[token_names(exported.tokenizers.source)[number] for number in row.source]],
        [[symbols[number] for number in row.prefix.ids]],
        beam_size=config.beam,
        num_hypotheses=config.nbest,
        length_penalty=alpha,
        max_decoding_length=max(longest, len(row.prefix.ids) + 1),
        min_decoding_length=config.minimum_length,
        suppress_sequences=[[symbols[number]] for number in config.forbid],
        return_scores=True,
        return_end_token=True,
    )
    hypotheses = []
    for pieces, score in zip(result.hypotheses, result.scores, strict=True):
        ids = tuple(symbols.index(piece) for piece in pieces)
        finished = ids[-1] == EOS
        ids, length = ids[:-1] if finished else ids, len(ids)
        hypotheses.append(Hypothesis(ids, score * length**alpha, score, finished, row.prefix.unknown))
    return hypotheses


@pytest.mark.parametrize("name", MODELS)
def test_hypotheses_and_scores_are_those_of_plain_ctranslate2(name: str) -> None:
    engine, _ = engines(loaded(name))
    rows = [
        row
        for row in rows_of_every_kind(loaded(name).tokenizers.source.size)
        if len(row.source) + 1 <= (loaded(name).model.limits.target.positions or 99)
    ]
    expected = [plain(name, row) for row in rows]
    same(found(engine, rows), expected)
    assert {each.finished for hypotheses in expected for each in hypotheses} == {True, False}


@pytest.mark.slow
def test_greedy_search_equals_the_reference() -> None:
    """The rules differ only for beams; log-probabilities are those of forced decoding."""
    for name in MODELS:
        theirs, ours = engines(loaded(name))
        rows = [
            row._replace(decoding=row.decoding.model_copy(update={"forbid": FREE, "length_penalty": NoPenalty()}))
            for row in rows_of_every_kind(loaded(name).tokenizers.source.size)
            if row.decoding.beam == 1 and not row.decoding.minimum_length and not row.prefix.ids  # type: ignore[union-attr]
        ]
        same(found(theirs, rows), found(ours, rows))


def test_log_probabilities_are_those_of_forced_decoding() -> None:
    """If no token is forbidden; a prefix is not counted."""
    theirs, ours = engines(loaded("tiny"))
    rows = [
        Row(n, "", source, SearchConfig(beam=3, nbest=2, forbid=FREE), Prefix((7, 3)) if n % 2 else Prefix())
        for n, source in enumerate(random_texts(280, [3, 9, 4, 12, 5, 8]), start=1)
    ]
    checked = 0
    for row, hypotheses in zip(rows, found(theirs, rows), strict=True):
        for each in hypotheses:
            if each.finished:
                (whole,) = ours.scores([Pair(1, row.source, each.tokens)], 1)
                if not row.prefix.ids:
                    assert each.log_probability == pytest.approx(whole, abs=1e-2)
                else:
                    assert each.log_probability > whole + 1
                checked += 1
    assert checked > 5


def test_a_row_does_not_depend_on_its_batch() -> None:
    """Rows have all lengths and limits: none is cut or continued because of another."""
    theirs, _ = engines(loaded("tiny"))
    rows = rows_of_every_kind(280, 24)
    batched = found(theirs, rows)
    same(found(theirs, rows, batch_size=64), batched)
    same(found(theirs, rows[::-1], batch_size=2)[::-1], batched)
    same([found(theirs, [row])[0] for row in rows], batched)


def test_forbidden_tokens_are_never_generated() -> None:
    theirs, _ = engines(loaded("small"))
    forbid = tuple(range(3, 200))
    sources = random_texts(280, [9] * 12)
    rows = [Row(n, "", s, SearchConfig(beam=1 + 2 * (n % 2), forbid=forbid)) for n, s in enumerate(sources, start=1)]
    assert all(set(forbid).isdisjoint(best.tokens) for (best,) in found(theirs, rows))


def test_lengths_are_kept() -> None:
    theirs, _ = engines(loaded("tiny"))
    rows = [
        Row(n, "", source, SearchConfig(beam=1 + 2 * (n % 2), minimum_factor=0.5, maximum_length=9, forbid=FREE))
        for n, source in enumerate(random_texts(280, [2, 7, 14] * 3), start=1)
    ]
    for row, (best,) in zip(rows, found(theirs, rows), strict=True):
        written = len(best.tokens) + best.finished
        assert row.decoding.min_length(len(row.source) + 1) <= written <= 9  # type: ignore[union-attr]


def test_forced_decoding() -> None:
    theirs, ours = engines(loaded("gated, learned"))
    texts = random_texts(280, [1, 5, 29, 12])
    pairs = [Pair(number, texts[number], target) for number, target in enumerate([*texts[1:], ()])]
    assert theirs.scores(pairs, 3) == pytest.approx(ours.scores(pairs, 3), abs=1e-3)


def test_int8_scores_are_close() -> None:
    theirs, ours = engines(loaded("base"), "int8")
    texts = random_texts(280, [8] * 6)
    pairs = [Pair(number, text, text[::-1]) for number, text in enumerate(texts)]
    exact = ours.scores(pairs, 6)
    assert theirs.scores(pairs, 6) == pytest.approx(exact, rel=0.2)
    assert theirs.scores(pairs, 6) != pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Row(1, "", [5], Sampling()), "random numbers"),
        (Row(1, "", [5], SearchConfig(coverage_penalty=0.1)), "coverage"),
        (Row(1, "", [5] * (POSITIONS // 2), SearchConfig(beam=1)), f"{POSITIONS} positions"),
        (Row(1, "", [], SearchConfig(beam=1)), "without tokens"),
    ],
    ids=["sampling", "coverage", "positions", "empty"],
)
def test_unsupported_requests_are_refused(row: Row, reason: str) -> None:
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


def test_separate_vocabularies() -> None:
    shared = tiny_tokenizers()
    apart = Tokenizers(shared.source, tiny_tokenizers(270, shared=False).target)
    config = ModelConfig.model_validate({**small_config().model_dump(), "tie_embeddings": False})
    theirs, ours = engines(random_model(config, apart, end=3.0))
    greedy = SearchConfig(beam=1, forbid=FREE, length_penalty=NoPenalty())
    rows = [Row(n, "", source, greedy) for n, source in enumerate(random_texts(270, [3, 9, 4]), 1)]
    same(found(theirs, rows), found(ours, rows))
