"""One call of the engine with requests of every kind: each row gets the result that it gets alone."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_model import SOURCES, TARGETS, tiny_config

from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.decode.sampling import SamplingConfig
from dragoman.decode.search import SearchConfig
from dragoman.engines.torch.engine import TorchEngine
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.translator import Request, Sampling, Translator
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import TextConfig, train_tokenizers

TEXTS = [*SOURCES, "a man .", "", "two dogs sleep in the park .", "Xaver sees ( a dog ) ."]
PREFIXES = ["", "ein", "der Mann ", "Zwei Yv"]
TAGS = [("to:de",), ("to:fr",), ("to:de", "bt")]


def _search(beam: int, nbest: int, divided: dict | None, **others: object) -> SearchConfig:
    settings = {"beam": beam, "nbest": min(beam, nbest), "length_margin": 4, **others}
    return SearchConfig.model_validate({**settings, **(divided or {})} if beam == 3 else settings)


searches = st.builds(
    _search,
    beam=st.sampled_from([1, 3]),
    nbest=st.integers(1, 3),
    length_penalty=st.sampled_from([0.0, 0.9, {"kind": "mean"}, {"kind": "none"}]),
    coverage_penalty=st.sampled_from([0.0, 0.0, 0.4]),
    minimum_length=st.sampled_from([0, 3]),
    minimum_factor=st.sampled_from([0.0, 0.8]),
    maximum_length=st.sampled_from([None, 4]),
    no_repeat_ngram=st.sampled_from([0, 2]),
    token_scores=st.booleans(),
    forbid=st.sampled_from([(PAD, BOS, UNK), (PAD, BOS)]),
    unknown=st.sampled_from([None, "copy", "forbid"]),
    divided=st.sampled_from([None, None, {"shrinking": True}, {"diversity": {"groups": 3}}]),
)
samplings = st.builds(
    lambda temperature, top_k, **others: Sampling(
        SamplingConfig(temperature=temperature, top_k=top_k, length_margin=4, no_repeat_ngram=2), **others
    ),
    temperature=st.sampled_from([0.7, 1.3]),
    top_k=st.sampled_from([None, 7]),
    samples=st.just(2),
)


@st.composite
def mixed(draw: st.DrawFn) -> list[tuple[str, Request]]:
    """Texts with requests, several of which can be decoded together."""
    decodings = draw(st.lists(st.one_of(searches, searches, samplings), min_size=1, max_size=5))
    lines = []
    for text in draw(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=8)):
        decoding, tags = draw(st.sampled_from(decodings)), draw(st.sampled_from(TAGS))
        if isinstance(decoding, Sampling):
            lines.append((text, Request(replace(decoding, seed=draw(st.integers(1, 3))), tags)))
        else:
            lines.append((text, Request(decoding, tags, draw(st.sampled_from(PREFIXES)))))
    return lines


@cache
def translator() -> Translator:
    """Random; logits are far apart, so that rounding does not matter; most translations end and contain unknowns."""
    text = {"subword": {"kind": "word", "min_frequency": 1}, "shared": False, "tags": ("to:de", "to:fr", "bt")}
    tokenizers = train_tokenizers(TextConfig.model_validate(text), SOURCES, TARGETS)
    stack = {"layers": 2, "heads": 2, "feedforward": 32}
    untied = {"tie_embeddings": False, "tie_projection": False}
    config = tiny_config(width=16, dropout=0.0, encoder=stack, decoder=stack, **untied)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(3)
        model = config.build(tokenizers.source.size, tokenizers.target.size)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.5)
        model.decoder.projection.weight[[EOS, UNK]] *= 1.5
    meta = Meta(step=1, target_languages=("de", "fr"))
    return Translator.of(LoadedModel(model, tokenizers, meta, {}), torch.device("cpu"), warn_unfinished=False)


def same(found: list[Translation], expected: list[Translation]) -> None:
    assert [(each.text, each.tokens, each.finished) for each in found] == [
        (each.text, each.tokens, each.finished) for each in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixed(), st.integers(1, 8))
def test_mixed_requests_equal_each_alone(lines: list[tuple[str, Request]], batch_size: int) -> None:
    texts, wanted = zip(*lines, strict=True)
    mixed = translator().translate_nbest(texts, wanted, batch_size)
    for number, (text, request, found) in enumerate(zip(texts, wanted, mixed, strict=True), start=1):
        ((*alone,),) = translator().translate_window([text], request, first=number)
        same(found, alone)


def test_the_translations_are_worth_comparing() -> None:
    found = [translator().translate_nbest(TEXTS, Request(SearchConfig(beam=3), tags)) for tags in TAGS]
    best = [each[0] for lists in found for each in lists]
    assert len({each.text for each in best}) > 10
    assert sum(each.finished for each in best) > 10
    assert sum("<unk>" in each.tokens for each in best) > 10


def test_compatible_rows_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Languages, tags, prefixes, penalties and seeds share a batch; beams of different sizes do not."""
    sizes: list[int] = []
    decoded = TorchEngine._decode
    monkeypatch.setattr(TorchEngine, "_decode", lambda self, rows: sizes.append(len(rows)) or decoded(self, rows))
    searched = [Request(SearchConfig(beam=2), tags, prefix) for tags in TAGS for prefix in PREFIXES]
    other = SearchConfig(beam=2, nbest=2, length_penalty=0.0, unknown="forbid", minimum_length=2)
    searched.append(Request(other, TAGS[0]))
    drawn = [Request(Sampling(SamplingConfig(top_k=3 + seed), seed=seed), TAGS[0]) for seed in (1, 2, 3)]
    others = [Request(SearchConfig(beam=3), TAGS[0])]
    wanted = [*searched, *drawn, *others]
    translator().translate_nbest(["a dog runs ."] * len(wanted), wanted)
    assert sorted(sizes) == [len(others), len(drawn), len(searched)]
