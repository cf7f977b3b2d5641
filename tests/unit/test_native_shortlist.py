"""Searches with shortlists in the native engine give the results of PyTorch's search over the same tokens."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from native_searches import (
    TARGETS,
    native_request,
    random_constraints,
    random_edges,
    random_model,
    random_search,
    random_settings,
    random_shortlist,
)
from numpy.typing import NDArray

from dragoman.data.batches.batch import pad
from dragoman.decode.constraints.constraint import Constraint, Constraints, Edges, tokens_needed
from dragoman.decode.prompts import Prompts
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.decode.shortlist import ShortlistedDecoder
from dragoman.models.seq2seq import Seq2Seq
from dragoman.native.compiler import InstructionSet, available
from dragoman.translation.engines.native.constraints import NativeConstraints, TokenKinds
from dragoman.translation.engines.native.model import NativeModel
from dragoman.translation.engines.native.request import NativeRequest

pytestmark = pytest.mark.usefixtures("one_thread")


@torch.no_grad()
def searched(
    model: Seq2Seq,
    source: list[int],
    prefix: list[int],
    config: SearchConfig,
    shortlist: NDArray[np.int32],
    required: list[Constraint],
    edges: Edges,
) -> list[Hypothesis]:
    memory = model.encode(*pad([source]))
    decoder = ShortlistedDecoder(model.decoder, [shortlist], TARGETS, torch.device("cpu"))
    prompts = Prompts.of(decoder, memory, [config], [prefix], [tokens_needed(required)])
    constraints = Constraints([required], edges) if required else None
    return search(decoder, prompts, [config], constraints=constraints)[0]


def close(found: list[Hypothesis], expected: list[Hypothesis]) -> bool:
    return len(found) == len(expected) and all(
        one.tokens == other.tokens
        and one.finished == other.finished
        and one.log_probability == pytest.approx(other.log_probability, abs=1e-3)
        and one.score == pytest.approx(other.score, abs=1e-3)
        for one, other in zip(found, expected, strict=True)
    )


def compare(seed: int, count: int, instructions: InstructionSet | None = None) -> None:
    """Compare random searches, with and without constraints, that share their batches with ordinary searches."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    edges = random_edges(chance)
    kinds, limit = TokenKinds(edges), model.limits.target.positions
    searches, requests, plain = [], list[NativeRequest](), list[NativeRequest]()
    while len(searches) < count:
        source, prefix, config = random_search(chance)
        required = random_constraints(chance, edges) if chance.random() < 0.4 else []
        if limit is not None and tokens_needed(required) > limit - len(prefix):
            continue
        shortlist = random_shortlist(chance, prefix, required)
        searches.append((source, prefix, config, shortlist, required, edges))
        constraints = NativeConstraints(required, kinds, prefix) if required else None
        requests.append(NativeRequest.of(source, prefix, config, limit, constraints=constraints, shortlist=shortlist))
        plain.append(NativeRequest.of(source, prefix, config, limit))
    native = NativeModel(model, "float32", 2, instructions)
    both = native.translate([each for pair in zip(requests, plain, strict=True) for each in pair], 5, 2)
    found = both[::2]
    assert both[1::2] == native.translate(plain, 3, 1), "shortlists of other requests have no effect"
    assert [native.translate([request], 1, 1)[0] for request in requests] == found, "bit for bit the same alone"
    equal = [close(one, searched(model, *each)) for one, each in zip(found, searches, strict=True)]
    assert sum(not each for each in equal) <= 1, "only near-ties may differ"
    for hypotheses, (_, _, _, shortlist, _, _) in zip(found, searches, strict=True):
        assert all(set(each.tokens) <= set(shortlist.tolist()) for each in hypotheses)


@pytest.mark.parametrize("instructions", available(), ids=lambda each: each.name)
@pytest.mark.parametrize("seed", range(3))
def test_searches_with_shortlists_equal_those_of_pytorch(instructions: InstructionSet, seed: int) -> None:
    compare(seed, 7, instructions)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 40))
def test_many_searches_with_shortlists_equal_those_of_pytorch(seed: int) -> None:
    compare(seed, 15)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_shortlist_of_all_tokens_changes_nothing(precision: str) -> None:
    chance = random.Random(7)
    model = random_model(random_settings(chance), 7)
    native = NativeModel(model, precision)  # type: ignore[arg-type]
    requests = [native_request(model, *random_search(chance)) for _ in range(20)]
    everything = np.arange(TARGETS, dtype=np.int32)
    found = native.translate(requests, 8, 1)
    assert native.translate([replace(each, shortlist=everything) for each in requests], 8, 1) == found


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_the_shortlisted_decoder_normalises_over_the_shortlist(seed: int) -> None:
    """Its log-probabilities are those of the decoder, divided by the probability of the shortlist, at all positions."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    memory = model.encode(*pad([[5, 6, 3], [7, 8, 9]]))
    first = random_shortlist(chance, [5])
    decoder = ShortlistedDecoder(model.decoder, [first, None], TARGETS, torch.device("cpu"))
    inputs = torch.tensor([[1, 5, 6], [1, 9, 8]])
    output, state = decoder.step(inputs, decoder.start(memory))
    plain, _ = model.decoder.step(inputs, model.decoder.start(memory))
    expected = plain.logits().log_softmax(-1)
    allowed = torch.tensor([[token in first for token in range(TARGETS)], [True] * TARGETS])
    expected = expected.masked_fill(~allowed.unsqueeze(1), -torch.inf)
    expected = expected - expected.logsumexp(-1, keepdim=True)
    found = output.logits().log_softmax(-1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(output.last_logits().log_softmax(-1), expected[:, -1], atol=1e-5, rtol=1e-4)
    chosen = torch.tensor([[True, False, True], [False, True, True]])
    torch.testing.assert_close(output.logits(chosen).log_softmax(-1), expected[chosen], atol=1e-5, rtol=1e-4)
    numbers = torch.tensor([4, 0, 2])
    torch.testing.assert_close(
        output.logits(numbers).log_softmax(-1), expected.view(6, -1)[numbers], atol=1e-5, rtol=1e-4
    )
    swapped = state.reorder(torch.tensor([1, 1, 0, 0]), 2)
    after, _ = decoder.step(torch.full((4, 1), 7), swapped)
    assert (after.last_logits() > -torch.inf).tolist() == allowed[[1, 1, 0, 0]].tolist()
