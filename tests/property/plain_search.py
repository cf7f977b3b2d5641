"""Slow, plain reference searches: one sentence at a time, every hypothesis read from its beginning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import log

import numpy as np
import torch

from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Decoder, Memory
from dragoman.text.symbols import BOS, EOS


@dataclass(frozen=True)
class Rules:
    """Rules of a search that `SearchConfig` does not have.

    allowed: whether a token may follow tokens; added: (V,) to the next tokens' scores; reward: per token, including
    the end; shrinks: each finished hypothesis reduces the beam by one, and no more continuations are considered than
    the beam size.
    """

    allowed: Callable[[Sequence[int], int], bool] = lambda tokens, token: True
    added: Callable[[Sequence[int]], np.ndarray] = lambda tokens: np.float32(0)
    reward: float = 0.0
    shrinks: bool = False


def next_log_probabilities(decoder: Decoder, memory: Memory, tokens: Sequence[int]) -> np.ndarray:
    """Return log-probabilities (V,) float32 after `tokens` for the one sentence of `memory`."""
    output, _ = decoder.step(torch.tensor([[BOS, *tokens]]), decoder.start(memory))
    logits = output.logits()[0, -1].float()
    return (logits - logits.logsumexp(0)).numpy()


def coverage_penalty(decoder: Decoder, memory: Memory, tokens: Sequence[int], finished: bool) -> float:
    """Return equation 14 of Wu et al. 2016 without its β, over the steps of all `tokens` and the end, if finished."""
    source = int(memory.mask.sum())  # these memories have no padding inside
    received = [0.0] * source
    read = [BOS, *tokens][: len(tokens) + finished]
    if read:
        output, _ = decoder.step(torch.tensor([read]), decoder.start(memory, attention=True))
        assert output.attention is not None
        for step in output.attention[0].tolist():
            received = [so_far + weight for so_far, weight in zip(received, step[:source], strict=True)]
    return sum(log(max(min(each, 1.0), float(np.finfo(np.float32).tiny))) for each in received)


def hypothesis(
    tokens: Sequence[int],
    total: float,
    finished: bool,
    config: SearchConfig,
    decoder: Decoder,
    memory: Memory,
    own: float | None = None,
    reward: float = 0.0,
) -> Hypothesis:
    """own: the log-probability, if it is not the total."""
    length = len(tokens) + finished
    score = float(total) / config.length_penalty.divisor(length) + reward * length
    if config.coverage_penalty:
        score += config.coverage_penalty * coverage_penalty(decoder, memory, tokens, finished)
    return Hypothesis(tuple(tokens), float(total if own is None else own), score, finished)


def longest(memory: Memory, config: SearchConfig) -> int:
    """Return the maximum number of tokens, including the end."""
    relative = int(config.length_factor * int(memory.mask.sum()) + config.length_margin)
    return relative if config.maximum_length is None else min(relative, config.maximum_length)


def shortest(memory: Memory, config: SearchConfig) -> int:
    """Return the minimum number of tokens, without the end."""
    least = max(config.minimum_length, int(config.minimum_factor * (int(memory.mask.sum()) - 1)))
    return least if config.maximum_length is None else min(least, config.maximum_length - 1)


def repeats(tokens: Sequence[int], token: int, size: int) -> bool:
    """Return whether the last `size` tokens, ending with `token`, already occur as a sequence."""
    read = [BOS, *tokens, token]
    return size > 0 and any(read[-size:] == read[start : start + size] for start in range(len(read) - size))


def may_follow(memory: Memory, config: SearchConfig, tokens: Sequence[int], token: int) -> bool:
    """Return whether the settings allow a token."""
    long_enough = token != EOS or len(tokens) >= shortest(memory, config)
    return token not in config.forbid and long_enough and not repeats(tokens, token, config.no_repeat_ngram)


def plain_search(
    decoder: Decoder, memory: Memory, config: SearchConfig, prefix: Sequence[int] = (), rules: Rules = Rules()
) -> list[Hypothesis]:
    """Beam search as defined by `search`, for one sentence, without stopping before the maximum length."""
    # tokens, their values in comparisons, their log-probability
    live: list[tuple[list[int], np.float32, np.float32]] = [([], np.float32(0), np.float32(0))]
    finished: list[Hypothesis] = []
    last = max(longest(memory, config), len(prefix) + 1, shortest(memory, config) + 1)
    shrinks = rules.shrinks or config.shrinking
    for length in range(1, last + 1):
        continuations = []
        for tokens, total, own in live:
            log_probabilities = next_log_probabilities(decoder, memory, tokens)
            added = np.broadcast_to(rules.added(tokens), log_probabilities.shape)
            for token, log_probability in enumerate(log_probabilities):
                if length <= len(prefix):
                    allowed = token == prefix[length - 1]
                else:
                    allowed = may_follow(memory, config, tokens, token) and rules.allowed(tokens, token)
                if allowed:
                    sums = total + (log_probability + added[token]), own + log_probability
                    continuations.append((tokens, token, *sums))
        continuations.sort(key=lambda each: -each[2])  # stable: rank of the parent, then token id
        beam = config.beam - len(finished) if shrinks else config.beam
        considered = beam if shrinks or beam == 1 else 2 * beam
        continuations = continuations[:considered]
        for tokens, token, total, own in continuations[:beam]:
            if token == EOS:
                finished.append(hypothesis(tokens, total, True, config, decoder, memory, own, rules.reward))
        before = live
        live = [([*tokens, token], total, own) for tokens, token, total, own in continuations if token != EOS][:beam]
        if not live:
            live = before if not finished else []
            break
    finished.sort(key=lambda each: -each.score)
    unfinished = [
        hypothesis(tokens, total, False, config, decoder, memory, own, rules.reward) for tokens, total, own in live
    ]
    unfinished.sort(key=lambda each: -each.score)
    return (finished + unfinished)[: config.nbest]


def brute_force(decoder: Decoder, memory: Memory, config: SearchConfig, size: int) -> list[Hypothesis]:
    """Return every finished output that `config` allows, best first."""
    ordinary = [token for token in range(size) if token != EOS and token not in config.forbid]
    table: dict[tuple[int, ...], float] = {(): 0.0}
    results = []
    for length in range(max(longest(memory, config), shortest(memory, config) + 1)):
        for tokens in product(ordinary, repeat=length):
            if tokens not in table:  # it repeats a forbidden n-gram
                continue
            following = next_log_probabilities(decoder, memory, tokens)
            for token in ordinary:
                if may_follow(memory, config, tokens, token):
                    table[(*tokens, token)] = table[tokens] + float(following[token])
            if may_follow(memory, config, tokens, EOS):
                total = table[tokens] + float(following[EOS])
                results.append(hypothesis(tokens, total, True, config, decoder, memory))
    return sorted(results, key=lambda each: -each.score)
