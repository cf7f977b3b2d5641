"""Searches with constraints: always satisfied, optimal with an exhaustive beam, and dynamic beam allocation."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import brute_force, hypothesis, longest, next_log_probabilities
from test_search_exact import SOURCES, TOYS, configs, one, same
from test_search_rules import Shrinking
from toy_decoders import MarkovToy, RecurrentToy, toy_memory

from dragoman.base.errors import ConfigError
from dragoman.decode.constraints.automaton import Automaton
from dragoman.decode.constraints.constraint import Alternative, Constraint, Constraints, Edges, tokens_needed
from dragoman.decode.prompts import Prompts
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.models.interface import Memory
from dragoman.text.symbols import EOS

SIZE = 8
WORDS = st.sampled_from([4, 5, 6])
PHRASE = st.lists(WORDS, min_size=1, max_size=3)
CONSTRAINT = st.lists(PHRASE, min_size=1, max_size=2)
CONFIGS = configs().map(
    lambda config: config.model_copy(
        update={"maximum_length": None, "minimum_factor": 0.0, "no_repeat_ngram": 0, "shrinking": False}
    )
)
"""Settings that the definitions below support."""


def constraint(*ways: Sequence[int]) -> Constraint:
    return tuple(Alternative(tuple(way)) for way in ways)


def constraints(sentences: Sequence[Sequence[Sequence[Sequence[int]]]], size: int = SIZE) -> Constraints:
    return Constraints([[constraint(*ways) for ways in each] for each in sentences], Edges.none(size))


def searched(
    decoder: RecurrentToy,
    memory: Memory,
    config: SearchConfig,
    required: Constraints,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    prompts = Prompts.of(decoder, memory, config, prefixes, [tokens_needed(each) for each in required.of])
    return search(decoder, prompts, config, constraints=required)


def divisions(
    tokens: Sequence[int], left: Sequence[Constraint], place: int = 0
) -> Iterator[tuple[tuple[Constraint, ...], tuple[Constraint, int, int] | None]]:
    """Return every way to place phrases apart: the tokens outside phrases, and the unfinished phrase at the end."""
    yield tuple(left), None
    for start in range(place, len(tokens)):
        for number, each in enumerate(left):
            others = (*left[:number], *left[number + 1 :])
            for ids, *_ in each:
                written = tuple(tokens[start : start + len(ids)])
                if written == ids:
                    yield from divisions(tokens, others, start + len(ids))
                elif start + len(written) == len(tokens) and ids[: len(written)] == written:
                    yield others, (each, len(written), len(ids))


def shortest(each: Constraint) -> int:
    return min(len(ids) for ids, *_ in each)


def holds(tokens: Sequence[int], required: Sequence[Constraint]) -> bool:
    return any(not left and begun is None for left, begun in divisions(tokens, required))


def bank(tokens: Sequence[int], required: Sequence[Constraint]) -> int:
    whole = sum(map(shortest, required))
    return max(
        whole
        - sum(map(shortest, left))
        - (
            0
            if begun is None
            else shortest(begun[0]) - min(shortest(begun[0]), -(-begun[1] * shortest(begun[0]) // begun[2]))
        )
        for left, begun in divisions(tokens, required)
    )


def need(tokens: Sequence[int], required: Sequence[Constraint]) -> int:
    return min(
        sum(map(shortest, left)) + (0 if begun is None else min(shortest(begun[0]), begun[2] - begun[1]))
        for left, begun in divisions(tokens, required)
    )


def plain_allocation(
    decoder: RecurrentToy, memory: Memory, config: SearchConfig, required: Sequence[Constraint]
) -> list[Hypothesis]:
    """Dynamic beam allocation for one sentence by its definition, with all continuations and no early stopping."""
    size = sum(map(shortest, required))
    places, shares = config.beam + size, max(1, (config.beam + size) // (size + 1))
    live, finished = [((), np.float32(0))], []
    last = max(longest(memory, config), config.minimum_length + 1) + size
    for length in range(1, last + 1):
        found = []
        for tokens, total in live:
            for token, value in enumerate(next_log_probabilities(decoder, memory, tokens)):
                after = (*tokens, token)
                if token == EOS:
                    allowed = holds(tokens, required) and length > config.minimum_length
                else:
                    allowed = token not in config.forbid and need(after, required) <= last - length
                if allowed:
                    found.append((after, total + value, size if token == EOS else bank(after, required)))
        found.sort(key=lambda each: -each[1])
        full = [each for each in found if each[2] == size][: config.beam]
        finished += [
            hypothesis(each[0][:-1], each[1], True, config, decoder, memory) for each in full if each[0][-1] == EOS
        ]
        found = [each for each in found if each[0][-1] != EOS]
        reserved = [
            each for number in range(size, -1, -1) for each in [other for other in found if other[2] == number][:shares]
        ]
        others = [each for each in found if each not in reserved]
        live = sorted([*reserved, *others][:places], key=lambda each: -each[1])
        live = [(tokens, total) for tokens, total, _ in live]
    finished.sort(key=lambda each: -each.score)
    left = [hypothesis(tokens, total, False, config, decoder, memory) for tokens, total in live]
    return (finished + sorted(left, key=lambda each: -each.score))[: config.nbest]


REQUIRED = [
    [[[4]], [[5]]],
    [[[4, 5]], [[5, 6]]],
    [[[4, 4, 5]]],
    [[[4]], [[4]]],
    [[[4, 5], [6]], [[5]]],
    [],
]


@pytest.mark.parametrize("toy", [MarkovToy, RecurrentToy])
def test_an_exhaustive_beam_finds_the_best_outputs_that_meet_the_constraints(toy: type) -> None:
    memory = toy_memory([[1, 2]] * len(REQUIRED))
    config = SearchConfig(beam=400, nbest=9, length_factor=0, length_margin=1)
    required = constraints(REQUIRED, 7)
    for seed in range(2):
        decoder = toy(7, seed)
        plain = brute_force(decoder, one(memory, 0), config.model_copy(update={"length_margin": 5}), 7)
        # one sentence at a time: each may be longer by the tokens of its own constraints
        for row, each in enumerate(required.of):
            alone = config.model_copy(update={"length_margin": 5 - tokens_needed(each)})
            found = searched(decoder, one(memory, row), alone, Constraints([each], required.edges))[0]
            best = [other for other in plain if holds(other.tokens, each)][:9]
            assert best
            same(found[: len(best)], best)


@given(decoder=TOYS, sources=SOURCES, config=CONFIGS, data=st.data())
def test_small_beams_are_allocated_as_defined(
    decoder: RecurrentToy, sources: list, config: SearchConfig, data: st.DataObject
) -> None:
    each = st.lists(st.lists(st.lists(WORDS, min_size=1, max_size=2), min_size=1, max_size=2), max_size=2)
    given = data.draw(st.lists(each, min_size=len(sources), max_size=len(sources)))
    memory, required = toy_memory(sources), constraints(given)
    config = config.model_copy(update={"length_factor": 0.0, "length_margin": min(config.length_margin, 4)})
    for row, found in enumerate(searched(decoder, memory, config, required)):
        same(found, plain_allocation(decoder, one(memory, row), config, required.of[row]))


@settings(max_examples=30, deadline=None)
@given(decoder=TOYS, sources=SOURCES, config=CONFIGS, forbid=st.booleans(), data=st.data())
def test_constraints_are_always_met_in_any_batch(
    decoder: RecurrentToy, sources: list, config: SearchConfig, forbid: bool, data: st.DataObject
) -> None:
    count = len(sources)
    given = data.draw(st.lists(st.lists(CONSTRAINT, max_size=4), min_size=count, max_size=count))
    prefixes = data.draw(st.lists(st.lists(WORDS, max_size=3), min_size=count, max_size=count))
    required = constraints(given)
    config = config.model_copy(update={"forbid": (0, 1, 3, 4, 6)} if forbid else {})
    together = searched(decoder, toy_memory(sources, extra=2), config, required, prefixes)
    for row, found in enumerate(together):
        for each in found:
            assert holds(each.tokens, required.of[row])
            assert each.tokens[: len(prefixes[row])] == tuple(prefixes[row])
        alone = Constraints([required.of[row]], required.edges)
        same(found, searched(decoder, toy_memory([sources[row]]), config, alone, [prefixes[row]])[0])


@settings(max_examples=100)
@given(given=st.lists(CONSTRAINT, max_size=4), tokens=st.lists(st.sampled_from([4, 5, 6, 7]), max_size=9))
def test_the_automaton_equals_brute_force(given: list, tokens: list) -> None:
    required = [constraint(*ways) for ways in given]
    automaton = Automaton(required, Edges.none(SIZE))
    standing = automaton.start
    for token in tokens:
        standing = automaton.follow(standing, token)
    assert automaton.accepts(standing) == holds(tokens, required)
    assert automaton.bank(standing) == bank(tokens, required)
    assert automaton.need(standing) == need(tokens, required)
    if holds(tokens, required):
        found = automaton.positions(tokens)
        ends = [0, *(start + len(each.ids) for start, each in found)]
        assert all(start >= end for end, (start, _) in zip(ends, found, strict=False))
        assert all(tuple(tokens[start : start + len(each.ids)]) == each.ids for start, each in found)
        used = sorted(each.ids for _, each in found)
        assert len(used) == len(required)
        assert holds([token for ids in used for token in (*ids, 7)], required)


def test_words_do_not_run_together() -> None:
    """4 and 5 are letters, 6 is a blank: the phrase 4 is not met within 4 5 or 5 4."""
    letters = np.array([token in (4, 5) for token in range(SIZE)])
    automaton = Automaton([(Alternative((4,), opens=True, closes=True),)], Edges(letters, letters))

    def met(*tokens: int) -> bool:
        standing = automaton.start
        for token in tokens:
            standing = automaton.follow(standing, token)
        return automaton.accepts(standing)

    assert met(4) and met(4, 6, 5) and met(5, 6, 4) and met(5, 4, 6, 4)
    assert not met(4, 5) and not met(5, 4) and not met(6, 5, 4, 5)


@settings(max_examples=30, deadline=None)
@given(decoder=TOYS, source=st.lists(st.integers(0, 9), min_size=1, max_size=3), config=CONFIGS, data=st.data())
def test_words_do_not_run_together_within_a_short_limit(
    decoder: RecurrentToy, source: list, config: SearchConfig, data: st.DataObject
) -> None:
    given = data.draw(st.lists(st.lists(st.sampled_from([4, 5]), min_size=1, max_size=2), min_size=1, max_size=3))
    letters = np.array([token in (4, 5) for token in range(SIZE)])
    required = [(Alternative(tuple(ids), opens=True, closes=True),) for ids in given]
    config = config.model_copy(update={"length_factor": 0.0, "length_margin": 1, "minimum_length": 0})
    (found,) = searched(decoder, toy_memory([source]), config, Constraints([required], Edges(letters, letters)))
    for each in found:
        words = "".join(str(token) if token in (4, 5) else " " for token in each.tokens).split()
        for ids in {tuple(ids) for ids in given}:
            assert words.count("".join(map(str, ids))) >= [tuple(other) for other in given].count(ids)


def test_a_sentence_without_constraints_is_searched_as_usual() -> None:
    memory = toy_memory([[1, 2], [3], [4, 4, 4]])
    for seed in range(6):
        decoder = RecurrentToy(SIZE, seed)
        for beam in (1, 3):
            config = SearchConfig(beam=beam, nbest=beam, length_factor=0, length_margin=6)
            plain = search(decoder, Prompts.of(decoder, memory, config), config)
            found = searched(decoder, memory, config, constraints([[], [[[4, 5]]], []]))
            for row in (0, 2):
                same(found[row], plain[row])


def test_constraints_that_do_not_fit_are_refused() -> None:
    class Short(RecurrentToy):
        def start(self, *arguments: object, **settings: object):  # type: ignore[no-untyped-def]
            return replace(super().start(*arguments, **settings), max_length=4)  # type: ignore[arg-type]

    memory, config, decoder = toy_memory([[1], [2]]), SearchConfig(beam=2), Short(SIZE, 1)
    assert holds(
        searched(decoder, memory, config, constraints([[], [[[4, 5, 6, 4]]]]))[1][0].tokens, [constraint([4, 5, 6, 4])]
    )
    with pytest.raises(ConfigError, match="sentence 1: its constraints need up to 5 tokens, but only 4"):
        searched(decoder, memory, config, constraints([[], [[[4, 5, 6, 4, 4]]]]))
    with pytest.raises(ConfigError, match="Shrinking changes the beam size"):
        search(decoder, Prompts.of(decoder, memory, config), config, [Shrinking(2)], constraints([[], [[[4]]]]))


@pytest.mark.parametrize(
    "settings", [{"tree": True}, {"shrinking": True}, {"diversity": {"groups": 2, "strength": 0.5}}]
)
def test_settings_that_exclude_constraints_are_refused(settings: dict) -> None:
    config = SearchConfig.model_validate({"beam": 2, **settings})
    with pytest.raises(ConfigError, match="a search with constraints does not support"):
        searched(MarkovToy(SIZE, 1), toy_memory([[1], [2]]), config, constraints([[], [[[4]]]]))


@pytest.mark.parametrize("toy", [MarkovToy, RecurrentToy])
def test_log_probabilities_of_tokens_add_up(toy: type) -> None:
    memory, decoder = toy_memory([[1], [2]]), toy(SIZE, 3)
    required, config = constraints([[[[4, 5]]], [[[6]], [[6]]]]), SearchConfig(beam=3, nbest=3)
    plain = searched(decoder, memory, config, required)
    told = searched(decoder, memory, config.model_copy(update={"token_scores": True}), required)
    for row in range(2):
        same(told[row], plain[row])
        for found in told[row]:
            assert len(found.token_log_probabilities) == len(found.tokens) + found.finished
            assert sum(found.token_log_probabilities) == pytest.approx(found.log_probability, abs=1e-4)


def test_the_search_works_in_any_precision_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties between continuations are broken by rank, then token, as without constraints."""
    memory = toy_memory([[1], [2]])
    for seed in range(4):
        decoder = MarkovToy(SIZE, seed, levels=2)
        config = SearchConfig(beam=2, length_factor=0, length_margin=3)
        required = constraints([[[[4, 5]]], [[[6]], [[6]]]])
        for row, found in enumerate(searched(decoder, memory, config, required)):
            same(found, plain_allocation(decoder, one(memory, row), config, required.of[row]))
    assert torch.get_default_dtype() == torch.float32
