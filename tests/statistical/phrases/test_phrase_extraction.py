"""Phrase extraction and phrase tables, compared with direct computations from their definitions."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from dragoman.models.kinds.statistical import PhraseBasedConfig
from dragoman.statistical.phrases.aligned_corpus import AlignedCorpus, LinkProbabilities
from dragoman.statistical.phrases.extraction import Occurrences, extract_phrases
from dragoman.statistical.phrases.phrase_table import estimate_table

Links = set[tuple[int, int]]


def random_corpus(seed: int, sentences: int = 30) -> tuple[list[list[int]], list[list[int]], list[Links]]:
    generator = np.random.default_rng(seed)
    sources = [generator.integers(0, 6, generator.integers(1, 8)).tolist() for _ in range(sentences)]
    targets = [generator.integers(0, 6, generator.integers(1, 8)).tolist() for _ in range(sentences)]
    links = [
        {(i, j) for i, j in product(range(len(source)), range(len(target))) if generator.random() < 0.25}
        for source, target in zip(sources, targets, strict=True)
    ]
    return sources, targets, links


def extract(sources: list[list[int]], targets: list[list[int]], links: list[Links], longest: int) -> Occurrences:
    corpus = AlignedCorpus.of(sources, targets, [sorted(each) for each in links])
    return extract_phrases(corpus, LinkProbabilities.of(corpus), longest)


def consistent_pairs(
    source: list[int], target: list[int], links: Links, longest: int
) -> set[tuple[int, int, int, int]]:
    """Return the spans (i1, i2, j1, j2), with inclusive ends, of all consistent phrase pairs."""
    found = set()
    for i1, j1 in product(range(len(source)), range(len(target))):
        for i2 in range(i1, min(i1 + longest, len(source))):
            for j2 in range(j1, min(j1 + longest, len(target))):
                inside = [(i1 <= i <= i2, j1 <= j <= j2) for i, j in links]
                if (True, True) in inside and not any(one != other for one, other in inside):
                    found.add((i1, i2, j1, j2))
    return found


@pytest.mark.parametrize("longest", [1, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_extracted_phrases_are_all_consistent_pairs(seed: int, longest: int) -> None:
    sources, targets, links = random_corpus(seed)
    expected = [consistent_pairs(*each, longest) for each in zip(sources, targets, links, strict=True)]
    found = extract(sources, targets, links, longest)
    source_starts = np.cumsum([0, *map(len, sources)])
    target_starts = np.cumsum([0, *map(len, targets)])
    sentence = np.searchsorted(source_starts, found.source, side="right") - 1
    spans = [
        (
            int(s),
            int(found.source[n] - source_starts[s]),
            int(found.source[n] - source_starts[s] + found.source_length[n] - 1),
            int(found.target[n] - target_starts[s]),
            int(found.target[n] - target_starts[s] + found.target_length[n] - 1),
        )
        for n, s in enumerate(sentence)
    ]
    assert Counter(spans) == Counter((s, *span) for s, each in enumerate(expected) for span in each)


def test_lexical_weights_and_orientations() -> None:
    """The example of Koehn et al. 2003 in two sentences: one link is crossed, one word has no link."""
    sources, targets, links = [[0, 1, 2], [0, 1]], [[10, 12, 11], [10, 13]], [{(0, 0), (1, 2), (2, 1)}, {(0, 0)}]
    found = extract(sources, targets, links, 7)
    at = {
        (int(s), int(n), int(t), int(m)): k
        for k, (s, n, t, m) in enumerate(
            zip(found.source, found.source_length, found.target, found.target_length, strict=True)
        )
    }
    first, swapped = at[0, 1, 0, 1], at[1, 1, 2, 1]
    assert (found.previous[first], found.next[first]) == (
        0,
        2,
    )  # monotone after the start; the next phrase is elsewhere
    assert (found.previous[swapped], found.next[swapped]) == (
        1,
        2,
    )  # its left neighbour translates the word on its right
    whole = at[3, 2, 3, 2]
    # w(10 | 0) = 1 and w(13 | null) = 1, because 13 is the only target word without a link
    assert found.target_given_source[whole] == pytest.approx(math.log(1 * 1))
    assert found.source_given_target[whole] == pytest.approx(math.log(1 * 1))


def test_relative_frequencies_of_a_phrase_table() -> None:
    sources, targets, links = random_corpus(1, 60)
    corpus = AlignedCorpus.of(sources, targets, [sorted(each) for each in links])
    found = extract_phrases(corpus, LinkProbabilities.of(corpus), 3)
    table = estimate_table(corpus, found, PhraseBasedConfig(smoothing=False, max_phrase_length=3), 1_000_000)
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for source, n, target, m in zip(found.source, found.source_length, found.target, found.target_length, strict=True):
        phrases = corpus.source[source : source + n].tolist(), corpus.target[target : target + m].tolist()
        counts[tuple(phrases[0]), tuple(phrases[1])] += 1
    of_source, of_target = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for (source, target), count in counts.items():
        of_source[source] += count
        of_target[target] += count
    assert len(table) == len(counts)
    for source in of_source:
        for target, (inverse, _, direct, _) in table.translations(source):
            count = counts[source, target]
            assert math.exp(direct) == pytest.approx(count / of_source[source], rel=1e-5)
            assert math.exp(inverse) == pytest.approx(count / of_target[target], rel=1e-5)
    assert table.translations((99,)) == []
    assert table.reordering is not None
    sums = np.exp(table.reordering).reshape(len(table), 2, 3).sum(2)
    assert sums == pytest.approx(np.ones_like(sums), abs=1e-5)


def test_smoothing_keeps_the_order_of_frequent_pairs_and_leaves_mass_for_others() -> None:
    sources, targets, links = random_corpus(2, 200)
    corpus = AlignedCorpus.of(sources, targets, [sorted(each) for each in links])
    found = extract_phrases(corpus, LinkProbabilities.of(corpus), 3)
    relative, smoothed = (
        estimate_table(corpus, found, PhraseBasedConfig(smoothing=each, max_phrase_length=3), 1_000_000)
        for each in (False, True)
    )
    for word in range(6):
        before = {target: math.exp(features[2]) for target, features in relative.translations((word,))}
        after = {target: math.exp(features[2]) for target, features in smoothed.translations((word,))}
        assert before.keys() == after.keys()
        assert sum(before.values()) == pytest.approx(1, abs=1e-5)
        assert 0.5 < sum(after.values()) < 1
        best = max(before, key=lambda target: before[target])
        assert after[best] == max(after.values())


def test_table_keeps_the_most_probable_options() -> None:
    sources, targets, links = random_corpus(3, 200)
    corpus = AlignedCorpus.of(sources, targets, [sorted(each) for each in links])
    found = extract_phrases(corpus, LinkProbabilities.of(corpus), 2)
    method = PhraseBasedConfig(max_phrase_length=2)
    whole, limited = (estimate_table(corpus, found, method, options) for options in (1_000_000, 3))
    for word in range(6):
        expected = sorted(features[2] for _, features in whole.translations((word,)))[-3:]
        assert sorted(features[2] for _, features in limited.translations((word,))) == expected


def test_empty_corpus_has_no_phrases() -> None:
    assert len(extract([], [], [], 7).source) == 0
    assert len(extract([[0], []], [[1], [2]], [set(), set()], 7).source) == 0
