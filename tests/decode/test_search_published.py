"""Published search algorithms, compared with plain transcriptions of them, and their n-best lists."""

import numpy as np
import pytest
import torch
from given_logits import GivenLogits
from hypothesis import example, given, settings
from hypothesis import strategies as st
from plain_groups import beam_decode, diverse_search
from plain_search import plain_search
from searching import sampled, searched
from test_search_exact import COVERAGE, SIZE, SOURCES, TOYS, configs, one, same
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory
from transformers.generation.logits_process import NoRepeatNGramLogitsProcessor

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.decode.beam.diverse_search import DiversityConfig
from dragoman.decode.forced import force
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import GNMTPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.rules.restrictions import NoRepeatNgram
from dragoman.decode.rules.rule import Step
from dragoman.decode.sampling import SamplingConfig, uniforms
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.models.interface import Memory, State
from dragoman.text.symbols import BOS, EOS


@given(decoder=TOYS, sources=SOURCES, beam=st.integers(1, 5), most=st.integers(1, 8))
@example(decoder=MarkovToy(SIZE, 1), sources=[[1]], beam=3, most=3)  # a finished hypothesis replaces an unfinished one
def test_the_shrinking_beam_is_deck_004s_algorithm(decoder: MarkovToy, sources: list, beam: int, most: int) -> None:
    memory = toy_memory(sources)
    config = SearchConfig(beam=beam, nbest=beam, shrinking=True, forbid=(), length_factor=0, length_margin=most)
    for row, found in enumerate(searched(decoder, memory, config)):
        complete, frontier = beam_decode(decoder, one(memory, row), SIZE, beam, most)
        paths = [(each.words[:-1], True, float(each.score)) for each in complete]
        left = [(each.words, False, float(each.score)) for each in frontier]
        assert len(paths) + len(left) == beam
        tokens = {(each.tokens, each.finished) for each in found}
        assert tokens == {each[:2] for each in [*paths, *left]}
        totals = {(words, finished): total for words, finished, total in [*paths, *left]}
        for each in found:
            assert each.log_probability == pytest.approx(totals[each.tokens, each.finished], abs=1e-4)


def test_shrinking_and_fixed_beams_share_a_batch() -> None:
    decoder, memory = MarkovToy(SIZE, 3), toy_memory([[1, 2], [3], [4, 4], [1]])
    mixed = [
        SearchConfig(beam=beam, nbest=beam, shrinking=shrinking, length_factor=0, length_margin=7)
        for beam, shrinking in ((3, True), (4, False), (2, True), (3, False))
    ]
    found = searched(decoder, memory, mixed)
    for row, config in enumerate(mixed):
        same(found[row], plain_search(decoder, one(memory, row), config))
    assert found[0] != searched(decoder, one(memory, 0), mixed[3])[0]  # otherwise shrinking would change nothing here


NOT_THE_FIRST = SearchConfig(
    beam=4,
    nbest=4,
    length_penalty=MeanLogProbability(),
    length_factor=0,
    length_margin=5,
    no_repeat_ngram=1,
    diversity=DiversityConfig(groups=2, strength=30.0),
)
"""A case where a group's most probable hypothesis is not its first, so stopping at the first would be too early."""


@st.composite
def in_groups(draw: st.DrawFn) -> SearchConfig:
    groups, size = draw(st.sampled_from([(2, 1), (2, 2), (3, 1), (4, 1), (3, 2)]))
    strength = draw(st.sampled_from([0.0, 0.5, 2.0, 30.0]))
    changes = {"beam": groups * size, "shrinking": False, "nbest": draw(st.integers(1, groups * size))}
    diversity = DiversityConfig(groups=groups, strength=strength)
    return draw(configs()).model_copy(update={**changes, "diversity": diversity})


@given(decoder=TOYS, sources=SOURCES, config=in_groups(), prefix=st.lists(st.just(5), max_size=2))
@example(decoder=MarkovToy(SIZE, 784), sources=[[4]], config=NOT_THE_FIRST, prefix=[])
def test_groups_follow_the_published_algorithm(
    decoder: RecurrentToy, sources: list, config: SearchConfig, prefix: list
) -> None:
    """A sentence may leave the batch only when all of its groups may."""
    memory = toy_memory(sources, extra=1)
    prefixes = [prefix[row % 2 :] for row in range(len(sources))]
    for row, found in enumerate(searched(decoder, memory, config, prefixes)):
        same(found, diverse_search(decoder, toy_memory([sources[row]]), config, prefixes[row]))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), sources=SOURCES, config=in_groups(), beta=COVERAGE)
