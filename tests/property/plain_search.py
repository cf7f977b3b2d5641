"""Slow and plain judges of the search: one sentence at a time, every hypothesis read from its beginning."""

from collections.abc import Sequence
from itertools import product
from math import log

import numpy as np
import torch

from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Decoder, Memory
from dragoman.text.special import BOS, EOS


def next_log_probabilities(decoder: Decoder, memory: Memory, tokens: Sequence[int]) -> np.ndarray:
    """(V,) float32 after `tokens` for the one sentence of `memory`."""
    output, _ = decoder.step(torch.tensor([[BOS, *tokens]]), decoder.start(memory))
    logits = output.logits()[0, -1].float()
    return (logits - logits.logsumexp(0)).numpy()


def coverage_penalty(decoder: Decoder, memory: Memory, tokens: Sequence[int], finished: bool) -> float:
    """Equation 14 of Wu et al. 2016 without its β, over all steps that wrote `tokens` and, if finished, the end."""
    source = int(memory.keep.sum())  # these memories have no padding inside
    received = [0.0] * source
    read = [BOS, *tokens][: len(tokens) + finished]
    if read:
        output, _ = decoder.step(torch.tensor([read]), decoder.start(memory, attention=True))
        assert output.attention is not None
        for step in output.attention[0].tolist():
            received = [so_far + weight for so_far, weight in zip(received, step[:source], strict=True)]
    return sum(log(max(min(each, 1.0), float(np.finfo(np.float32).tiny))) for each in received)


def hypothesis(
    tokens: Sequence[int], total: float, finished: bool, config: SearchConfig, decoder: Decoder, memory: Memory
) -> Hypothesis:
    score = float(total) / config.length_penalty.divisor(len(tokens) + finished)
    if config.coverage_penalty:
        score += config.coverage_penalty * coverage_penalty(decoder, memory, tokens, finished)
    return Hypothesis(tuple(tokens), float(total), score, finished)


def longest(memory: Memory, config: SearchConfig) -> int:
    return int(config.length_factor * int(memory.keep.sum()) + config.length_margin)


def plain_search(
    decoder: Decoder, memory: Memory, config: SearchConfig, prefix: Sequence[int] = ()
) -> list[Hypothesis]:
    """Beam search as `search` defines it for one sentence, without stopping before the longest output."""
    live: list[tuple[list[int], np.float32]] = [([], np.float32(0))]
    finished: list[Hypothesis] = []
    for length in range(1, max(longest(memory, config), len(prefix) + 1, config.minimum_length + 1) + 1):
        continuations = []
        for tokens, total in live:
            for token, log_probability in enumerate(next_log_probabilities(decoder, memory, tokens)):
                if length <= len(prefix):
                    allowed = token == prefix[length - 1]
                else:
                    allowed = token not in config.forbid and (token != EOS or length > config.minimum_length)
                if allowed:
                    continuations.append((tokens, token, total + log_probability))
        continuations.sort(key=lambda each: -each[2])  # stable: rank of the parent, then token id
        if config.beam == 1:
            continuations = continuations[:1]
        for tokens, token, total in continuations[: config.beam]:
            if token == EOS:
                finished.append(hypothesis(tokens, total, True, config, decoder, memory))
        before = live
        live = [([*tokens, token], total) for tokens, token, total in continuations[: 2 * config.beam] if token != EOS]
        live = live[: config.beam]
        if not live:
            live = before if not finished else []
            break
    finished.sort(key=lambda each: -each.score)
    unfinished = [hypothesis(tokens, total, False, config, decoder, memory) for tokens, total in live]
    unfinished.sort(key=lambda each: -each.score)
    return (finished + unfinished)[: config.nbest]


def brute_force(decoder: Decoder, memory: Memory, config: SearchConfig, size: int) -> list[Hypothesis]:
    """Every finished output that `config` allows, best first."""
    ordinary = [token for token in range(size) if token != EOS and token not in config.forbid]
    table: dict[tuple[int, ...], float] = {(): 0.0}
    results = []
    for length in range(longest(memory, config)):
        for tokens in product(ordinary, repeat=length):
            following = next_log_probabilities(decoder, memory, tokens)
            for token in ordinary:
                table[(*tokens, token)] = table[tokens] + float(following[token])
            if length >= config.minimum_length:
                total = table[tokens] + float(following[EOS])
                results.append(hypothesis(tokens, total, True, config, decoder, memory))
    return sorted(results, key=lambda each: -each.score)
