"""The hybrid of a phrase-based and a neural model: its order by brute force, its tuning, and its use from a folder."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from adjectives import sentences
from hypothesis import given
from hypothesis import strategies as st
from training_runs import MACHINE

import dragoman
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.meta import HybridWeights, SystemRecord
from dragoman.checkpoint.systems import HYBRID, NEURAL, PHRASE_BASED, write_systems
from dragoman.cli.main import main
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Row
from dragoman.inference.translation.reranking import hybrid
from dragoman.inference.translation.reranking.hybrid import HybridEngine
from dragoman.inference.translation.reranking.pair_scores import pair_scores
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.bleu import BLEU
from dragoman.metrics.chrf import ChrF
from dragoman.tasks.train import train
from dragoman.tasks.translation import hybrid as tuning
from dragoman.tasks.translation.hybrid import TuningPairs, tune_hybrid

PAIRS = sentences(20, 2)
VALID = TuningPairs("valid", [source for source, _ in PAIRS], [target for _, target in PAIRS], "13a", "bleu")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    for name, pairs in (("train", sentences(150, 1)), ("valid", PAIRS)):
        (folder / f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    recipe = {
        "data": {"train": {"pairs": f"{folder}/train.tsv"}, "valid": {"pairs": f"{folder}/valid.tsv"}},
        "model": {"preset": "tiny", "width": 16},
        "text": {"subword": {"size": 300}},
        "train": {**MACHINE, "max_steps": 1, "ema": None},
        "systems": ["phrase_based"],
        "out": str(folder / "run"),
    }
    return train(recipe, quiet=True).folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of the folder, which a test may change."""
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run"


class _Words:
    """A tokenizer whose texts are the tokens themselves."""

    def decode(self, tokens: Sequence[int], unknown: Sequence[str]) -> str:
        return " ".join(map(str, tokens))


class _Listed:
    """An engine that returns the first hypotheses of a list of its own for each row."""

    def __init__(self, lists: Sequence[Sequence[Hypothesis]]) -> None:
        self._lists = lists

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        for index in reversed(range(len(rows))):  # rows are completed in any order
            decoding = rows[index].decoding
            assert isinstance(decoding, SearchConfig)
            yield index, list(self._lists[rows[index].number - 1][: decoding.nbest])


NUMBERS = st.integers(-5, 5).map(float)
TOKENS = st.lists(st.integers(4, 6), max_size=3)
HYPOTHESES = st.builds(lambda tokens, score: Hypothesis(tuple(tokens), score, score, True), TOKENS, NUMBERS)


@given(st.lists(st.lists(HYPOTHESES, min_size=1, max_size=4), max_size=70), NUMBERS, NUMBERS, st.integers(1, 3))
def test_hypotheses_are_ordered_by_the_weighted_sum(
    lists: list[list[Hypothesis]], neural: float, length: float, nbest: int
) -> None:
    """For each row, the result is the head of the list sorted by all features; equal ones keep their order."""

    def log_probability(source: str, target: str) -> float:
        return float(hash((source, target)) % 7)

    engine: Any = HybridEngine(
        _Listed(lists),  # type: ignore[arg-type]
        _Words(),  # type: ignore[arg-type]
        lambda sources, targets: [log_probability(*pair) for pair in zip(sources, targets, strict=True)],
        HybridWeights(phrase_based=1.0, neural=neural, length=length, nbest=3),
    )
    decoding = SearchConfig(beam=4, nbest=nbest)
    rows = [Row(number, f"text {number}", (5,), decoding) for number in range(1, len(lists) + 1)]
    found = dict(engine.hypotheses(rows, 8))
    assert sorted(found) == list(range(len(lists)))
    for index, each in enumerate(lists):

        def total(one: Hypothesis, text: str = f"text {index + 1}") -> float:
            target = " ".join(map(str, one.tokens))
            return one.score + neural * log_probability(text, target) + length * len(one.tokens)

        expected = sorted(each[: max(3, nbest)], key=total, reverse=True)[:nbest]
        assert [one.tokens for one in found[index]] == [one.tokens for one in expected]
        assert [one.score for one in found[index]] == pytest.approx([total(one) for one in expected])


