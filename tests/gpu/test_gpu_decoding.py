"""Decoding on a GPU: captured steps give the results of the PyTorch search on the CPU, and half precision is close."""

import copy
import random
from math import inf

import pytest
import torch
from native_searches import TARGETS, native_request, random_model, random_search, random_settings, searched

from dragoman.decode.search import Hypothesis
from dragoman.engines.cuda.engine import unsupported
from dragoman.engines.cuda.session import CudaRequest, CudaSession, Model
from dragoman.engines.engine import Row
from dragoman.models.kinds.encoder_decoder import Seq2Seq


def _model(chance: random.Random, seed: int) -> Seq2Seq:
    while unsupported(model := random_model(random_settings(chance), seed)) is not None:
        pass
    return model


def _no_fallback(request: CudaRequest) -> list[Hypothesis]:
    raise AssertionError("nothing is searched again")


@pytest.mark.parametrize("seed", range(4))
def test_captured_steps_find_what_the_search_finds(seed: int) -> None:
    chance = random.Random(seed)
    model = _model(chance, seed)
    searches = [random_search(chance) for _ in range(40)]
    requests = [
        CudaRequest(Row(1, "", source, config), native_request(model, source, prefix, config))
        for source, prefix, config in searches
    ]
    expected = [searched(model, *search) for search in searches]
    engine = Model(copy.deepcopy(model).cuda(), TARGETS)
    found: dict[int, list[Hypothesis]] = {}
    with CudaSession(engine, requests, 8, _no_fallback) as session:
        while session.in_progress:
            found |= dict(session.completed(inf))
    assert engine._unused
    for captured in engine._unused.values():
        assert captured._replay is not None
        assert captured._verified
    same = sum(
        [each.tokens for each in found[number]] == [each.tokens for each in expected[number]] for number in found
    )
    assert same >= 38  # two near-ties may be rounded differently
    for number, hypotheses in enumerate(expected):
        assert found[number][0].score == pytest.approx(hypotheses[0].score, abs=1e-3)


def test_half_precision_gives_nearly_the_same_scores() -> None:
    chance = random.Random(7)
    model = _model(chance, 7)
    source, _, config = random_search(chance)
    prefix = [5, 6, 7, 8, 9]
    config = config.model_copy(update={"beam": 1, "nbest": 1})
    expected = searched(model, source, prefix, config)[0]
    request = CudaRequest(Row(1, "", source, config), native_request(model, source, prefix, config))
    with CudaSession(Model(copy.deepcopy(model).half().cuda(), TARGETS), [request], 1, _no_fallback) as session:
        ((_, (found,)),) = session.completed(inf)
    assert found.tokens[:5] == expected.tokens[:5]
    assert torch.isfinite(torch.tensor(found.score))
    if found.tokens == expected.tokens:
        assert found.log_probability == pytest.approx(expected.log_probability, abs=0.2)
