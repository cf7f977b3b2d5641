"""Searches with shortlists in the native engine give the results of PyTorch's search over the same tokens."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from native_searches import (
    TARGETS,
    RestrictedSearch,
    compare_restricted,
    native_request,
    random_constraints,
    random_edges,
    random_model,
    random_search,
    random_settings,
    random_shortlist,
)

from dragoman.data.batches.batch import pad
from dragoman.decode.constraints.constraint import tokens_needed
from dragoman.decode.shortlist import ShortlistedDecoder
from dragoman.engines.native.model import NativeModel
from dragoman.native.compiler import InstructionSet, available

pytestmark = pytest.mark.usefixtures("one_thread")


def compare(seed: int, count: int, instructions: InstructionSet | None = None) -> None:
    """Compare random searches, with and without constraints, that share their batches with ordinary searches."""
    chance = random.Random(seed)
    model = random_model(random_settings(chance), seed)
    edges, limit = random_edges(chance), model.limits.target.positions
    searches: list[RestrictedSearch] = []
    while len(searches) < count:
        source, prefix, config = random_search(chance)
        required = random_constraints(chance, edges) if chance.random() < 0.4 else []
        if limit is None or tokens_needed(required) <= limit - len(prefix):
            shortlist = random_shortlist(chance, prefix, required)
            searches.append(RestrictedSearch(source, prefix, config, required, edges, shortlist))
    found = compare_restricted(model, NativeModel(model, "float32", 2, instructions), searches)
    for hypotheses, search in zip(found, searches, strict=True):
        assert search.shortlist is not None
        allowed = set(search.shortlist.tolist())
        assert all(set(each.tokens) <= allowed for each in hypotheses)


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
