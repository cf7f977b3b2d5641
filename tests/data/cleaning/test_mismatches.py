"""Cleaning drops mismatched pairs: the limit against known shares, and whole corpora with planted mismatches."""

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from embedded_corpus import generate
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.data.cleaning.clean import clean
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.mismatch_limit import MismatchLimit
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.items import Pair
from dragoman.statistical.alignment.pair_scoring import AlignerScoring, pair_scoring

PAIRS, SHUFFLED = 1500, 150


@pytest.fixture(autouse=True)
def few_decoys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.cleaning.mismatches._FEWEST_DECOYS", 100)


@given(share=st.floats(0.0, 0.4), distance=st.floats(4.0, 6.0), seed=st.integers(0, 1000))
def test_limit_loses_few_good_pairs_and_drops_little_from_good_corpora(
    share: float, distance: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    bad = rng.random(20_000) < share
    scores = np.where(bad, -3 - distance, -3) + rng.normal(size=len(bad))
    decoys = -3 - distance + rng.normal(size=10_000)
    limit = MismatchLimit.estimate([scores[:5000], scores[5000:]], decoys)
    assert limit.fraction == pytest.approx(share, abs=0.06)
    dropped = scores <= limit.score
    assert dropped[~bad].mean() <= 0.04
    assert dropped[~bad].sum() <= 1.3 * dropped[bad].sum() + 20
    if share > 0.05:
        assert dropped[bad].mean() > 0.75


def test_limit_of_one_score_for_all_pairs_drops_nothing_of_a_good_corpus() -> None:
    limit = MismatchLimit.estimate([np.full(5000, -2.0)], np.full(500, -8.0))
    assert limit.fraction == 0
    assert not (np.full(5000, -2.0) <= limit.score).any()


def texts(seed: int) -> tuple[list[str], list[str]]:
    """Return English sentences of the embedded grammar and their German translations."""
    sentences, _ = generate(seed=seed, train=PAIRS)
    return [each.en for each in sentences], [each.de for each in sentences]


def corpus(seed: int = 1) -> tuple[list[str], list[str], list[int]]:
    """Return sources and targets of the embedded grammar, and the indices of the pairs with exchanged targets."""
    sources, targets = texts(seed)
    rows = random.Random(seed).sample(range(PAIRS), SHUFFLED)
    moved = [targets[row] for row in rows[1:] + rows[:1]]
    for row, text in zip(rows, moved, strict=True):
        targets[row] = text
    return sources, targets, rows


def write(folder: Path, sources: Sequence[str], targets: Sequence[str]) -> dict[str, Path]:
    """Write a corpus and return its settings."""
    paths = {"source": folder / "train.en", "target": folder / "train.de"}
    for path, texts in zip(paths.values(), (sources, targets), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts))
    return paths


def test_planted_mismatches_are_found(tmp_path: Path) -> None:
    sources, targets, rows = corpus()
    report = dragoman.check_data(write(tmp_path, sources, targets), {"mismatched": True, "duplicates": False})
    dropped = {line - 1 for line in report.dropped["mismatched"].tolist()}
    others = set().union(*(lines.tolist() for rule, lines in report.dropped.items() if rule != "mismatched"))
    candidates = {row for row in rows if row + 1 not in others}
    assert len(dropped & candidates) >= 0.8 * len(candidates)
    assert len(dropped - set(rows)) <= 0.02 * (PAIRS - SHUFFLED)
    assert "of the pairs are mismatched; scores up to" in report.table()


@pytest.mark.slow
def test_nothing_is_dropped_from_a_good_corpus_and_a_shuffled_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sources, targets = texts(2)
    rules = {"mismatched": True, "duplicates": False}
    good = dragoman.check_data(write(tmp_path, sources, targets), rules)
    assert good.counts.get("mismatched", 0) <= 0.003 * PAIRS
    assert "not translations of each other" not in capsys.readouterr().err
    random.Random(1).shuffle(targets)
    shuffled = dragoman.check_data(write(tmp_path, sources, targets), rules)
    share, message = capsys.readouterr().err.split("about ")[1].split("%", 1)
    assert message.startswith(" of the pairs are not translations of each other")
    assert int(share) >= 85
    assert shuffled.counts["mismatched"] > 0.2 * PAIRS


class RecordedScoring:
    """Learns and scores nothing, and records the pairs that it should learn and score."""

    fingerprint = "recorded"

    def __init__(self) -> None:
        self.learned: list[list[tuple[str, str]]] = []
        self.scored: list[list[tuple[str, str]]] = []

    def learn(self, sources: list[str], targets: list[str], folder: Path) -> None:
        self.learned.append(list(zip(sources, targets, strict=True)))

    def score(self, sources: list[str], targets: list[str], folder: Path) -> NDArray[np.float64]:
        self.scored.append(list(zip(sources, targets, strict=True)))
        return np.full(len(sources), -1.0)