def test_groups_with_a_coverage_penalty(seed: int, sources: list, config: SearchConfig, beta: float) -> None:
    decoder, memory = AttendingToy(SIZE, seed), toy_memory(sources, extra=1)
    config = config.model_copy(update={"coverage_penalty": beta})
    for row, found in enumerate(searched(decoder, memory, config)):
        same(found, diverse_search(decoder, toy_memory([sources[row]]), config))


def test_groups_find_outputs_that_one_beam_does_not() -> None:
    decoder, memory = RecurrentToy(30, 5), toy_memory([[1], [2, 3], [9, 9]])
    config = SearchConfig(beam=6, nbest=6, length_factor=0, length_margin=12)
    for row, plain in enumerate(searched(decoder, memory, config)):
        apart = config.model_copy(update={"diversity": DiversityConfig(groups=6, strength=50.0)})
        found = searched(decoder, one(memory, row), apart)[0]
        first = {each.tokens[:1] for each in found}
        assert len(first) > len({each.tokens[:1] for each in plain})
        greedy = searched(decoder, one(memory, row), config.model_copy(update={"beam": 1, "nbest": 1}))[0][0]
        assert greedy.tokens in {each.tokens for each in found}  # the first group's


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"beam": 5, "diversity": {"groups": 2}}, "does not divide beam = 5"),
        ({"beam": 4, "diversity": {"groups": 2}, "shrinking": True}, "cannot shrink"),
        ({"diversity": {"groups": 1}}, "greater than or equal to 2"),
        ({"minimum_length": 4, "maximum_length": 4}, "raise maximum_length"),
        ({"minimum_factor": -1}, "greater than or equal to 0"),
        ({"no_repeat_ngram": -1}, "greater than or equal to 0"),
    ],
)
def test_invalid_settings_are_refused(wrong: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_settings(wrong, SearchConfig, "here")


def test_grouped_searches_only_share_a_batch_with_the_same_settings() -> None:
    decoder, memory = MarkovToy(SIZE, 1), toy_memory([[1], [2]])
    apart = SearchConfig(beam=4, diversity=DiversityConfig(groups=2))
    with pytest.raises(ConfigError, match=r"the same search.diversity"):
        searched(decoder, memory, [apart, SearchConfig(beam=4)])


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=4),
    size=st.integers(1, 4),
    other=st.integers(0, 4),
)
def test_repeated_ngrams_are_those_that_hugging_face_forbids(rows: list, size: int, other: int) -> None:
    """For rows of unequal length, padded on the left, and with another n for every second sentence."""
    sizes = [size if row % 2 == 0 else other for row in range(len(rows))]
    rule, longest = NoRepeatNgram(sizes), max(map(len, rows))
    left_padding = torch.tensor([longest - len(row) for row in rows])
    tokens = torch.tensor([[0] * int(padding) + row for padding, row in zip(left_padding, rows, strict=True)])
    prompts = Prompts(
        State(None, None, left_padding=left_padding), tokens, np.full(len(rows), 9), np.zeros(len(rows), np.int64)
    )
    output = GivenLogits(torch.zeros(len(rows), 1, 4))
    number = np.arange(len(rows))
    state = rule.read(rule.start(prompts), Step(number, number, tokens[:, :-1], output, left_padding))
    step = Step(number, number, tokens[:, -1:], output)
    logits = torch.zeros(len(rows), 4)
    rule.restrict(logits, step, rule.read(state, step))
    for row, each, found in zip(rows, sizes, logits, strict=True):
        if each:
            expected = NoRepeatNGramLogitsProcessor(each)(torch.tensor([row]), torch.zeros(1, 4))[0]
            assert torch.equal(found.isinf(), expected.isinf())
        else:
            assert not found.isinf().any()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_samples_obey_ngram_and_length_restrictions(size: int) -> None:
    decoder, sources, prefixes = MarkovToy(SIZE, 2, 2), [[1, 2, 3, 4], [3], [2, 2]], [[5, 6, 4], [], [6]]
    config = SamplingConfig(temperature=4, length_factor=1, length_margin=9, maximum_length=9, minimum_factor=1.5)
    numbers = uniforms([(line,) for line in range(3)], 20, 12)

    def repeated(config: SamplingConfig) -> bool:
        found = sampled(decoder, toy_memory(sources), config, numbers, prefixes)
        runs = []
        for source, row in zip(sources, found, strict=True):
            for each in row:
                assert len(each.tokens) + each.finished <= 9
                assert len(each.tokens) >= int(1.5 * (len(source) - 1)) or not each.finished
                read = (BOS, *each.tokens)
                grams = [read[start : start + size] for start in range(len(read) - size + 1)]
                runs.append(len(set(grams)) < len(grams))
        return any(runs)

    assert repeated(config)
    assert not repeated(config.model_copy(update={"no_repeat_ngram": size}))


