"""The search for phrase-based translations: compared with the enumeration of all derivations."""

import math
from collections.abc import Iterator
from ctypes import POINTER, c_int32, c_void_p, cast, memmove
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sanitizers import check_with_sanitizers

from dragoman.statistical.phrases import library
from dragoman.statistical.phrases.phrase_table import Phrases, PhraseTable, build_table
from dragoman.statistical.phrases.search import PhraseSearch, SearchLimits

START, END, UNKNOWN = 1, 2, 3


class Bigrams:
    """A bigram model with random probabilities. Its state is the last word; 0 is the empty context."""

    def __init__(self, words: int, generator: np.random.Generator) -> None:
        self.table = np.log(generator.dirichlet(np.ones(words), words))
        self.callback = library.ScoreWord(self._score)

    def _score(self, model: object, state: int, word: int, following: int) -> float:
        memmove(following, bytes(c_int32(word)), 4)
        return float(self.table[cast(state, POINTER(c_int32))[0], word])

    @property
    def native(self) -> library.LanguageModel:
        model = library.LanguageModel.of(
            {"start": np.array([START], np.int32), "empty": np.array([0], np.int32)},
            state_size=4,
            end=END,
            unknown=UNKNOWN,
        )
        model.score = cast(self.callback, c_void_p).value
        return model

    def text(self, words: list[int]) -> float:
        history = [START, *(UNKNOWN if word < 0 else word for word in words), END]
        return float(sum(self.table[a, b] for a, b in pairwise(history)))


def random_table(generator: np.random.Generator, reordered: bool) -> PhraseTable:
    pairs = {}
    for _ in range(40):
        source = tuple(generator.integers(0, 4, generator.integers(1, 4)).tolist())
        target = tuple(generator.integers(4, 9, generator.integers(1, 3)).tolist())
        pairs[source, target] = generator.normal(-1, 0.7, 4)
    table = build_table(
        Phrases.of([source for source, _ in pairs]),
        Phrases.of([target for _, target in pairs]),
        np.array(list(pairs.values()), np.float32),
        3,
    )
    if not reordered:
        return table
    reordering = np.log(generator.dirichlet(np.ones(3), (len(table), 2))).reshape(len(table), 6).astype(np.float32)
    return replace(table, reordering=reordering)


def orientation(start: int, end: int, following_start: int, following_end: int) -> int:
    return 0 if following_start == end else 1 if following_end == start else 2


