"""Plain transcriptions of published search algorithms, one sentence at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from plain_search import hypothesis, longest, may_follow, next_log_probabilities, shortest

from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.models.interface import Decoder, Memory
from dragoman.text.symbols import EOS


@dataclass(frozen=True)
class Path:
    """A state of deck 004's algorithm: its words and its log-probability."""

    words: tuple[int, ...]
    score: np.float32

    @property
    def is_complete(self) -> bool:
        return bool(self.words) and self.words[-1] == EOS


def add_to_beam(state: Path, frontier: list[Path], width: int) -> list[Path]:
    """Deck 004, ADDTOBEAM; among equally bad ones the most recent is the worst."""
    if len(frontier) < width:
        return [*frontier, state]
    worst = min(reversed(frontier), key=lambda each: each.score)
    if state.score > worst.score:
        return [*(each for each in frontier if each is not worst), state]
    return frontier


def beam_decode(decoder: Decoder, memory: Memory, size: int, beam_width: int, most: int) -> tuple[list[Path], ...]:
    """Deck 004, BEAMDECODE, line by line, plus the remaining frontier after `most` words, which it lacks."""
    complete_paths: list[Path] = []
    frontier = [Path((), np.float32(0))]
    for _ in range(most):
        if not frontier or beam_width <= 0:  # "while frontier contains incomplete paths and beamwidth > 0"
            break
        extended_frontier: list[Path] = []
        for state in frontier:
            following = next_log_probabilities(decoder, memory, state.words)
            for word in range(size):
                successor = Path((*state.words, word), state.score + following[word])
                extended_frontier = add_to_beam(successor, extended_frontier, beam_width)
        for state in list(extended_frontier):
            if state.is_complete:
                complete_paths.append(state)
                extended_frontier.remove(state)
                beam_width -= 1
        frontier = extended_frontier
    return complete_paths, frontier


@dataclass(frozen=True)
class Member:
    """A hypothesis of a group, its log-probability, and its penalty for tokens shared with earlier groups."""

    tokens: tuple[int, ...]
    total: np.float32
    lost: np.float32


def diverse_search(
    decoder: Decoder, memory: Memory, config: SearchConfig, prefix: Sequence[int] = ()
) -> list[Hypothesis]:
    """Vijayakumar et al. 2018, algorithm 1, with Hamming diversity, up to the maximum length; results of all groups."""
    assert config.diversity is not None
    count, strength = config.diversity.groups, np.float32(config.diversity.strength)
    size = config.beam // count
    start = np.float32(0)
    for place, token in enumerate(prefix):
        start += next_log_probabilities(decoder, memory, prefix[:place])[token]
    live = [[Member(tuple(prefix), start, np.float32(0))] for _ in range(count)]
    finished: list[list[Hypothesis]] = [[] for _ in range(count)]
    stuck: list[list[Member]] = [[] for _ in range(count)]
    last = max(longest(memory, config), len(prefix) + 1, shortest(memory, config) + 1)
    for _ in range(len(prefix), last):
        written: list[int] = []
        for group in range(count):
            continuations = []
            for member in live[group]:
                following = next_log_probabilities(decoder, memory, member.tokens)
                for token, log_probability in enumerate(following):
                    if may_follow(memory, config, member.tokens, token):
                        total = member.total + log_probability
                        shared = strength * np.float32(written.count(token))
                        value = (total - member.lost) - shared
                        continuations.append((value, (*member.tokens, token), total, member.lost + shared))
            continuations.sort(key=lambda each: -each[0])
            continuations = continuations[: 1 if size == 1 else 2 * size]
            for _, tokens, total, _ in continuations[:size]:
                if tokens[-1] == EOS:
                    finished[group].append(hypothesis(tokens[:-1], total, True, config, decoder, memory))
            lives = [Member(*each[1:]) for each in continuations if each[1][-1] != EOS][:size]
            if live[group] and not lives and not finished[group]:
                stuck[group] = live[group]
            live[group] = lives
            written += [member.tokens[-1] for member in lives]
    lists = []
    for ended, lives, before in zip(finished, live, stuck, strict=True):
        rest = [hypothesis(each.tokens, each.total, False, config, decoder, memory) for each in [*lives, *before]]
        lists.append([*sorted(ended, key=lambda each: -each.score), *sorted(rest, key=lambda each: -each.score)])
    chosen: list[Hypothesis] = []
    known: set[tuple[tuple[int, ...], bool]] = set()
    for rank in range(size):
        for each in sorted((group[rank] for group in lists if rank < len(group)), key=_order):
            if len(chosen) < config.nbest and (each.tokens, each.finished) not in known:
                known.add((each.tokens, each.finished))
                chosen.append(each)
    return sorted(chosen, key=_order)


def _order(found: Hypothesis) -> tuple[bool, float]:
    return not found.finished, -found.score
