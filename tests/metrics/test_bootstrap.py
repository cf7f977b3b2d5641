"""Paired bootstrap compared with sacrebleu's, and cases with a known answer."""

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from dragoman.base.errors import DataError
from dragoman.metrics.bootstrap import paired_bootstrap

WORDS = ["the", "a", "dog", "cat", "man", "woman", "runs", "sees", "eats", "sleeps", "in", "near", "red", "old", "tree"]


def corpus(seed: int, sentences: int = 60) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(6, 14))) for _ in range(sentences)]


def spoil(lines: list[str], share: float, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(w if rng.random() > share else rng.choice(WORDS) for w in line.split()) for line in lines]


REFERENCE = corpus(0)


@pytest.mark.parametrize(("kind", "metric"), [("bleu", BLEU), ("chrf", CHRF), ("ter", TER)])
def test_equals_sacrebleu(kind, metric, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    first, second = spoil(REFERENCE, 0.20, 1), spoil(REFERENCE, 0.24, 2)
    _, theirs = PairedTest([("a", first), ("b", second)], {kind: metric()}, [REFERENCE], "bs", n_samples=120)()
    results = next(value for name, value in theirs.items() if name != "System")
    ours = paired_bootstrap(first, second, REFERENCE, metric=kind, samples=120, seed=7)
    assert ours.first.value == pytest.approx(results[0].score)
    assert ours.second.value == pytest.approx(results[1].score)
    assert ours.p_value == pytest.approx(results[1].p_value)
    for interval, theirs_ in zip((ours.first_interval, ours.second_interval), results, strict=True):
        assert interval.mean == pytest.approx(theirs_.mean, abs=1e-3)
        assert (interval.high - interval.low) / 2 == pytest.approx(theirs_.ci, abs=1e-3)
    assert (ours.samples, ours.seed) == (120, 7)
    assert ours.difference == ours.second.value - ours.first.value
    assert "seed:7" in ours.first.signature


def test_the_better_system_is_significantly_better() -> None:
    result = paired_bootstrap(spoil(REFERENCE, 0.5, 1), spoil(REFERENCE, 0.05, 2), REFERENCE, samples=200)
    assert result.p_value < 0.01
    assert result.difference > 0
    assert 0 < result.difference_interval.low < result.difference_interval.mean < result.difference_interval.high


def test_a_system_does_not_differ_from_itself() -> None:
    system = spoil(REFERENCE, 0.3, 1)
    result = paired_bootstrap(system, system, REFERENCE, samples=50)
    assert result.p_value == 1
    assert result.difference == 0


def test_a_seed_repeats_and_another_differs() -> None:
    first, second = spoil(REFERENCE, 0.20, 1), spoil(REFERENCE, 0.24, 2)
    one = paired_bootstrap(first, second, REFERENCE, samples=50, seed=1)
    assert one == paired_bootstrap(first, second, REFERENCE, samples=50, seed=1)
    assert one.difference_interval != paired_bootstrap(first, second, REFERENCE, samples=50, seed=2).difference_interval


def test_unequal_counts_are_named() -> None:
    with pytest.raises(DataError, match="59 hypotheses, but the reference has 60 lines"):
        paired_bootstrap(REFERENCE, REFERENCE[:-1], REFERENCE)
