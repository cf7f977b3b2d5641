"""The verdict on translations: intervals of sacreBLEU, corpora that are gone or large, and what is advised."""

import json
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from toy_language import ORDERS, PAIRS, sentence

from dragoman.checkpoint.verdict import COPYING, DICTIONARY, Verdict
from dragoman.metrics.metric import Outputs
from dragoman.tasks.verdict.history import LearningState
from dragoman.tasks.verdict.judge import JudgedModel, judge
from dragoman.tasks.verdict.training_pairs import TrainingPairs

SOURCES, REFERENCES = map(list, zip(*[sentence(words + more) for words in ORDERS for more in ORDERS], strict=True))
SCRAMBLED = [" ".join(reversed(line.split())) for line in REFERENCES]


def judged(translations: list[str], training: TrainingPairs, config: dict[str, Any] | None = None) -> Verdict:
    outputs = Outputs(translations, (REFERENCES,), SOURCES)
    return judge(JudgedModel("runs/a", config or {}, None, "test", outputs, "13a"), training, threads=1)


def test_intervals_equal_those_of_sacrebleu() -> None:
    found = judged(SCRAMBLED, TrainingPairs(PAIRS))
    for system, lines in ((found.model, SCRAMBLED), (found.others[0], SOURCES)):
        for score, metric in zip(system.scores, (sacrebleu.BLEU(), sacrebleu.CHRF()), strict=True):
            expected: Any = metric.corpus_score(lines, [REFERENCES], n_bootstrap=1000)
            assert score.value == pytest.approx(expected.score)
            assert (score.high - score.low) / 2 == pytest.approx(expected._ci, abs=1e-3)


def test_reversed_sentences_are_worse_than_a_perfect_dictionary() -> None:
    found = judged(SCRAMBLED, TrainingPairs(PAIRS))
    assert [each.system for each in found.others] == [COPYING, DICTIONARY]
    assert found.others[1].scores[0].value == pytest.approx(100)
    assert found.is_poor and "worse than the word-by-word dictionary" in found.sentence
    assert found.pairs == len(PAIRS) and found.source is not None and found.source.unseen == 0


def test_perfect_translations_are_not_better_than_a_perfect_dictionary_but_than_copying() -> None:
    assert "not significantly better than the word-by-word" in judged(REFERENCES, TrainingPairs(PAIRS)).sentence
    without = judged(REFERENCES, TrainingPairs([], missing="the corpus is gone"))
    assert [each.system for each in without.others] == [COPYING] and not without.is_poor
    assert without.missing == "the corpus is gone" and without.source is None


@pytest.mark.parametrize(
    ("pairs", "section", "expected"),
    [
        (4_000, {}, ["start from", "phrase-based", "backtranslate"]),
        (4_000, {"train": {"max_minutes": 3, "start": "a"}}, ["train.max_minutes=3", "phrase-based", "backtranslate"]),
        (4_000, {"model": {"kind": "statistical"}}, ["start from", "backtranslate"]),
        (200_000, {}, ["backtranslate", "start from"]),
        (5_000_000, {}, []),
    ],
)
def test_advice_is_ordered_by_the_size_of_the_corpus(pairs: int, section: dict[str, Any], expected: list[str]) -> None:
    outputs = Outputs(SCRAMBLED, (REFERENCES,), SOURCES)
    model = JudgedModel("a", section, pairs, "test", outputs, "13a", learning=LearningState.of(Path("a"), section))
    found = judge(model, TrainingPairs(PAIRS), threads=1).advice
    assert len(found) == len(expected) and all(word in line for word, line in zip(expected, found, strict=True))


@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [("bleu", [1, 3, 4], True), ("bleu", [1, 4, 4], False), ("loss", [3, 2, 1], True), ("loss", [3, 1, 2], False)],
)
def test_longer_training_is_advised_if_the_last_validation_was_the_best(
    metric: str, values: list[float], expected: bool, tmp_path: Path
) -> None:
    lines = [{"step": step, "epoch": 1, "seconds": 1, f"valid_{metric}": value} for step, value in enumerate(values)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    config = {"train": {"metric": metric, "max_steps": 5}}
    learning = LearningState.of(tmp_path, config)
    assert learning.improving is expected
    advised = learning.advice(is_poor=not expected)
    assert (advised is not None) is expected
    if advised is not None:
        assert advised.startswith(
            "train for longer: the last of 3 validations was the best one, when train.max_steps=5 ended the training"
        )
    assert LearningState.of(tmp_path, {"train": {"metric": metric}}).advice(True) is None  # patience ended the run
    checkpoint = tmp_path / "checkpoints" / "step-1"
    checkpoint.mkdir(parents=True)
    assert LearningState.of(checkpoint, config).improving is expected


def test_pairs_are_read_from_all_corpora_in_turn(tmp_path: Path) -> None:
    for name, count in (("a", 2), ("b", 5)):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{name}{row}\t{name}\n" for row in range(count)) + "\t\n")
    train = [{"pairs": str(tmp_path / "a.tsv"), "target_language": "de"}, {"pairs": str(tmp_path / "b.tsv")}]
    config = {"data": {"train": train}}
    found = TrainingPairs.of_run(config, limit=4)
    assert [source for source, _ in found.pairs] == ["a0", "b0", "a1", "b1"] and found.is_sample
    whole = TrainingPairs.of_run(config, "fr")
    assert len(whole.pairs) == 5 and not whole.is_sample
    (tmp_path / "b.tsv").unlink()
    assert "b.tsv does not exist any more" in TrainingPairs.of_run(config).missing
    assert "names no corpus" in TrainingPairs.of_run({}).missing
