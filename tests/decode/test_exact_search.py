"""Exact search against brute force, and its proofs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import brute_force, next_log_probabilities
from searching import searched
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory

from dragoman.base.errors import ConfigError
from dragoman.decode.constraints.constraint import Alternative, Constraints, Edges
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import SearchConfig, search
from dragoman.models.interface import Memory
from dragoman.text.symbols import EOS

SIZE = 7
PENALTIES = [GNMTPenalty(), MeanLogProbability(), NoPenalty()]
SHORT = {"length_factor": 0, "length_margin": 4}
SOURCES = [[1, 2], [4, 4, 4]]
ENOUGH = 10_000


def one(memory: Memory, row: int) -> Memory:
    return Memory(memory.states[row : row + 1], memory.mask[row : row + 1])


RULES = [
    {},
    {"minimum_length": 2},
    {"maximum_length": 3},
    {"no_repeat_ngram": 2},
    {"coverage_penalty": 0.5},
    {"shrinking": True},
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: penalty.kind)
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(rules) or "plain")
def test_exact_search_equals_brute_force(penalty: object, rules: dict) -> None:
    memory, decoder = toy_memory(SOURCES), AttendingToy(SIZE, 3)
    settings = {"exact": ENOUGH, "length_penalty": penalty, **SHORT, **rules}
    every = [brute_force(decoder, one(memory, row), SearchConfig.model_validate(settings), SIZE) for row in range(2)]
    for beam, nbest in ((1, 1), (4, 3)):
        config = SearchConfig.model_validate({"beam": beam, "nbest": nbest, **settings})
        for found, outputs in zip(searched(decoder, memory, config), every, strict=True):
            wanted = outputs[:nbest]
            assert [each.tokens for each in found] == [each.tokens for each in wanted]
            assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)
            assert found[0].bound == found[-1].score, "no missing output is better than the last one"


@settings(max_examples=20, deadline=None)
@given(
    toy=st.sampled_from([MarkovToy, RecurrentToy]),
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 3),
    exact=st.integers(1, 400),
    penalty=st.sampled_from(PENALTIES),
)
def test_the_bound_holds_whenever_the_search_ends(toy: type, seed: int, beam: int, exact: int, penalty: object) -> None:
    memory, decoder = toy_memory([[1, 2]]), toy(SIZE, seed)
    config = SearchConfig.model_validate({"beam": beam, "length_penalty": penalty, **SHORT})
    (by_beam,) = searched(decoder, memory, config)[0]
    (found,) = searched(decoder, memory, config.model_copy(update={"exact": exact}))[0]
    best = brute_force(decoder, memory, config, SIZE)[0]
    assert found.bound is not None
    assert by_beam.bound is None
    if by_beam.finished:
        assert found.score >= by_beam.score, "exact search never makes the result worse"
    assert found.bound >= best.score - 1e-4
    if found.finished and found.bound <= found.score:
        assert found.score == pytest.approx(best.score, abs=1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_longer_search_is_closer_to_a_proof(seed: int) -> None:
    memory, decoder = toy_memory([[1, 2]]), RecurrentToy(SIZE, seed)
    config = SearchConfig(beam=1, length_penalty=NoPenalty(), length_factor=0, length_margin=8)
    found = [searched(decoder, memory, config.model_copy(update={"exact": exact}))[0][0] for exact in (1, 40, ENOUGH)]
    bounds = [each.bound for each in found]
    assert bounds == sorted(bounds, reverse=True)
    first = next_log_probabilities(decoder, memory, []).copy()
    first[[*config.forbid, EOS]] = -np.inf
    known = max(found[0].score, first.max()) if found[0].finished else first.max()
    assert bounds[0] == pytest.approx(known, abs=1e-5), "one expansion knows only the first tokens"
    assert bounds[-1] == found[-1].score


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4), data=st.data())
def test_prefixes_and_token_scores_are_those_of_the_output(seed: int, beam: int, data: st.DataObject) -> None:
    memory, decoder = toy_memory([[1, 2], [3, 4, 5]]), RecurrentToy(SIZE, seed)
    prefixes = data.draw(st.lists(st.lists(st.integers(4, SIZE - 1), max_size=2), min_size=2, max_size=2))
    config = SearchConfig(beam=beam, exact=ENOUGH, token_scores=True, length_penalty=NoPenalty(), **SHORT)
    for row, (found,) in enumerate(searched(decoder, memory, config, prefixes)):
        prefix = prefixes[row]
        assert list(found.tokens[: len(prefix)]) == prefix
        assert sum(found.token_log_probabilities) == pytest.approx(found.log_probability, abs=1e-4)
        every = brute_force(decoder, one(memory, row), config, SIZE)
        best = next(each for each in every if list(each.tokens[: len(prefix)]) == prefix)
        assert found.score == pytest.approx(best.score, abs=1e-4)


def test_a_batch_may_mix_exact_and_beam_search() -> None:
    memory, decoder = toy_memory(SOURCES), RecurrentToy(SIZE, 2)
    plain = SearchConfig(beam=2, **SHORT)
    exact = plain.model_copy(update={"exact": ENOUGH})
    mixed = searched(decoder, memory, [plain, exact])
    assert mixed == [searched(decoder, memory, plain)[0], searched(decoder, memory, exact)[1]]
    assert [each[0].bound is None for each in mixed] == [True, False]


def test_exact_search_with_groups_or_constraints_is_an_error() -> None:
    with pytest.raises(ValueError, match="an exact search has no groups"):
        SearchConfig.model_validate({"beam": 4, "exact": 10, "diversity": {"groups": 2}})
    memory, decoder, config = toy_memory([[1]]), RecurrentToy(SIZE, 1), SearchConfig(exact=10)
    required = Constraints([[(Alternative((5,)),)]], Edges.none(SIZE))
    with pytest.raises(ConfigError, match=r"does not support .*search\.exact"):
        search(decoder, Prompts.of(decoder, memory, config), config, constraints=required)
