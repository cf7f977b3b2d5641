"""Shallow fusion, compared with the plain search."""

from typing import Any

import numpy as np
import pytest
import torch
from plain_search import Rules, next_log_probabilities, plain_search
from toy_decoders import MarkovToy, RecurrentToy, toy_memory

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.fusion import LanguageModelFusion
from dragoman.decode.search import SearchConfig, search
from dragoman.models.interface import Memory, State

SIZE = 8


class WithoutSource:
    """A toy decoder used as a language model: `start` gets no memory."""

    def __init__(self, toy: Any, sentences: int) -> None:
        self._toy, self._memory = toy, toy_memory([[0]] * sentences)

    def start(self, memory: Memory | None, attention: bool = False, **options: Any) -> State:
        return self._toy.start(self._memory, left_padding=options.get("left_padding"))

    def step(self, tokens: torch.Tensor, state: State) -> Any:
        return self._toy.step(tokens, state)


@pytest.mark.parametrize("seed", range(6))
def test_the_search_adds_the_weighted_log_probabilities(seed: int) -> None:
    sources, weights = [[4, 5], [6], [7, 4, 4]], [0.7, 0.0, 0.3]
    prefixes = [[], [4, 5], [6]] if seed % 2 else [[], [], []]
    decoder, other = RecurrentToy(SIZE, seed), MarkovToy(SIZE, seed + 50)
    config = SearchConfig(beam=1 + seed % 4, nbest=1, length_factor=1.0, length_margin=3)
    prompts = Prompts.of(decoder, toy_memory(sources), config, prefixes)
    found = search(decoder, prompts, config, [LanguageModelFusion(WithoutSource(other, 3), weights)])
    alone: Any = WithoutSource(other, 1)
    for source, weight, prefix, (best,) in zip(sources, weights, prefixes, found, strict=True):

        def added(tokens: Any, weight: float = weight, prefix: list[int] = prefix) -> np.ndarray:
            if len(tokens) < len(prefix):  # given, not voted on
                return np.float32(0)
            return np.float32(weight) * next_log_probabilities(alone, toy_memory([[0]]), tokens)

        (expected,) = plain_search(decoder, toy_memory([source]), config, prefix, Rules(added=added))
        assert best.tokens == expected.tokens
        assert best.score == pytest.approx(expected.score, abs=1e-4)
        assert best.log_probability == pytest.approx(expected.log_probability, abs=1e-4)
