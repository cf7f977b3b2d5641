"""What the probability of translations says about their quality is measured at the end of a training."""

import random
from pathlib import Path

import pytest
from scipy.stats import linregress
from tiny_model import SOURCES, write_tiny_model

from dragoman import Translator
from dragoman.checkpoint.folder import META, read_meta
from dragoman.checkpoint.systems import confidence_of
from dragoman.metrics.chrf import ChrF
from dragoman.tasks.translation.confidence import measure_confidence
from dragoman.tasks.translation.precision_measurement import ValidationPairs


def pairs(folder: Path, count: int) -> ValidationPairs:
    """Texts, with references that share the more letters with the model's translation, the more probable it is."""
    chance = random.Random(1)
    words = sorted({word for source in SOURCES for word in source.split()})
    sources = [" ".join(chance.choices(words, k=chance.randint(1, 6))) for _ in range(count)]
    translator = Translator.load(folder, "cpu", threads=1)
    found = [each[0] for each in translator.translate_nbest(sources)]
    probable = sorted(range(count), key=lambda row: found[row].log_probability / (len(found[row].ids) + 1))
    targets = [each.text for each in found]
    for rank, row in enumerate(probable):
        kept = max(1, len(targets[row]) * rank // count)
        targets[row] = targets[row][:kept] + "#" * (len(targets[row]) - kept)
    return ValidationPairs("valid", sources, targets, [()] * count)


def test_the_probability_is_compared_with_chrf(tmp_path: Path) -> None:
    """The line is that of scipy for the translations that users get; it is stored and described on the card."""
    write_tiny_model(tmp_path)
    data = pairs(tmp_path, 120)
    found = measure_confidence(tmp_path, data, threads=1)
    best = [each[0] for each in Translator.load(tmp_path, "cpu", threads=1).translate_nbest(data.sources)]
    x = [each.log_probability / (len(each.ids) + 1) for each in best]
    expected = linregress(x, ChrF().sentence_scores([each.text for each in best], data.targets))
    assert found is not None and found.sentences == 120
    assert (found.slope, found.intercept) == pytest.approx((expected.slope, expected.intercept))
    assert found == confidence_of(tmp_path) == confidence_of(tmp_path, "neural")
    assert confidence_of(tmp_path, "phrase_based") is None
    card = (tmp_path / "README.md").read_text()
    assert "## How sure is it?" in card and f"with chrF is {found.correlation:.2f}" in card


def test_nothing_is_measured_with_few_pairs(tmp_path: Path) -> None:
    write_tiny_model(tmp_path)
    before = (tmp_path / META).read_text()
    assert measure_confidence(tmp_path, pairs(tmp_path, 99), threads=1) is None
    assert (tmp_path / META).read_text() == before and read_meta(tmp_path).confidence is None
