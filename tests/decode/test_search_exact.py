"""Beam search against brute force, against a plain reference, and every hypothesis against forced decoding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import brute_force, coverage_penalty, plain_search
from searching import searched
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory

from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Memory
from dragoman.text.symbols import BOS, EOS

SIZE = 8
PENALTIES = [GNMTPenalty(), GNMTPenalty(alpha=1.5), MeanLogProbability(), NoPenalty()]
SOURCES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4)
TOYS = st.builds(lambda kind, seed: kind(SIZE, seed), st.sampled_from([MarkovToy, RecurrentToy]), st.integers(0, 10**6))


@st.composite
def configs(draw: st.DrawFn) -> SearchConfig:
    beam = draw(st.integers(1, 5))
    return SearchConfig(
        beam=beam,
        nbest=draw(st.integers(1, beam)),
        length_penalty=draw(st.sampled_from(PENALTIES)),
        length_factor=draw(st.sampled_from([0.0, 1.5])),
        length_margin=draw(st.integers(1, 9)),
        maximum_length=draw(st.sampled_from([None, None, 3, 6])),
        minimum_length=draw(st.integers(0, 2)),
        minimum_factor=draw(st.sampled_from([0.0, 0.0, 0.7, 1.5])),
        no_repeat_ngram=draw(st.sampled_from([0, 0, 1, 2, 3])),
        shrinking=draw(st.booleans()),
    )


def one(memory: Memory, row: int) -> Memory:
    return Memory(memory.states[row : row + 1], memory.mask[row : row + 1])


def same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    assert [(each.tokens, each.finished) for each in found] == [(each.tokens, each.finished) for each in wanted]
    assert [each.log_probability for each in found] == pytest.approx(
        [each.log_probability for each in wanted], abs=1e-4
    )
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: f"{penalty.kind}")
@pytest.mark.parametrize("toy", [MarkovToy, RecurrentToy])
def test_an_exhaustive_beam_equals_brute_force(toy: type, penalty: LengthPenalty) -> None:
    memory = toy_memory([[1, 2], [3], [4, 4, 4]])
    config = SearchConfig(beam=500, length_penalty=penalty, length_factor=0, length_margin=5)
    for seed in range(2):
        decoder = toy(7, seed)
        wanted = [brute_force(decoder, one(memory, row), config, 7) for row in range(3)]
        for nbest in (1, 40):
            found = searched(decoder, memory, config.model_copy(update={"nbest": nbest}))
            for row in range(3):
                same(found[row], wanted[row][:nbest])


RULES = [
    {"minimum_length": 2},
    {"minimum_factor": 1.0},
    {"maximum_length": 3},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2},
    {"coverage_penalty": 0.5},
    {"coverage_penalty": 0.5, "minimum_factor": 0.7, "maximum_length": 4, "no_repeat_ngram": 2},
]


@pytest.mark.parametrize("penalty", PENALTIES[1:], ids=lambda penalty: f"{penalty.kind}")
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: "-".join(rules))
def test_early_stopping_never_misses_the_best_output(penalty: LengthPenalty, rules: dict) -> None:
    """An exhaustive beam stops when allowed; the reference considers every output."""
    memory, decoder = toy_memory([[1, 2], [3], [4, 4, 4]]), AttendingToy(7, 1)
    settings = {"length_penalty": penalty, "length_factor": 0, "length_margin": 5, **rules}
    config = SearchConfig.model_validate({"beam": 500, "nbest": 1, **settings})
    wanted = [brute_force(decoder, one(memory, row), config, 7) for row in range(3)]
    for nbest in (1, 5):
        found = searched(decoder, memory, config.model_copy(update={"nbest": nbest}))
        for row in range(3):
            same(found[row], wanted[row][:nbest])


@settings(max_examples=30, deadline=None)
@given(decoder=TOYS, sources=SOURCES, config=configs())
def test_equals_a_plain_search_that_never_stops_early(
    decoder: RecurrentToy, sources: list, config: SearchConfig
) -> None:
    memory = toy_memory(sources)
    for row, found in enumerate(searched(decoder, memory, config)):
        same(found, plain_search(decoder, one(memory, row), config))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), levels=st.integers(1, 3), sources=SOURCES, config=configs())
def test_ties_are_broken_by_rank_and_token(seed: int, levels: int, sources: list, config: SearchConfig) -> None:
    decoder, memory = MarkovToy(SIZE, seed, levels), toy_memory(sources)
    for row, found in enumerate(searched(decoder, memory, config)):
        same(found, plain_search(decoder, one(memory, row), config))


@settings(max_examples=25, deadline=None)
@given(decoder=TOYS, sources=SOURCES, config=configs(), data=st.data())
def test_prefixes_are_continued_as_in_the_plain_search(
    decoder: RecurrentToy, sources: list, config: SearchConfig, data: st.DataObject
) -> None:
    memory = toy_memory(sources)
    token = st.integers(0, SIZE - 1).filter(lambda token: token != EOS)
    prefixes = data.draw(st.lists(st.lists(token, max_size=4), min_size=len(sources), max_size=len(sources)))
    for row, found in enumerate(searched(decoder, memory, config, prefixes)):
        assert all(each.tokens[: len(prefixes[row])] == tuple(prefixes[row]) for each in found)
        same(found, plain_search(decoder, one(memory, row), config, prefixes[row]))


def rescored(decoder: RecurrentToy, memory: Memory, row: int, found: Hypothesis) -> float:
    tail = (EOS,) if found.finished else ()
    inputs, _ = pad([(BOS, *found.tokens, *tail)[:-1]])
    labels, keep = pad([(*found.tokens, *tail)])
    return float(force(decoder, one(memory, row), inputs, labels, keep).sum())


@settings(max_examples=30, deadline=None)
@given(decoder=TOYS, sources=SOURCES, config=configs())
def test_every_hypothesis_rescores_under_forced_decoding(
    decoder: RecurrentToy, sources: list, config: SearchConfig
) -> None:
    memory = toy_memory(sources)
    config = config.model_copy(update={"nbest": config.beam})
    for row, found in enumerate(searched(decoder, memory, config)):
        assert found
        assert len({(each.tokens, each.finished) for each in found}) == len(found)
        assert found == sorted(found, key=lambda each: (not each.finished, -each.score))
        for each in found:
            assert each.log_probability == pytest.approx(rescored(decoder, memory, row, each), abs=1e-4)
            length = len(each.tokens) + each.finished
            assert each.score == each.log_probability / config.length_penalty.divisor(length)


@settings(max_examples=25, deadline=None)
@given(decoder=TOYS, sources=SOURCES, config=configs(), extra=st.integers(0, 3), data=st.data())
def test_results_do_not_depend_on_batch_size_order_and_padding(
    decoder: RecurrentToy, sources: list, config: SearchConfig, extra: int, data: st.DataObject
) -> None:
    alone = [searched(decoder, toy_memory([source]), config)[0] for source in sources]
    order = data.draw(st.permutations(range(len(sources))))
    together = searched(decoder, toy_memory([sources[row] for row in order], extra), config)
    for place, row in enumerate(order):
        same(together[place], alone[row])


COVERAGE = st.sampled_from([0.05, 0.3, 2.0])


def test_coverage_an_exhaustive_beam_equals_brute_force() -> None:
    memory = toy_memory([[1, 2], [3], [4, 4, 4]])
    config = SearchConfig(beam=500, coverage_penalty=1, length_factor=0, length_margin=5)
    changed = 0
    for seed in range(2):
        decoder = AttendingToy(7, seed)
        wanted = [brute_force(decoder, one(memory, row), config, 7) for row in range(3)]
        plain = searched(decoder, memory, config.model_copy(update={"coverage_penalty": 0.0}))
        for nbest in (1, 40):
            found = searched(decoder, memory, config.model_copy(update={"nbest": nbest}))
            for row in range(3):
                same(found[row], wanted[row][:nbest])
                changed += found[row][0].tokens != plain[row][0].tokens
    assert changed  # otherwise the penalty would not matter here


@given(
    seed=st.integers(0, 10**6),
    sources=SOURCES,
    config=configs(),
    beta=COVERAGE,
    prefix=st.lists(st.just(5), max_size=2),
)
def test_coverage_equals_a_plain_search_that_never_stops_early(
    seed: int, sources: list, config: SearchConfig, beta: float, prefix: list
) -> None:
    decoder, memory = AttendingToy(SIZE, seed), toy_memory(sources, extra=2)
    config = config.model_copy(update={"coverage_penalty": beta})
    prefixes = [prefix[row % 2 :] for row in range(len(sources))]
    for row, found in enumerate(searched(decoder, memory, config, prefixes)):
        alone = toy_memory([sources[row]])
        same(found, plain_search(decoder, alone, config, prefixes[row]))
        for each in found:
            covered = beta * coverage_penalty(decoder, alone, each.tokens, each.finished)
            length = len(each.tokens) + each.finished
            wanted = each.log_probability / config.length_penalty.divisor(length) + covered
            assert each.score == pytest.approx(wanted, abs=1e-4)


def test_greedy_takes_the_best_token_until_the_end() -> None:
    decoder, memory = RecurrentToy(30, 5), toy_memory([[1], [2, 3], [9, 9]])
    config = SearchConfig(beam=1, forbid=(), length_factor=0, length_margin=30)
    for row, (found,) in enumerate(searched(decoder, memory, config)):
        tokens: list[int] = []
        while len(tokens) < 30 and EOS not in tokens:
            output, _ = decoder.step(torch.tensor([[BOS, *tokens]]), decoder.start(one(memory, row)))
            tokens.append(int(output.logits()[0, -1].argmax()))
        assert [*found.tokens, *([EOS] if found.finished else [])] == tokens


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_no_rounding_makes_a_log_probability_positive(scale: float) -> None:
    """Otherwise a sum could exceed the bound of the search."""
    logits = scale * torch.randn(2000, 501, generator=torch.Generator().manual_seed(1))
    logits[::2, 7] = logits[::2].amax(1) + 20.0
    assert (logits - logits.logsumexp(1, keepdim=True)).max() <= 0
