"""Scores of sentence pairs: definition, independence of other pairs, and shuffled pairs of the embedded grammar."""

import math
import random
from pathlib import Path

import numpy as np
import pytest
from embedded_corpus import generate

import dragoman
from dragoman.cli.main import main
from dragoman.statistical.alignment.pair_scoring import score_pairs
from dragoman.statistical.alignment.word_aligner import AlignedPairs


def test_definition() -> None:
    aligned = AlignedPairs([(), (), (), ()], np.array([-6.0, -3.0, 0.0, 0.0]), np.array([-4.0, 0.0, -8.0, 0.0]))
    sources, targets = ["a b", "", "a b", " "], ["c d e", "c", "", ""]
    assert score_pairs(sources, targets, aligned) == [-2, -3, -4, 0]


@pytest.mark.parametrize("method", ["hmm", "fertility"])
def test_shuffled_pairs_of_the_embedded_grammar(tmp_path: Path, method: str) -> None:
    sentences, _ = generate(seed=5, train=800)
    sources, targets = [sentence.en for sentence in sentences], [sentence.de for sentence in sentences]
    chance = random.Random(1)
    shuffled = chance.sample(range(len(sources)), 160)
    for position, text in zip(shuffled, [targets[each] for each in shuffled[1:] + shuffled[:1]], strict=True):
        targets[position] = text
    sources, targets = [*sources, "", "a"], [*targets, "", ""]
    overrides = {"method.iterations": 4}
    scores = dragoman.align(
        sources, targets, method=method, save=tmp_path / "aligner", overrides=overrides, threads=1, quiet=True
    ).scores
    assert all(math.isfinite(score) and score <= 0 for score in scores) and scores[-2] == 0
    bad = [scores[each] for each in shuffled]
    good = [scores[each] for each in range(len(sentences)) if each not in set(shuffled)]
    area = np.mean([[one > other for one in good] for other in bad])
    assert area > 0.97
    loaded = dragoman.WordAligner.load(tmp_path / "aligner")
    for position in (*shuffled[:5], 0, 1, 2, -2, -1):
        alone = score_pairs(
            [sources[position]], [targets[position]], loaded.align_pairs([sources[position]], [targets[position]])
        )
        assert alone == pytest.approx([scores[position]], abs=1e-9)


def test_command(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("a b\n\nb\n" * 5)
    (tmp_path / "target").write_text("c d\n\nd\n" * 5)
    files = ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target"), "-q"]
    assert main(["align", *files, "-o", str(tmp_path / "links"), "--scores", str(tmp_path / "scores")]) == 0
    scores = [float(line) for line in (tmp_path / "scores").read_text().splitlines()]
    assert len(scores) == 15 and scores[1] == 0 and all(score < 0 for score in scores[::3])
