"""The alignment method `fertility`: its samples equal those of a Python reference, and its models can be saved."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fertility_reference import Reference, random_numbers
from hypothesis import given, settings
from hypothesis import strategies as st
from sanitizers import check_with_sanitizers

from dragoman.base.errors import ModelError
from dragoman.statistical.alignment.estimation.corpus import Corpus
from dragoman.statistical.alignment.estimation.method import TrainingData
from dragoman.statistical.alignment.estimation.pairs import WordPairs
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.methods.fertility import Fertility, FertilityConfig, SamplerState
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner

WORDS = (4, 5)
TEXTS = st.lists(
    st.tuples(st.lists(st.integers(0, 3), max_size=4), st.lists(st.integers(0, 4), max_size=4)),
    min_size=1,
    max_size=5,
).filter(lambda pairs: any(source and target for source, target in pairs))


@given(TEXTS, st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_samples_equal_the_reference(texts: list[tuple[list[int], list[int]]], seed: int) -> None:
    config = FertilityConfig(seed=seed, samplers=1, distance=2, largest_fertility=2, lexicon_prior=0.1, null_prior=0.2)
    sources, targets = [source for source, _ in texts], [target for _, target in texts]
    priors = {
        "null": config.null,
        "lexicon": config.lexicon_prior,
        "null_lexicon": config.null_prior,
        "jump": config.jump_prior,
        "fertility": config.fertility_prior,
    }
    reference = Reference(sources, targets, WORDS, config.distance, config.largest_fertility, **priors)
    with Workers(1) as workers:
        data = TrainingData(WordPairs.of(sources, targets), WORDS, workers)
        lexicon, corpus = data.corpus()
        sampling = config.sampling(corpus, lexicon, WORDS)
        (sampler,) = sampling.samplers
        numbers = random_numbers(int(sampler.random[0]))
        sampling.draw_links()
        reference.start(numbers)
        for stage in (1, 2, 3):
            sampling.count_links()
            for _ in range(2):
                assert rows(sampler, corpus) == reference.links
                sampling.sweep(stage)
                reference.sweep(stage, numbers)
        assert rows(sampler, corpus) == reference.links
        counts = [array.copy() for array in sampler.all_counts()]
        sampling.count_links()
        assert all((one == other).all() for one, other in zip(counts, sampler.all_counts(), strict=True))
        sampling.sum_marginals()
        sampling.sweep(3)
        expected = [np.zeros((len(target), len(source) + 1)) for source, target in texts]
        reference.sweep(3, numbers, expected)
        cells = corpus.pairs.cells.tolist()
        for (source, _), matrix, first, last in zip(texts, expected, cells, cells[1:], strict=False):
            sums = sampling.samplers[0].marginals[first:last].reshape(len(source) + 1, -1) if last > first else []
            assert not source or np.allclose(sums, matrix.T if last > first else [], atol=1e-6)


def rows(sampler: SamplerState, corpus: Corpus) -> list[list[int]]:
    starts = corpus.pairs.target_starts.tolist()
    return [sampler.links[first:last].tolist() for first, last in pairwise(starts)]


def synthetic(count: int, seed: int) -> tuple[list[str], list[str], list[set[tuple[int, int]]]]:
    """Return texts in which some words have two translations in a row, some have none, and a few words are moved."""
    chance = random.Random(seed)
    sources, targets, gold = [], [], []
    for _ in range(count):
        source = [chance.randrange(40) for _ in range(chance.randint(3, 9))]
        pieces = [(i, [f"t{word}a", f"t{word}b"][: word % 3]) for i, word in enumerate(source)]
        if len(pieces) > 3 and chance.random() < 0.3:
            pieces.insert(0, pieces.pop(2))
        links, target = set(), []
        for i, words in pieces:
            links |= {(i, len(target) + offset) for offset in range(len(words))}
            target += words
        sources.append(" ".join(f"s{word}" for word in source))
        targets.append(" ".join(target))
        gold.append(links)
    return sources, targets, gold


def test_fertilities_are_learned() -> None:
    sources, targets, gold = synthetic(300, 1)
    config = AlignerConfig(method=FertilityConfig(iterations=12), symmetrization="forward")
    aligner, aligned = WordAligner.train(sources, targets, config, threads=2)
    links = sum(map(len, gold))
    correct = sum(len(set(found) & expected) for found, expected in zip(aligned.alignments, gold, strict=True))
    assert correct / links > 0.9
    assert isinstance(aligner.forward, Fertility)
    for word, expected in ((0, 0), (1, 1), (2, 2), (5, 2)):
        number = aligner.source_words.number(f"s{word}") + 1
        assert aligner.forward.fertilities[number].argmax() == expected
    assert np.allclose(aligner.forward.fertilities.sum(1), 1) and np.isclose(aligner.forward.jumps.sum(), 1)
    for word in range(len(aligner.source_words) + 1):
        assert aligner.forward.lexicon.row(word)[1].sum() <= 1 + 1e-9


def test_saved_models_and_threads(tmp_path: Path) -> None:
    sources, targets, _ = synthetic(60, 2)
    sources, targets = [*sources, "", "s1 s2", ""], [*targets, "t1a", "", ""]
    folders = []
    for threads in (1, 2):
        config = AlignerConfig(method=FertilityConfig(iterations=4))
        aligner, aligned = WordAligner.train(sources, targets, config, threads)
        aligner.save(tmp_path / str(threads))
        folders.append((aligned.alignments, (tmp_path / str(threads) / "model.safetensors").read_bytes()))
    assert folders[0] == folders[1]
    loaded = WordAligner.load(tmp_path / "1")
    alignments = loaded.align(sources, targets)
    assert [loaded.align([one], [other])[0] for one, other in zip(sources, targets, strict=True)] == alignments
    same = sum(len({*one} & {*other}) for one, other in zip(alignments, aligned.alignments, strict=True))
    assert same / sum(map(len, aligned.alignments)) > 0.85 and alignments == aligner.align(sources, targets)
    assert aligned.alignments[-3:] == [(), (), ()]
    assert np.isfinite(aligned.forward).all() and np.isfinite(aligned.reverse).all()
    assert loaded.align(["new words s1"], ["t1a unknown"])[0]
    assert FertilityConfig(seed=2) != FertilityConfig() and other_seed(sources, targets) != folders[0][1]
    with pytest.raises(ModelError, match="its parameters are incomplete"):
        FertilityConfig(distance=7).restore(loaded.forward.lexicon, loaded.forward.arrays())


def other_seed(sources: list[str], targets: list[str]) -> bytes:
    config = AlignerConfig(method=FertilityConfig(iterations=4, seed=2))
    return WordAligner.train(sources, targets, config)[0].forward.lexicon.probabilities.tobytes()


def test_sentences_of_a_thousand_words() -> None:
    text = " ".join(f"w{number}" for number in range(1000))
    chance = random.Random(3)
    texts = [text, *(" ".join(f"w{chance.randrange(1000)}" for _ in range(8)) for _ in range(500))]
    config = AlignerConfig(method=FertilityConfig(samplers=1, iterations=2, sweeps=1), symmetrization="forward")
    _, aligned = WordAligner.train(texts, texts, config, 2)
    assert sum(source == target for source, target in aligned.alignments[0]) > 900


def test_iterations_depend_on_the_number_of_pairs() -> None:
    config = FertilityConfig()
    assert [config.passes(pairs) for pairs in (2_800, 20_000, 155_000, 10**8)] == [427, 160, 58, 13]
    assert FertilityConfig(iterations=5, samplers=2).passes(2_800) == 15


@pytest.mark.slow
def test_address_and_undefined_behaviour_sanitizers(tmp_path: Path) -> None:
    """The tests of all alignment models find no error in a library that is compiled with sanitizers."""
    files = [Path(__file__), Path(__file__).with_name("test_alignment_models.py")]
    check_with_sanitizers(files, "not sanitizers and not thousand", tmp_path)
    assert list(tmp_path.rglob("alignment-*.so"))
