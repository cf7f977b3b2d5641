"""Rules, decoders and mixed settings defined outside the search, compared with the plain search."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from given_logits import GivenLogits
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import Rules, next_log_probabilities, plain_search
from searching import sampled, searched
from test_search_exact import COVERAGE, SOURCES, configs, one, same
from torch import Tensor
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.coverage import Coverage
from dragoman.decode.rules.restrictions import ForbiddenTokens, MinimumLength
from dragoman.decode.rules.rule import Addition, BeamSizes, Endings, Restriction, Rule, Scoring, Sizes, Step
from dragoman.decode.sampling import Draws, SamplingConfig, uniforms
from dragoman.decode.search import SearchConfig, search
from dragoman.models.interface import Decoder, Memory, State, TensorTree
from dragoman.text.symbols import BOS, EOS

SIZE = 8


class NoDoubles(Restriction):
    """Forbids immediate repetition of a token, in the sentences that request this."""

    def __init__(self, wanted: list[bool]) -> None:
        self.wanted = torch.tensor(wanted)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        rows = step.of_hypotheses(self.wanted).nonzero().squeeze(1)
        logits[rows, step.tokens[rows, -1]] = -torch.inf


class NoRepeatedPairs(Restriction):
    """Forbids pairs of tokens that the same output already contains."""

    def start(self, prompts: Prompts) -> TensorTree:
        return prompts.tokens[:, :0]

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        return torch.cat([state, step.tokens], 1)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        for row, tokens in enumerate(state.tolist()):
            logits[row, [after for before, after in pairwise(tokens) if before == tokens[-1]]] = -torch.inf


class Fusion(Addition):
    """Adds λ times the log-probabilities of another decoder, whose state it carries."""

    def __init__(self, decoder: Decoder, memory: Memory, weight: float) -> None:
        self.decoder, self.memory, self.weight = decoder, memory, weight

    def start(self, prompts: Prompts) -> TensorTree:
        return {"state": self.decoder.start(self.memory), "next": torch.zeros(len(prompts), SIZE)}

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        output, after = self.decoder.step(step.tokens, state["state"])
        return {"state": after, "next": output.last_logits().log_softmax(1)}

    def add(self, step: Step, state: TensorTree) -> Tensor:
        return self.weight * state["next"]


def fused(decoder: Decoder, memory: Memory, weight: float, tokens: Sequence[int]) -> np.ndarray:
    return np.float32(weight) * next_log_probabilities(decoder, memory, tokens)


class WordReward(Scoring):
    """Rewards each token, so that longer outputs win."""

    def __init__(self, reward: float, limits: np.ndarray) -> None:
        self.reward, self.limits = reward, limits

    def score(self, scores: np.ndarray, ended: Endings, state: TensorTree) -> np.ndarray:
        return scores + self.reward * ended.lengths

    def bound(self, bounds: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        return bounds + self.reward * self.limits[sentences]


class Shrinking(BeamSizes):
    """A beam that shrinks by one with each finished hypothesis."""

    def __init__(self, beam: int) -> None:
        self.beam = beam

    def sizes(self, step: Step, ended: np.ndarray, state: TensorTree) -> Sizes:
        left = np.maximum(self.beam - ended, 0)
        return Sizes(left, left)


@given(seed=st.integers(0, 10**6), levels=st.integers(2, 4), sources=SOURCES, config=configs(), data=st.data())
def test_a_restriction_of_some_sentences_and_one_with_a_state(
    seed: int, levels: int, sources: list, config: SearchConfig, data: st.DataObject
) -> None:
    decoder, memory = MarkovToy(SIZE, seed, levels), toy_memory(sources)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(sources), max_size=len(sources)))

    def no_double(tokens: Any, token: int) -> bool:
        return not tokens or tokens[-1] != token

    def no_pair(tokens: Any, token: int) -> bool:
        read = [BOS, *tokens]
        return (read[-1], token) not in set(pairwise(read))

    pairs = searched(decoder, memory, config, rules=[NoRepeatedPairs()])
    for row, found in enumerate(searched(decoder, memory, config, rules=[NoDoubles(wanted)])):
        alone = one(memory, row)
        same(found, plain_search(decoder, alone, config, rules=Rules(no_double) if wanted[row] else Rules()))
        same(pairs[row], plain_search(decoder, alone, config, rules=Rules(no_pair)))


@given(seed=st.integers(0, 10**6), sources=SOURCES, config=configs(), weight=st.sampled_from([0.3, 2.0]))
def test_another_decoder_can_be_fused(seed: int, sources: list, config: SearchConfig, weight: float) -> None:
    decoder, other, memory = RecurrentToy(SIZE, seed), RecurrentToy(SIZE, seed + 1), toy_memory(sources)
    elsewhere = Memory(memory.states + 1, memory.mask)
    for row, found in enumerate(searched(decoder, memory, config, rules=[Fusion(other, elsewhere, weight)])):
        added = partial(fused, other, one(elsewhere, row), weight)
        same(found, plain_search(decoder, one(memory, row), config, rules=Rules(added=added)))


@given(seed=st.integers(0, 10**6), sources=SOURCES, config=configs(), reward=st.sampled_from([0.2, 1.5]))
def test_a_scoring_rule_bounds_later_scores(seed: int, sources: list, config: SearchConfig, reward: float) -> None:
    decoder, memory = RecurrentToy(SIZE, seed), toy_memory(sources)
    prompts = Prompts.of(decoder, memory, config)
    for row, found in enumerate(search(decoder, prompts, config, [WordReward(reward, prompts.limits)])):
        same(found, plain_search(decoder, one(memory, row), config, rules=Rules(reward=reward)))


@given(seed=st.integers(0, 10**6), sources=SOURCES, config=configs())
def test_a_beam_shrinks_with_the_hypotheses_that_finish(seed: int, sources: list, config: SearchConfig) -> None:
    decoder, memory = MarkovToy(SIZE, seed), toy_memory(sources)
    wide = Shrinking(config.beam + 3)  # the smaller of two counts
    for rules in ([Shrinking(config.beam)], [Shrinking(config.beam), wide]):
        for row, found in enumerate(searched(decoder, memory, config, rules=rules)):
            same(found, plain_search(decoder, one(memory, row), config, rules=Rules(shrinks=True)))


@given(seed=st.integers(0, 10**6), sources=SOURCES, data=st.data())
def test_each_sentence_of_a_batch_may_have_its_own_settings(seed: int, sources: list, data: st.DataObject) -> None:
    decoder, memory = AttendingToy(SIZE, seed), toy_memory(sources)
    token = st.integers(0, SIZE - 1).filter(lambda token: token != EOS)
    changes = st.fixed_dictionaries(
        {"forbid": st.lists(token, max_size=3).map(tuple), "coverage_penalty": st.just(0.0) | COVERAGE}
    )
    mixed = [data.draw(configs()).model_copy(update=data.draw(changes)) for _ in sources]
    for row, found in enumerate(searched(decoder, memory, mixed)):
        same(found, plain_search(decoder, one(memory, row), mixed[row]))


def test_each_prompt_of_a_batch_may_be_sampled_with_its_own_settings() -> None:
    decoder, sources = MarkovToy(SIZE, 4), [[1, 2, 3], [4], [2, 2], [1]]
    changes: list[dict[str, Any]] = [{}, {"temperature": 3.0, "forbid": (0, 4)}, {"top_k": 2, "minimum_length": 3}, {}]
    mixed = [SamplingConfig(length_factor=1, length_margin=5).model_copy(update=each) for each in changes]
    numbers = uniforms([(1, line) for line in range(4)], 5, 8)
    together = sampled(decoder, toy_memory(sources), mixed, numbers)
    for row, source in enumerate(sources):
        assert sampled(decoder, toy_memory([source]), mixed[row], numbers[row : row + 1])[0] == together[row]
    assert all(len(each.tokens) >= 3 for each in together[2]) and any(len(each.tokens) < 3 for each in together[0])
    assert not any(4 in each.tokens for each in together[1])


def test_restrictions_apply_to_samples() -> None:
    decoder, memory = MarkovToy(SIZE, 2, 2), toy_memory([[1, 2], [3], [2]])
    config = SamplingConfig(length_factor=0, length_margin=12)
    numbers = uniforms([(line,) for line in range(3)], 20, 12)

    def doubles(rules: list[Restriction]) -> list[bool]:
        found = sampled(decoder, memory, config, numbers, rules=rules)
        return [
            any(a == b for each in row for a, b in zip(each.tokens, each.tokens[1:], strict=False)) for row in found
        ]

    assert doubles([]) == [True] * 3
    assert doubles([NoDoubles([True, False, True])]) == [False, True, False]
    found = sampled(decoder, memory, config, numbers, rules=[NoRepeatedPairs()])
    for each in (each for row in found for each in row):
        pairs = list(zip((BOS, *each.tokens), each.tokens, strict=False))
        assert len(set(pairs)) == len(pairs)


def test_samples_end_if_no_token_may_follow() -> None:
    class Nothing(Restriction):
        def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
            logits[step.of_hypotheses(torch.tensor([False, True])) & bool(step.lengths[0] > 2)] = -torch.inf

    decoder, memory = MarkovToy(SIZE, 2), toy_memory([[1], [3]])
    config = SamplingConfig(length_factor=0, length_margin=6, minimum_length=4)
    free, stuck = sampled(decoder, memory, config, uniforms([(1,), (2,)], 4, 6), rules=[Nothing()])
    assert all(len(each.tokens) >= 4 for each in free)
    assert [(len(each.tokens), each.finished) for each in stuck] == [(2, False)] * 4


def test_tokens_are_yielded_as_drawn_and_samples_can_be_stopped() -> None:
    decoder, memory = MarkovToy(SIZE, 3), toy_memory([[1, 2], [3], [4, 4]])
    config = SamplingConfig(length_factor=0, length_margin=9, temperature=2.0)
    numbers = uniforms([(line,) for line in range(3)], 2, 9)
    written: list[list[int]] = [[] for _ in range(6)]
    for drawn in Draws(decoder, Prompts.of(decoder, memory, config), config, numbers):
        for row, token in zip(drawn.rows.tolist(), drawn.tokens.tolist(), strict=True):
            assert EOS not in written[row]
            written[row].append(token)
    whole = [each for row in sampled(decoder, memory, config, numbers) for each in row]
    assert written == [[*each.tokens, *([EOS] if each.finished else [])] for each in whole]

    cut: list[list[int]] = [[] for _ in range(6)]
    draws = Draws(decoder, Prompts.of(decoder, memory, config), config, numbers)
    for drawn in draws:
        for row, token in zip(drawn.rows.tolist(), drawn.tokens.tolist(), strict=True):
            cut[row].append(token)
        draws.stop(drawn.rows[[len(cut[row]) == 2 and row != 3 for row in drawn.rows.tolist()]])
    assert cut == [tokens if row == 3 else tokens[:2] for row, tokens in enumerate(written)]
    assert max(map(len, cut)) > 2


class Unused(Rule):
    """Carries no state, so only its start is called."""

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        raise AssertionError

    reorder = read  # type: ignore[assignment]


def test_rules_that_are_not_used_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    for kind in (Coverage, ForbiddenTokens, MinimumLength):
        monkeypatch.setattr(kind, "__init__", never)
    decoder, memory = AttendingToy(SIZE, 1), toy_memory([[1, 2], [3]])
    config = SearchConfig(beam=3, forbid=(), length_factor=0, length_margin=4)
    prompts = Prompts.of(decoder, memory, config)
    assert not prompts.state.attention
    assert search(decoder, prompts, config, [Unused()]) == search(decoder, Prompts.of(decoder, memory, config), config)
    assert sampled(decoder, memory, SamplingConfig(forbid=()), uniforms([(1,), (2,)], 1, 20), rules=[])
    with pytest.raises(AssertionError):
        searched(decoder, memory, config.model_copy(update={"minimum_length": 1}))


@dataclass(frozen=True)
class Given:
    """A decoder that starts with its own memory instead of the given one."""

    decoder: Decoder
    memory: TensorTree

    def start(self, memory: TensorTree, attention: bool = False, left_padding: Tensor | None = None) -> State:
        return self.decoder.start(self.memory)

    def step(self, tokens: Tensor, state: State) -> tuple[Any, State]:
        return self.decoder.step(tokens, state)


@dataclass(frozen=True)
class Ensemble:
    """The mean of the log-probabilities of several decoders, each with its own memory."""

    decoders: tuple[Decoder, ...]

    def start(self, memory: TensorTree, attention: bool = False, left_padding: Tensor | None = None) -> State:
        inner = [
            decoder.start(each, left_padding=left_padding) for decoder, each in zip(self.decoders, memory, strict=True)
        ]
        return State(memory=None, cache=inner, left_padding=left_padding)

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        steps = [decoder.step(tokens, inner) for decoder, inner in zip(self.decoders, state.cache, strict=True)]
        logits = torch.stack([output.logits().log_softmax(2) for output, _ in steps]).mean(0)
        return GivenLogits(logits), state.after(tokens.size(1), [after for _, after in steps])


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), sources=SOURCES, config=configs())
def test_an_ensemble_is_searched_like_any_decoder(seed: int, sources: list, config: SearchConfig) -> None:
    one_decoder, memory = RecurrentToy(SIZE, seed), toy_memory(sources)
    mixed = Ensemble((one_decoder, AttendingToy(SIZE, seed), one_decoder))
    twice = Ensemble((one_decoder, one_decoder))
    for row, (found, both) in enumerate(
        zip(searched(mixed, [memory] * 3, config), searched(twice, [memory] * 2, config), strict=True)
    ):
        alone = one(memory, row)
        same(both, plain_search(one_decoder, alone, config))
        expected = plain_search(Given(mixed, [alone] * 3), alone, config)
        same(found, expected)
