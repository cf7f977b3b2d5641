"""The compiled alignment models compute what their definitions say, for any number of threads."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from alignment_reference import (
    Expected,
    chain,
    diagonal,
    estimated,
    expected,
    improved_jumps,
    independent,
    uniform,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.statistical.alignment.estimation import pairs as pairs_module
from dragoman.statistical.alignment.estimation.method import AlignmentModel, MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import WordPairs
from dragoman.statistical.alignment.estimation.words import UNKNOWN
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.methods.diagonal import Diagonal, DiagonalConfig
from dragoman.statistical.alignment.methods.hmm import HMM, HMMConfig
from dragoman.statistical.alignment.methods.ibm1 import IBM1, IBM1Config
from dragoman.statistical.alignment.methods.ibm2 import IBM2, IBM2Config

SOURCE_WORDS, TARGET_WORDS = 5, 6
METHODS: list[MethodConfig] = [
    IBM1Config(iterations=3),
    IBM1Config(iterations=3, prior=0.3),
    IBM2Config(ibm1_iterations=2, iterations=3),
    DiagonalConfig(iterations=4),
    DiagonalConfig(iterations=4, prior=0),
    HMMConfig(ibm1_iterations=1, iterations=3, distance=2, prior=0),
    HMMConfig(ibm1_iterations=1, iterations=3, distance=9, prior=0.1),
]
NAMES = [f"{each.kind}-{number}" for number, each in enumerate(METHODS)]
TEXTS = st.tuples(
    st.lists(st.integers(0, SOURCE_WORDS - 1), max_size=5), st.lists(st.integers(0, TARGET_WORDS - 1), max_size=5)
)


def random_texts(seed: int, count: int = 9, longest: int = 4) -> tuple[list[list[int]], list[list[int]]]:
    """Return pairs that contain every word."""
    chance = random.Random(seed)
    sources = [[chance.randrange(SOURCE_WORDS) for _ in range(chance.randint(1, longest))] for _ in range(count)]
    targets = [[chance.randrange(TARGET_WORDS) for _ in range(chance.randint(1, longest))] for _ in range(count)]
    sources[0] += range(SOURCE_WORDS - 1)
    return [*sources, [SOURCE_WORDS - 1], [1]], [*targets, [0, 1, 2], [3, 4, 5]]


def trained(
    config: MethodConfig,
    sources: Any,
    targets: Any,
    threads: int = 1,
    words: tuple[int, int] = (SOURCE_WORDS, TARGET_WORDS),
) -> tuple[AlignmentModel, Any, list[float]]:
    """Return the model, the links, and the objective of each iteration."""
    objectives: list[float] = []
    with Workers(threads) as workers:
        data = TrainingData(
            WordPairs.of(sources, targets),
            words,
            workers,
            on_pass=lambda name, number, value: objectives.append(value),
        )
        model, links = config.train(data)
    return model, links, [value * sum(map(len, targets)) for value in objectives]


def reference(config: Any, sources: Any, targets: Any) -> tuple[dict[tuple[int, int], float], Expected, list[float]]:
    """Return t, the final expectation step, and the objective of each iteration."""
    rows = {
        e: {f for s, t in zip(sources, targets, strict=True) if e == -1 or e in s for f in t}
        for e in (-1, *range(SOURCE_WORDS))
    }
    rows[-1] = set(range(TARGET_WORDS))
    table = {(e, f): 1 / TARGET_WORDS for e in rows for f in rows[e]}
    objectives, divergence = [], 0.0
    distance = getattr(config, "distance", 1)
    jumps, start, tension = np.ones(2 * distance + 1), np.ones(distance + 1), getattr(config, "tension", 0.0)
    a: dict[tuple[int, int, int, int], float] | None = None
    plan = ["ibm1"] * getattr(config, "ibm1_iterations", 0) + [config.kind] * config.iterations

    def alignments(kind: str) -> Any:
        if kind == "ibm1" or (kind == "ibm2" and a is None):
            return independent(uniform)
        if kind == "ibm2":
            return independent(lambda *cell: a[cell])  # type: ignore[index]
        if kind == "diagonal":
            return independent(diagonal(tension, config.null))
        return chain(jumps, start, config.null, config.smoothing)

    for number, kind in enumerate(plan):
        found = expected(sources, targets, table, alignments(kind))
        objectives.append(found.log_likelihood - divergence)
        table, divergence = estimated(found.words, rows, config.prior)
        if kind == "ibm2":
            sums: dict[tuple[int, ...], float] = {}
            for (_, *cell), count in found.positions.items():
                sums[tuple(cell)] = sums.get(tuple(cell), 0.0) + count
            a = {cell: count / sums[cell[1:]] for cell, count in found.positions.items()}
        if kind == "diagonal" and number:
            tension = best_tension(found, config.null)
        if kind == "hmm":
            jumps, start = improved_jumps(found, sources, jumps, start, config.smoothing)
    return table, expected(sources, targets, table, alignments(config.kind)), objectives


def best_tension(found: Expected, null: float) -> float:
    """Return the tension of the largest expected log-likelihood, by golden-section search."""

    def value(tension: float) -> float:
        a = diagonal(tension, null)
        return sum(count * np.log(a(*cell)) for cell, count in found.positions.items() if cell[0])

    low, high, ratio = 0.1, 14.0, (5**0.5 - 1) / 2
    for _ in range(60):
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, second) if value(first) > value(second) else (first, high)
    return (low + high) / 2


@pytest.mark.parametrize("config", METHODS, ids=NAMES)
def test_models_equal_their_definitions(config: MethodConfig) -> None:
    sources, targets = random_texts(1)
    model, links, objectives = trained(config, sources, targets)
    table, found, expected_objectives = reference(config, sources, targets)
    close = 1e-6 if config.kind == "diagonal" else 1e-9  # golden-section search is less exact than Newton's method
    for e in range(-1, SOURCE_WORDS):
        words, probabilities = model.lexicon.row(e + 1)
        assert probabilities == pytest.approx([table[e, f] for f in words.tolist()], abs=close)
        if getattr(config, "prior", 0) == 0:
            assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    assert objectives == pytest.approx(expected_objectives, abs=100 * close)
    with Workers(1) as workers:
        probabilities = model.link_probabilities(WordPairs.of(sources, targets), workers)
    start = 0
    for number, posterior in enumerate(found.posteriors):
        assert probabilities[number] == pytest.approx(posterior[1:].T, abs=100 * close)
        best = posterior[1:].argmax(0)
        clear = np.sort(posterior, axis=0)[-1] - np.sort(posterior, axis=0)[-2] > 1e-4
        chosen = np.where(posterior[0] > posterior[1:].max(0), -1, best)
        row = links.positions[start : start + len(targets[number])]
        assert row[clear].tolist() == chosen[clear].tolist()
        start += len(targets[number])
    assert links.log_likelihoods.sum() == pytest.approx(found.log_likelihood, abs=100 * close)


@settings(max_examples=20)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.integers(0, 3), st.sampled_from([0.0, 0.01, 1.0]))
def test_the_objective_never_decreases(texts: list[Any], kind: int, prior: float) -> None:
    config = [
        IBM1Config(iterations=5, prior=prior),
        IBM2Config(ibm1_iterations=0, iterations=5, prior=prior),
        DiagonalConfig(iterations=5, prior=prior),
        HMMConfig(ibm1_iterations=0, iterations=5, prior=prior, distance=2),
    ][kind]
    _, links, objectives = trained(config, *zip(*texts, strict=True))
    assert np.isfinite(links.log_likelihoods).all() and np.isfinite(objectives).all()
    later = objectives[1 if prior else 0 :]  # the first bound is of probabilities without a prior
    assert all(second >= first - 1e-9 * max(1, abs(first)) for first, second in pairwise(later))


@pytest.mark.parametrize("config", METHODS, ids=NAMES)
def test_results_do_not_depend_on_the_number_of_threads(config: MethodConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs_module, "_BLOCK_CELLS", 16)
    texts = random_texts(2, count=60, longest=7)
    (model, links, _), *others = [trained(config, *texts, threads=threads) for threads in (1, 2, 5)]
    for other, other_links, _ in others:
        assert model.lexicon.probabilities.tobytes() == other.lexicon.probabilities.tobytes()
        assert [each.tobytes() for each in links] == [each.tobytes() for each in other_links]
        assert {name: array.tobytes() for name, array in model.arrays().items()} == {
            name: array.tobytes() for name, array in other.arrays().items()
        }


@pytest.mark.parametrize("config", METHODS, ids=NAMES)
def test_new_pairs_are_aligned_as_in_training(config: MethodConfig) -> None:
    """The links of a pair do not depend on the other pairs, and unknown words have finite probabilities."""
    sources, targets = random_texts(3)
    model, links, _ = trained(config, sources, targets)
    restored = config.restore(model.lexicon, model.arrays())
    with Workers(1) as workers:
        start = 0
        for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
            alone = restored.align(WordPairs.of([source], [target]), workers)
            assert alone.positions.tolist() == links.positions[start : start + len(target)].tolist()
            assert alone.log_likelihoods[0] == links.log_likelihoods[number]
            start += len(target)
        new = WordPairs.of([[0, UNKNOWN], [], [UNKNOWN], [1] * 300], [[UNKNOWN, 2], [1, UNKNOWN], [], [2] * 300])
        found = restored.align(new, workers)
        swapped = restored.align(new.swapped().swapped(), workers)
    assert np.isfinite(found.log_likelihoods).all() and found.positions[2:4].tolist() == [-1, -1]
    assert found.log_likelihoods.tolist() == swapped.log_likelihoods.tolist()


def test_ties_select_the_first_word_and_never_null() -> None:
    model, links, _ = trained(IBM1Config(iterations=1), [[1, 1, 2]], [[0]])
    assert links.positions.tolist() == [0]
    assert isinstance(model, IBM1)


def test_sentences_of_a_thousand_words() -> None:
    chance = random.Random(5)
    texts = [list(range(1000)), *(chance.sample(range(1000), 8) for _ in range(500))]
    _, links, _ = trained(HMMConfig(ibm1_iterations=3, iterations=1), texts, texts, threads=2, words=(1000, 1000))
    assert (links.positions[:1000] == np.arange(1000)).mean() > 0.9


def test_the_tension_of_diagonal_pairs_rises_to_its_limit() -> None:
    texts = [[number % SOURCE_WORDS for number in range(start, start + 5)] for start in range(20)]
    model, _, _ = trained(DiagonalConfig(), texts, texts)
    assert isinstance(model, Diagonal) and model.tension > 8
    model, _, _ = trained(DiagonalConfig(fixed_tension=True), texts, texts)
    assert isinstance(model, Diagonal) and model.tension == 4


def test_the_hidden_markov_model_learns_jumps() -> None:
    chance = random.Random(6)
    texts = [chance.sample(range(50), 8) for _ in range(100)]
    model, links, _ = trained(HMMConfig(), texts, texts, words=(50, 50))
    assert isinstance(model, HMM) and model.jumps.argmax() == 101
    assert (links.positions == list(range(8)) * 100).mean() > 0.95


@pytest.mark.parametrize(("kind", "iterations"), [("ibm1", 4), ("ibm2", 3)])
def test_translation_probabilities_equal_those_of_nltk(kind: str, iterations: int) -> None:
    """NLTK halves the counts of a target word that occurs twice in a sentence, so each word occurs only once."""
    translate = pytest.importorskip("nltk.translate", reason="nltk is not installed")
    sources, targets = random_texts(4)
    targets = [list(dict.fromkeys(target)) for target in targets]
    texts = [
        translate.AlignedSent([str(f) for f in target], [str(e) for e in source])
        for source, target in zip(sources, targets, strict=True)
    ]
    if kind == "ibm1":
        theirs = translate.IBMModel1(texts, iterations)
        model, _, _ = trained(IBM1Config(iterations=iterations), sources, targets)
    else:
        theirs = translate.IBMModel2(texts, iterations)
        model, _, _ = trained(IBM2Config(ibm1_iterations=2 * iterations, iterations=iterations), sources, targets)
        assert isinstance(model, IBM2)
    for e in range(-1, SOURCE_WORDS):
        words, probabilities = model.lexicon.row(e + 1)
        for f, probability in zip(words.tolist(), probabilities.tolist(), strict=True):
            assert theirs.translation_table[str(f)][None if e < 0 else str(e)] == pytest.approx(probability, abs=1e-6)


def test_corpora_of_blank_pairs() -> None:
    for config in METHODS:
        _, links, _ = trained(config, [[], [1], []], [[], [], [1]])
        assert links.positions.tolist() == [-1] and np.isfinite(links.log_likelihoods).all()
