"""Searches and samples from prompts: with a language model, of unequal length, and at the last position."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from given_logits import GivenLogits
from hypothesis import given
from hypothesis import strategies as st
from plain_search import Rules, plain_search
from searching import sampled, searched
from test_search_exact import COVERAGE, SOURCES, configs, one, rescored, same
from torch import Tensor
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, reading, toy_memory

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.decode.sampling import SamplingConfig, sample, uniforms
from dragoman.decode.search import SearchConfig, search
from dragoman.models.interface import Memory, State, TensorTree
from dragoman.text.symbols import BOS

SIZE = 8


class SumOfTokens:
    """A language model in which every read token counts: no source, no memory, as many rows as its first tokens."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.embedding, self.mix, self.out = (2 * torch.randn(SIZE, SIZE, generator=generator) for _ in range(3))

    def start(self, memory: None = None, attention: bool = False, left_padding: Tensor | None = None) -> State:
        return State(memory=None, cache=None, left_padding=left_padding, max_length=20)

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        hidden = torch.zeros(len(tokens), SIZE) if state.cache is None else state.cache
        steps = []
        for column, begun in zip(tokens.T, reading(state, tokens.size(1)), strict=True):
            hidden = torch.where(begun, torch.tanh(hidden @ self.mix + self.embedding[column]), hidden)
            steps.append(torch.where(begun, hidden @ self.out, torch.nan))
        return GivenLogits(torch.stack(steps, 1)), state.after(tokens.size(1), hidden)


@dataclass(frozen=True)
class Prompted:
    """A language model for the plain search, whose input after BOS is appended to a prompt."""

    decoder: SumOfTokens
    prompt: list[int]

    def start(self, memory: Memory, attention: bool = False) -> State:
        return self.decoder.start()

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        prompt = torch.tensor([self.prompt]).expand(len(tokens), -1)
        return self.decoder.step(torch.cat([prompt, tokens[:, 1:]], 1), state)


TEXTS = [[BOS], [BOS, 5, 4, 4, 6], [5, 7], [BOS, 6, 6]]


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [0], [2]])
def test_a_language_model_continues_prompts(beam: int, rows: list[int]) -> None:
    decoder, texts, limits = SumOfTokens(3), [TEXTS[row] for row in rows], [[3, 7, 1, 9][row] for row in rows]

    def prompts() -> Prompts:
        return Prompts.after(decoder, texts, limits, torch.device("cpu"))

    config = SearchConfig(beam=beam, nbest=beam)
    found = search(decoder, prompts(), config)
    for hypotheses, text, limit in zip(found, texts, limits, strict=True):
        alone = config.model_copy(update={"length_factor": 0.0, "length_margin": limit})
        same(hypotheses, plain_search(Prompted(decoder, text), toy_memory([[1]]), alone))
    drawn = sample(decoder, prompts(), SamplingConfig(top_k=1), torch.zeros(len(rows), 2, 9))
    greedy = search(decoder, prompts(), SearchConfig(beam=1))
    assert [[each.tokens for each in row] for row in drawn] == [[best.tokens] * 2 for (best,) in greedy]


def test_outputs_end_at_the_last_position_of_the_decoder() -> None:
    def limits(*lengths: int) -> list[int]:
        texts = [[BOS] * length for length in lengths]
        return Prompts.after(SumOfTokens(1), texts, [30] * len(texts), torch.device("cpu")).limits.tolist()

    assert limits(1, 20, 7) == [20, 1, 14]
    for wrong in (0, 21):
        with pytest.raises(ConfigError, match=f"prompt 1: {wrong} tokens .* 20 positions"):
            limits(3, wrong)


def test_prompts_that_fill_the_positions_are_refused() -> None:
    """A search from them would never end."""
    tokens = torch.tensor([[BOS, 4, 5], [BOS, 6, 7]])
    for limit, fits in ((1, False), (2, False), (3, True)):
        with nullcontext() if fits else pytest.raises(ConfigError, match="prompt 1: .* raise the maximum length"):
            prompts = Prompts(SumOfTokens(1).start(), tokens, np.array([9, limit]), np.array([2, 2]))
            assert [len(best.tokens) <= 9 for (best,) in search(SumOfTokens(1), prompts, SearchConfig())] == [True] * 2


@pytest.mark.parametrize("toy", [MarkovToy, RecurrentToy, AttendingToy])
def test_samples_begin_with_prefixes_too(toy: Any) -> None:
    decoder, memory, prefixes = toy(SIZE, 1), toy_memory([[1, 2], [3], [4]]), [[5, 0, 6], [], [4]]
    config = SamplingConfig(temperature=20, length_factor=0, length_margin=7, minimum_length=4)
    numbers = uniforms([(1,), (2,), (3,)], 20, 7)
    for row, found in enumerate(sampled(decoder, memory, config, numbers, prefixes)):
        alone = one(memory, row)
        for each in found:
            assert each.tokens[: len(prefixes[row])] == tuple(prefixes[row])
            assert 4 <= len(each.tokens) <= 7 - each.finished
            assert each.log_probability == pytest.approx(rescored(decoder, memory, row, each), abs=1e-4)
        assert any(each.finished and len(each.tokens) == 4 for each in found)
        again = sampled(decoder, alone, config, numbers[row : row + 1], [prefixes[row]])[0]
        assert [each.tokens for each in again] == [each.tokens for each in found]
    assert sampled(decoder, memory, config, numbers) == sampled(decoder, memory, config, numbers, [[]] * 3)


@given(seed=st.integers(0, 10**6), sources=SOURCES, config=configs(), beta=COVERAGE, last=st.integers(1, 3))
def test_an_output_without_allowed_continuation_keeps_its_score(
    seed: int, sources: list, config: SearchConfig, beta: float, last: int
) -> None:
    class Nothing(Restriction):
        def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
            if step.lengths[0] > last:
                logits.fill_(-torch.inf)

    decoder, memory = AttendingToy(SIZE, seed), toy_memory(sources)
    config = config.model_copy(update={"coverage_penalty": beta, "minimum_length": 3})
    for row, found in enumerate(searched(decoder, memory, config, rules=[Nothing()])):
        rules = Rules(lambda tokens, token: len(tokens) < last)
        same(found, plain_search(decoder, one(memory, row), config, rules=rules))
