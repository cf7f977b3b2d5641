"""Length ratios of pairs relative to the usual ratio of their corpus."""

import random
import re

import numpy as np
import pytest

from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.length_ratio import UsualRatio
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.items import Pair


def corpus(count: int, ratio: float, wrong: float = 0.0, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths (2, count), and whether each pair is one of the shuffled pairs of unlike length."""
    draw = np.random.default_rng(seed)
    source = np.exp(draw.normal(4, 0.8, count)) + 3
    target = source * ratio * np.exp(draw.normal(0, 0.15, count))
    moved = draw.permutation(count)[: int(wrong * count)]
    target[moved] = target[np.roll(moved, 1)]
    lengths = np.maximum(np.array([source, target]).round().astype(int), 1)
    unlike = np.zeros(count, bool)
    unlike[moved] = UsualRatio(ratio).deviations(lengths)[moved] > 2.5
    return lengths, unlike


@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.5, 1.0])
def test_wrong_pairs_are_found_and_true_pairs_kept(ratio: float, wrong: float) -> None:
    lengths, unlike = corpus(4000, ratio, wrong)
    estimate = UsualRatio.estimate(lambda: np.array_split(lengths, 3, axis=1))
    assert estimate.usual == pytest.approx(ratio, rel=0.1)
    dropped = estimate.deviations(lengths) > estimate.limit(4.0)
    assert dropped[unlike].all()
    if not wrong:
        assert not dropped.any()
    assert estimate == UsualRatio.estimate(lambda: [lengths])


def test_one_free_translation_is_kept_but_not_beyond_the_maximum() -> None:
    lengths, _ = corpus(50, 1.0)
    for factor, is_dropped in ((3.3, False), (6.0, True)):
        lengths[:, 0] = 100, 100 * factor
        estimate = UsualRatio.estimate(lambda: [lengths])
        assert estimate.limit(4.0) == 4.0
        assert (estimate.deviations(lengths)[0] > estimate.limit(4.0)) == is_dropped


def test_small_and_empty_corpora() -> None:
    assert UsualRatio.estimate(list) == UsualRatio()
    assert UsualRatio.estimate(lambda: [np.array([[0, 0], [5, 0]])]) == UsualRatio()
    single = np.array([[10], [60]])
    estimate = UsualRatio.estimate(lambda: [single])
    assert estimate.deviations(single)[0] < 1.05


def judge(pairs: list[tuple[str, str]], **options: object) -> dict[str, list[int]]:
    numbered = [Pair(line, *sides) for line, sides in enumerate(pairs, start=1)]
    report = report_cleaning(numbered, PairRules(CleaningConfig.model_validate(options)), workers=0)
    return {rule: lines.tolist() for rule, lines in report.dropped.items()}


def test_alphabets_and_logograms_are_compared_by_their_own_ratio() -> None:
    draw = random.Random(2)
    words = [(draw.choice("人权自由平等"), "လွတ်လပ်ခွင့် ") for _ in range(900)]
    pairs = []
    for _ in range(40):
        chosen = draw.sample(words, draw.randint(5, 40))
        pairs.append(("".join(word for word, _ in chosen), "".join(word for _, word in chosen).strip()))
    assert judge(pairs) == {}
    wrong = ("人权", "လွတ်လပ်ခွင့် " * 20)
    assert judge([*pairs, wrong]) == {"max_ratio": [41]}
    assert judge([*pairs, wrong], max_ratio=None) == {}
    assert judge([*pairs, wrong], max_ratio=30) == {}


def test_the_report_has_the_usual_ratio_and_the_limit() -> None:
    pairs = [Pair(line, "a dog runs fast" * line, "ein Hund" * line) for line in range(1, 30)]
    report = report_cleaning([*pairs, Pair(30, "no", "x" * 300)], PairRules(CleaningConfig()), workers=0)
    expected = r"usual ratio 0\.5\d target characters per source character, limit 4 times more or less"
    assert re.search(expected, report.table())
