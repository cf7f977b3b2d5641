"""`evaluate labels --hypothesis` of COPA, MultiRC and ReCoRD: the metrics of SuperGLUE from all forms of files."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import evaluate_labels
from dragoman.base.errors import DataError
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.read import read_labelled
from dragoman.metrics.labels.report import Report

metrics = pytest.importorskip("sklearn.metrics")

Objects = list[dict[str, Any]]


def copa(seed: int, questions: int = 40) -> Objects:
    chance = random.Random(seed)
    return [
        {
            "premise": f"It rained {number} times.",
            "choice1": f"The street got wet {number}.",
            "choice2": f"The sun came out {number}.",
            "question": chance.choice(["cause", "effect"]),
            "label": chance.randrange(2),
            "idx": 900 - number,
        }
        for number in range(questions)
    ]


def multirc(seed: int) -> Objects:
    chance, counts = random.Random(seed), {"question": 0, "answer": 0}

    def next_number(unit: str) -> int:
        counts[unit] += 1
        return counts[unit]

    def question() -> dict[str, Any]:
        answers = [
            {"text": f"answer {number}", "idx": next_number("answer"), "label": chance.randrange(2)}
            for number in range(chance.randrange(2, 5))
        ]
        return {"question": "Who came?", "idx": next_number("question"), "answers": answers}

    return [
        {"idx": number, "passage": {"text": "Ada came.", "questions": [question() for _ in range(3)]}}
        for number in range(12)
    ]


def record(seed: int) -> Objects:
    chance = random.Random(seed)
    names = ["Ada Lovelace", "the Bank", "Charles", "London"]
    text = ", ".join(names) + "; Charles"
    starts = [*map(text.index, names), text.rindex("Charles")]
    entities = [
        {"start": start, "end": start + len(name) - 1} for start, name in zip(starts, [*names, "Charles"], strict=True)
    ]
    return [
        {
            "idx": number,
            "passage": {"text": text, "entities": entities},
            "qas": [
                {
                    "query": "@placeholder was there.",
                    "idx": 100 + 2 * number + part,
                    "answers": [{"text": name, "start": 0, "end": 1} for name in chance.sample(names, 1 + part)],
                }
                for part in range(2)
            ],
        }
        for number in range(15)
    ]


def write(path: Path, objects: Objects) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    return path


def report(test: Path, hypothesis: Path) -> Report:
    return evaluate_labels(test=test, hypothesis=hypothesis, quiet=True).reports[0]


def per_choice(test: Path, chance: random.Random) -> Objects:
    """Return predictions of a classifier for all choices, in the form of `dragoman predict`."""
    found = []
    for _ in read_labelled(LabelledCorpusConfig(path=test)):
        score = chance.random()
        found.append({"label": str(int(score > 0.5)), "probabilities": {"0": 1 - score, "1": score}})
    return found


def test_copa_is_scored_by_question(tmp_path: Path) -> None:
    chance, gold = random.Random(2), copa(1)
    test = write(tmp_path / "gold.jsonl", gold)
    predicted = per_choice(test, chance)
    scores = [each["probabilities"]["1"] for each in predicted]
    chosen = [int(scores[2 * number + 1] > scores[2 * number]) for number in range(len(gold))]
    expected = 100 * metrics.accuracy_score([each["label"] for each in gold], chosen)
    found = report(test, write(tmp_path / "choices.jsonl", predicted))
    assert (found.examples, found.unit, found["accuracy"].value) == (40, "questions", pytest.approx(expected))
    submission = [{"idx": each["idx"], "label": label} for each, label in zip(gold, chosen, strict=True)]
    chance.shuffle(submission)
    assert report(test, write(tmp_path / "submission.jsonl", submission)).as_json() == found.as_json()
    (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in chosen))
    assert report(test, tmp_path / "labels.txt").as_json() == found.as_json()
    (tmp_path / "marks.txt").write_text("".join(f"{int(label == 0)}\n{label}\n" for label in chosen))
    assert report(test, tmp_path / "marks.txt").as_json() == found.as_json()


def test_multirc_has_f1_of_answers_and_exact_match_of_questions(tmp_path: Path) -> None:
    chance, gold = random.Random(4), multirc(3)
    test = write(tmp_path / "gold.jsonl", gold)
    submission = json.loads(json.dumps(gold))
    pairs: list[tuple[list[int], list[int]]] = []
    for before, after in zip(gold, submission, strict=True):
        for correct, own in zip(before["passage"]["questions"], after["passage"]["questions"], strict=True):
            for answer in own["answers"]:
                if chance.random() < 0.2:
                    answer["label"] = 1 - answer["label"]
            pairs.append(([each["label"] for each in correct["answers"]], [each["label"] for each in own["answers"]]))
    flat = [[label for pair in pairs for label in pair[side]] for side in (0, 1)]
    found = report(test, write(tmp_path / "submission.jsonl", submission))
    assert found["f1a"].value == pytest.approx(100 * metrics.f1_score(*flat))
    assert found["exact_match"].value == pytest.approx(100 * sum(a == b for a, b in pairs) / len(pairs))
    assert found.baseline is not None
    assert found.baseline.values["f1a"] == pytest.approx(100 * metrics.f1_score(flat[0], [1] * len(flat[0])))
    (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in flat[1]))
    assert report(test, tmp_path / "labels.txt").as_json() == found.as_json()
    compared = evaluate_labels(
        test=test, hypothesis=[tmp_path / "labels.txt", write(tmp_path / "gold2.jsonl", gold)], quiet=True
    )
    assert compared.reports[1]["f1a"].value == compared.reports[1]["exact_match"].value == 100
    assert len(compared.comparisons[0]) == 2


def test_record_has_the_scores_of_the_selected_entity(tmp_path: Path) -> None:
    chance, gold = random.Random(6), record(5)
    test = write(tmp_path / "gold.jsonl", gold)
    predicted = per_choice(test, chance)
    entities = ["Ada Lovelace", "the Bank", "Charles", "London"]
    queries = [query for each in gold for query in each["qas"]]
    scores = [each["probabilities"]["1"] for each in predicted]
    chosen = [entities[max(range(4), key=lambda n: scores[4 * number + n])] for number in range(len(queries))]
    right = [
        entity in {answer["text"] for answer in query["answers"]} for entity, query in zip(chosen, queries, strict=True)
    ]
    found = report(test, write(tmp_path / "choices.jsonl", predicted))
    assert found["exact_match"].value == pytest.approx(100 * sum(right) / len(right))
    assert found["f1"].value == found["exact_match"].value  # no two names share a word
    submission = [{"idx": query["idx"], "label": entity} for query, entity in zip(queries, chosen, strict=True)]
    assert report(test, write(tmp_path / "submission.jsonl", submission[::-1])).as_json() == found.as_json()


@pytest.mark.parametrize("name", ["COPA", "MultiRC", "ReCoRD"])
def test_the_benchmark_s_own_files_are_read(tmp_path: Path, name: str) -> None:
    test = Path(os.environ.get("DRAGOMAN_DATA", "")) / "superglue-32" / f"{name}.jsonl.gz"
    if not test.is_file():
        pytest.skip("needs DRAGOMAN_DATA")
    examples = read_labelled(LabelledCorpusConfig(path=test))
    rows = [{"label": each.label, "probabilities": {"1": float(each.label or 0)}} for each in examples]
    found = report(test, write(tmp_path / "perfect.jsonl", rows))
    assert found.examples >= 32
    assert {score.value for score in found.scores if score.key in ("accuracy", "f1a", "exact_match", "f1")} == {100}


@pytest.mark.parametrize(
    ("make", "lines", "message"),
    [
        (copa, ["0"] * 39, "gold.jsonl, line 40: .*ends here, with 39 instead of 40 labels"),
        (copa, ["2"] * 40, "line 1: '2' is not a choice of question 900"),
        (copa, ["1"] * 80, "line 1: 2 choices of question 900 have the label 1 instead of one"),
        (copa, ["yes", "no"] * 40, "line 1: the label of a choice is 0 or 1, not 'yes'"),
        (multirc, ["1"] * 5, "ends here, with 5 instead of"),
        (multirc, ['{"idx": 0, "passage": {}}'], "object 1: not a line of a submission to MultiRC"),
        (multirc, ['{"idx": 0, "passage": {"questions": []}}'], "not all answers of 36 of 36 questions, .* idx 1 of"),
        (record, ["Ada"] * 30, "line 1: 'Ada' is not a choice of question 100"),
    ],
)
def test_errors(tmp_path: Path, make: Callable[[int], Objects], lines: list[str], message: str) -> None:
    test, hypothesis = write(tmp_path / "gold.jsonl", make(1)), tmp_path / "predicted"
    hypothesis.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError, match=message):
        report(test, hypothesis)


def test_questions_without_labels_are_an_error(tmp_path: Path) -> None:
    test = write(tmp_path / "gold.jsonl", [{key: value for key, value in copa(1)[0].items() if key != "label"}])
    with pytest.raises(DataError, match="line 1: not an object of COPA with .*: the key 'label' is missing"):
        report(test, test)