def test_a_folder_translates_with_its_hybrid(folder: Path, tmp_path: Path) -> None:
    """The best of the phrase-based translations by brute force is that of `load`, of requests and of the command."""
    weights = HybridWeights(phrase_based=0.5, neural=3.0, length=0.25, nbest=8)
    records = [each for each in read_meta(folder).systems if each.name != NEURAL]
    record = SystemRecord(name=HYBRID, folder=f"systems/{PHRASE_BASED}", hybrid=weights)
    write_systems(folder, [record, *records, SystemRecord(name=NEURAL)])
    phrase_based = Translator.load(folder, system=PHRASE_BASED)
    neural = Translator.load(folder, system=NEURAL)
    sources = list(VALID.sources)
    expected = []
    for source, found in zip(
        sources, phrase_based.translate_nbest(sources, phrase_based.request(nbest=8)), strict=True
    ):
        scores = neural.score([source] * len(found), [each.text for each in found])
        totals = [
            0.5 * each.score + 3 * score.log_probability + 0.25 * len(each.ids)
            for each, score in zip(found, scores, strict=True)
        ]
        expected.append(found[max(range(len(found)), key=lambda row: (totals[row], -row))].text)
    best = dragoman.load(folder)
    assert best.translate(sources) == dragoman.load(folder, system=HYBRID).translate(sources) == expected
    assert best.translate(sources) != phrase_based.translate(sources)
    assert best.translate(sources[:1], batch_size=1) == expected[:1]
    (tmp_path / "input").write_text("".join(f"{source}\n" for source in sources))
    output = tmp_path / "output"
    assert main(["translate", str(folder), "-q", "-i", str(tmp_path / "input"), "-o", str(output)]) == 0
    assert output.read_text().splitlines() == expected
    assert "| hybrid of both models |" in (folder / "README.md").read_text()


def test_pairs_that_are_too_long_come_last(trained: Path) -> None:
    """Equal pairs are scored once, as `score` does; a pair beyond the model's maximum length is the worst."""
    neural = Translator.load(trained, system=NEURAL)
    sources, targets = [VALID.sources[0]] * 3, [VALID.targets[0], VALID.targets[1], VALID.targets[0]]
    found = pair_scores(neural, sources, targets)
    assert found == pytest.approx([each.log_probability for each in neural.score(sources, targets)])
    assert found[0] == found[2]


def test_a_hybrid_with_a_good_neural_model_is_recorded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a neural model that knows the references, the tuned hybrid is better than the phrase-based model.

    The references are the second-best translations. The recorded scores are those of the hybrid, by sacreBLEU.
    """
    phrase_based = Translator.load(folder, system=PHRASE_BASED)
    listed = phrase_based.translate_nbest(VALID.sources, phrase_based.request(nbest=2))
    targets = [each[-1].text for each in listed]
    references = dict(zip(VALID.sources, targets, strict=True))

    def knowing(model: object, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        scored = zip(sources, targets, strict=True)
        return [ChrF().sentence_scores([target], [references[source]])[0] / 10 for source, target in scored]

    for module in (hybrid, tuning):
        monkeypatch.setattr(module, "pair_scores", knowing)
    found = tune_hybrid(folder, replace(VALID, targets=targets))
    assert found is not None and found.hybrid is not None and found.hybrid.neural > 0
    write_systems(folder, [found, *read_meta(folder).systems])
    lines = Translator.load(folder).translate(list(VALID.sources))
    expected = [BLEU().score(lines, targets).value, ChrF().score(lines, targets).value]
    assert [each.value for each in found.scores] == pytest.approx(expected)
    assert expected[0] > 95


def test_a_hybrid_that_is_not_significantly_better_is_left_out(trained: Path) -> None:
    """A neural model with one update knows nothing: training tunes a hybrid with it, and does not record it."""
    assert tune_hybrid(trained, VALID) is None
    assert [each.name for each in read_meta(trained).systems] == [PHRASE_BASED, NEURAL]