def token_log_probabilities(decoder: MarkovToy, memory: Memory, found: Hypothesis) -> list[float]:
    labels = torch.tensor([[*found.tokens, *([EOS] if found.finished else [])]])
    inputs = torch.tensor([[BOS, *found.tokens][: labels.size(1)]])
    keep = torch.ones_like(labels, dtype=torch.bool)
    return force(decoder, memory, inputs, labels, keep)[0].tolist()  # type: ignore[no-any-return]


@given(decoder=TOYS, sources=SOURCES, config=configs() | in_groups(), data=st.data())
def test_every_token_rescores_under_forced_decoding(
    decoder: RecurrentToy, sources: list, config: SearchConfig, data: st.DataObject
) -> None:
    memory = toy_memory(sources)
    prefixes = data.draw(st.lists(st.lists(st.just(5), max_size=3), min_size=len(sources), max_size=len(sources)))
    told = config.model_copy(update={"nbest": config.beam, "token_scores": True})
    plain = config.model_copy(update={"nbest": config.beam})
    found = searched(decoder, memory, told, prefixes)
    for row, untold in enumerate(searched(decoder, memory, plain, prefixes)):
        assert not any(each.token_log_probabilities for each in untold)
        same(found[row], untold)
        for each in found[row]:
            wanted = token_log_probabilities(decoder, one(memory, row), each)
            assert each.token_log_probabilities == pytest.approx(wanted, abs=1e-4)
            assert sum(each.token_log_probabilities) == pytest.approx(each.log_probability, abs=1e-5)


def test_every_token_of_a_sample_rescores() -> None:
    decoder, sources, prefixes = RecurrentToy(SIZE, 2), [[1, 2, 3, 4], [3], [2, 2]], [[5, 6, 5], [], [6]]
    told = SamplingConfig(temperature=2, length_factor=1, length_margin=9, token_scores=True)
    mixed = [told, told.model_copy(update={"token_scores": False}), told]
    numbers = uniforms([(line,) for line in range(3)], 5, 14)
    found = sampled(decoder, toy_memory(sources), mixed, numbers, prefixes)
    assert not any(each.token_log_probabilities for each in found[1])
    for row in (0, 2):
        for each in found[row]:
            wanted = token_log_probabilities(decoder, toy_memory([sources[row]]), each)
            assert each.token_log_probabilities == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("penalty", [GNMTPenalty(), MeanLogProbability(), NoPenalty()], ids=lambda each: each.kind)
def test_sentences_leave_before_the_longest_output(penalty: GNMTPenalty) -> None:
    """Otherwise the tests of early stopping would show nothing."""
    steps = 0

    class Counting(MarkovToy):
        def step(self, tokens: torch.Tensor, state: State) -> tuple[GivenLogits, State]:
            nonlocal steps
            steps += 1
            return super().step(tokens, state)

    decoder, memory = Counting(SIZE, 1), toy_memory([[1, 2]])
    decoder.table[..., EOS] += 2.0
    config = SearchConfig(beam=3, nbest=2, length_penalty=penalty, length_factor=0, length_margin=60)
    assert len(search(decoder, Prompts.of(decoder, memory, config), config)[0]) == 2
    assert steps < 60