def derivations(
    table: PhraseTable,
    source: list[int],
    limit: int,
    covered: frozenset[int] = frozenset(),
    start: int = -1,
    end: int = 0,
    last: int | None = None,
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the words and the features, without the language model, of every derivation that the limit allows."""
    size = 14 if table.reordering is not None else 8
    if len(covered) == len(source):
        features = np.zeros(size)
        if table.reordering is not None and last is not None and last >= 0:
            kind = orientation(start, end, len(source), len(source) + 1)
            features[8 + 3 + kind] += table.reordering[last, 3 + kind]
        yield [], features
        return
    gap = min(set(range(len(source))) - covered)
    for first in range(gap, len(source)):
        for after in range(first + 1, min(len(source), first + 3) + 1):
            if covered & set(range(first, after)):
                break
            if first != gap and (abs(first - end) > limit or after - gap > limit):
                continue
            for pair, words in options(table, source, first, after):
                features = np.zeros(size)
                features[5:8] = len(words), 1, -abs(first - end)
                kind = orientation(start, end, first, after)
                if pair >= 0:
                    features[1:5] = table.features[pair]
                    if table.reordering is not None:
                        features[8 + kind] += table.reordering[pair, kind]
                if table.reordering is not None and last is not None and last >= 0:
                    features[8 + 3 + kind] += table.reordering[last, 3 + kind]
                for rest, others in derivations(
                    table, source, limit, covered | set(range(first, after)), first, after, pair
                ):
                    yield [*words, *rest], features + others


def options(table: PhraseTable, source: list[int], first: int, after: int) -> list[tuple[int, list[int]]]:
    node = 0
    for word in source[first:after]:
        children = range(table.child_starts[node], table.child_starts[node + 1])
        node = next((child for child in children if table.words[child] == word), -1)
        if node < 0:
            break
    found = []
    if node >= 0:
        for pair in range(table.pair_starts[node], table.pair_starts[node + 1]):
            target = table.targets[pair]
            words = table.target_words[table.target_starts[target] : table.target_starts[target + 1]]
            found.append((pair, words.tolist()))
    return found or ([(-1, [-1 - first])] if after == first + 1 else [])


def enumerate_all(
    table: PhraseTable, model: Bigrams, source: list[int], limit: int, weights: np.ndarray
) -> dict[tuple[int, ...], float]:
    best: dict[tuple[int, ...], float] = {}
    for words, features in derivations(table, source, limit):
        features[0] = model.text(words)
        score = float(features @ weights)
        best[tuple(words)] = max(best.get(tuple(words), -math.inf), score)
    return best


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_unlimited_search_equals_enumeration(seed: int, reordered: bool) -> None:
    generator = np.random.default_rng(seed)
    table, model = random_table(generator, reordered), Bigrams(9, generator)
    size = 14 if reordered else 8
    weights = generator.uniform(0.1, 1, size) * np.sign(generator.normal(1, 1, size))
    limit = int(generator.integers(0, 6))
    source = generator.integers(0, 5, generator.integers(1, 6)).tolist()  # word 4 is not in the table
    expected = enumerate_all(table, model, source, limit, weights)
    (found,) = PhraseSearch(table, model.native).translate([source], weights, SearchLimits(0, 0, 0, limit), nbest=20)
    ranked = sorted(expected.values(), reverse=True)[: len(found)]
    assert [each.score for each in found] == pytest.approx(ranked)
    assert len(found) == min(20, len(expected))
    assert len({each.words for each in found}) == len(found)
    for each in found:
        assert each.score == pytest.approx(expected[each.words])
        assert each.score == pytest.approx(float(each.features @ weights))
        assert each.features[0] == pytest.approx(model.text(list(each.words)))


def test_larger_stacks_do_not_lower_the_total_score() -> None:
    """The score of a single sentence may fall, because recombination and pruning depend on each other."""
    generator = np.random.default_rng(5)
    table, model = random_table(generator, reordered=True), Bigrams(9, generator)
    weights = np.concatenate([[1.0], generator.uniform(0.2, 1, 13)])
    sentences = [generator.integers(0, 4, 12).tolist() for _ in range(10)]
    search = PhraseSearch(table, model.native)
    totals = []
    for stack in (1, 3, 10, 30):
        limits = SearchLimits(stack, 5 * stack, 20, 6)
        totals.append(sum(found[0].score for found in search.translate(sentences, weights, limits)))
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]


def test_long_and_empty_sentences() -> None:
    generator = np.random.default_rng(6)
    table, model = random_table(generator, reordered=False), Bigrams(9, generator)
    weights = np.array([1.0, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.3])
    limits = SearchLimits(stack=2, pops=4, options=5, distortion=3)
    empty, long = PhraseSearch(table, model.native).translate(
        [[], generator.integers(0, 5, 300).tolist()], weights, limits
    )
    assert [each.words for each in empty] == [()]
    covered = sorted(word for start, end, _ in long[0].phrases for word in range(start, end))
    assert covered == list(range(300))


@pytest.mark.slow
def test_address_and_undefined_behaviour_sanitizers(tmp_path: Path) -> None:
    """The tests of the search and of the extraction find no error in a library that is compiled with sanitizers."""
    files = [Path(__file__), Path(__file__).with_name("test_phrase_extraction.py")]
    check_with_sanitizers(files, "not sanitizers", tmp_path)
    assert list(tmp_path.rglob("phrases-*.so"))