def numbered(folder: Path, count: int) -> RecordedScoring:
    """Clean a corpus whose pairs have equal sides, and return the recorded scoring."""
    pairs = [Pair(line, f"word {line}", f"word {line}") for line in range(1, count + 1)]
    rules = PairRules(CleaningConfig(mismatched=True, copied_words=None))
    scoring = RecordedScoring()
    clean(pairs, rules, folder, workers=0, scoring=scoring)
    return scoring


def test_decoys_replace_their_pairs_in_the_text_from_which_their_scores_are_learned(tmp_path: Path) -> None:
    scoring = numbered(tmp_path, PAIRS)
    *with_decoys, last = scoring.learned
    assert all(source == target for source, target in last)
    assert len(last) == PAIRS
    assert 100 <= sum(map(len, scoring.scored[: len(with_decoys)])) <= 300
    replaced = set[str]()
    for pairs, decoys in zip(with_decoys, scoring.scored, strict=False):
        sources, targets = zip(*pairs, strict=True)
        assert list(sources) == [source for source, _ in last]
        assert sorted(targets) == sorted(sources)
        assert decoys == [(source, target) for source, target in pairs if source != target]
        assert replaced.isdisjoint(source for source, _ in decoys)
        replaced |= {source for source, _ in decoys}


def test_decoys_of_large_corpora_are_learned_as_rarely_as_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.data.cleaning.mismatches.SAMPLE", 30_000)
    count = 10_000
    scoring = numbered(tmp_path, count)
    (with_decoys, last), (decoys, *blocks) = scoring.learned, scoring.scored
    rate = len(last) / count
    assert 0.1 < rate < 0.2
    assert sum(map(len, blocks)) == count
    assert 100 <= len(decoys) <= 300
    assert len(set(decoys) & set(with_decoys)) == pytest.approx(
        rate * len(decoys), abs=5 * math.sqrt(len(decoys) * rate)
    )
    assert {source for source, _ in with_decoys} == {source for source, _ in last}


@pytest.mark.slow
def test_chunks_workers_and_an_earlier_call_give_the_same_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.data.cleaning.chunks.PAIRS", 400)
    sources, targets, _ = corpus()
    pairs = [Pair(line, *texts) for line, texts in enumerate(zip(sources, targets, strict=True), start=1)]
    config = CleaningConfig(mismatched=True)
    found = []
    for name, workers in (("one", 0), ("two", 2), ("one", 0)):
        (tmp_path / name).mkdir(exist_ok=True)
        if found and name == "one":  # learned already
            monkeypatch.setattr(AlignerScoring, "learn", None)
        cleaned = clean(pairs, PairRules(config), tmp_path / name, workers=workers, scoring=AlignerScoring())
        found.append({rule: lines.tolist() for rule, lines in cleaned.report.dropped.items()})
    assert found[0]["mismatched"]
    assert found[1] == found[2] == found[0]


@pytest.mark.slow
def test_a_given_aligner_scores_a_pair_alone_as_in_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.cleaning.mismatches._FEWEST_DECOYS", 500)  # nothing is learned from them
    sources, targets, _ = corpus()
    dragoman.align(sources, targets, save=tmp_path / "aligner", quiet=True)
    scoring = pair_scoring(CleaningConfig(mismatched=True, aligner=tmp_path / "aligner"))
    assert scoring is not None
    together = scoring.score(sources[:20], targets[:20], tmp_path)
    alone = [
        scoring.score([source], [target], tmp_path)[0]
        for source, target in zip(sources[:20], targets[:20], strict=True)
    ]
    assert together.tolist() == alone
    other = tmp_path / "other"
    other.mkdir()
    new, translations, rows = corpus(3)
    rules = {"mismatched": True, "aligner": tmp_path / "aligner", "duplicates": False}
    report = dragoman.check_data(write(other, new, translations), rules)
    dropped = {line - 1 for line in report.dropped["mismatched"].tolist()}
    assert len(dropped & set(rows)) >= 0.7 * SHUFFLED
    assert len(dropped - set(rows)) <= 0.03 * (PAIRS - SHUFFLED)


def test_scripts_without_spaces_have_words() -> None:
    from dragoman.statistical.alignment.pair_scoring import _words

    assert _words(["我爱你。", "I (really) love you!"]) == ["我 爱 你 。", "I ( really ) love you !"]


def test_errors_and_small_corpora_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources, targets, _ = corpus()
    few = write(tmp_path, sources[:100], targets[:100])
    assert "mismatched" not in dragoman.check_data(few, {"mismatched": True}).dropped
    assert "needs at least 1,000 pairs, but only" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="set mismatched: true, or remove aligner"):
        dragoman.check_data(few, {"aligner": tmp_path})
    with pytest.raises(ModelError):
        dragoman.check_data(few, {"mismatched": True, "aligner": tmp_path / "nowhere"})


def test_settings_that_are_off_leave_fingerprints_alone() -> None:
    assert "mismatched" not in CleaningConfig().fingerprint()
    assert CleaningConfig().fingerprint() == CleaningConfig(mismatched=True).fingerprint()  # the scoring has its own
    assert AlignerScoring().fingerprint
