"""`evaluate labels --hypothesis` of tags: the scores of conlleval and seqeval, and errors with file and line."""

import json
import random
from pathlib import Path

import pytest

from dragoman import evaluate_labels
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main

Tags = list[list[str]]
ODD = ("X-PER", "PER", "o", "b-LOC")
BREAKS = {"BB", "IB", "OB", "OI"}
"""Pairs of prefixes of which the second begins a span, whatever the types are."""


def split(tag: str) -> tuple[str, str]:
    prefix, hyphen, kind = tag.partition("-")
    return (prefix, kind) if hyphen else (tag, "")


def begins(before: str, tag: str) -> bool:
    (prefix, kind), (old_prefix, old) = split(tag), split(before)
    return old_prefix + prefix in BREAKS or (prefix != "O" and kind != old)


def ends(before: str, tag: str) -> bool:
    (prefix, kind), (old_prefix, old) = split(tag), split(before)
    return old_prefix + prefix in {"BB", "BO", "IB", "IO"} or (old_prefix != "O" and kind != old)


def conlleval(gold: Tags, predicted: Tags) -> tuple[float, float]:
    """Return precision and recall by the rules of the script, one word after another."""
    found, correct, both = 0, 0, 0
    open_type: str | None = None
    previous = ("O", "O")
    rows = [
        pair for one, other in zip(gold, predicted, strict=True) for pair in [*zip(one, other, strict=True), ("O", "O")]
    ]
    for pair in rows:
        last = [ends(*each) for each in zip(previous, pair, strict=True)]
        first = [begins(*each) for each in zip(previous, pair, strict=True)]
        if open_type is not None:
            if all(last) and split(previous[0])[1] == split(previous[1])[1]:
                both, open_type = both + 1, None
            elif any(last) or split(pair[0])[1] != split(pair[1])[1]:
                open_type = None
        if all(first) and split(pair[0])[1] == split(pair[1])[1]:
            open_type = split(pair[0])[1]
        correct, found, previous = correct + first[0], found + first[1], pair
    return 100 * both / found, 100 * both / correct


def draw(seed: int) -> tuple[Tags, Tags]:
    """Return correct IOB2 tags, and predictions some of which contradict it."""
    chance = random.Random(seed)
    gold: Tags = []
    for _ in range(200):
        tags: list[str] = []
        while len(tags) < 8:
            kind = chance.choice(["PER", "LOC"])
            tags += chance.choice([["O"], [f"B-{kind}"], [f"B-{kind}", f"I-{kind}"], ["O", "O"]])
        gold.append(tags)
    predicted = [
        [chance.choice(["O", "B-PER", "I-PER", "I-LOC"]) if chance.random() < 0.2 else tag for tag in tags]
        for tags in gold
    ]
    for tags in predicted[::5]:
        tags[chance.randrange(len(tags))] = chance.choice(ODD)
    return gold, predicted


def write(path: Path, *columns: Tags) -> Path:
    rows = zip(*columns, strict=True)
    sentences = ["".join(f"{' '.join(['w', *word])}\n" for word in zip(*row, strict=True)) for row in rows]
    path.write_text("\n".join(sentences))
    return path


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_files_equal_conlleval_and_seqeval(tmp_path: Path, seed: int) -> None:
    gold, predicted = draw(seed)
    paths = write(tmp_path / "gold.txt", gold), write(tmp_path / "predicted.txt", predicted)
    report = evaluate_labels(test=paths[0], hypothesis=paths[1], quiet=True).reports[0]
    precision, recall = conlleval(gold, predicted)
    assert report["conlleval_precision"].value == pytest.approx(precision)
    assert report["conlleval_recall"].value == pytest.approx(recall)
    words = [one == other for pair in zip(gold, predicted, strict=True) for one, other in zip(*pair, strict=True)]
    assert report["accuracy"].value == pytest.approx(100 * sum(words) / len(words))
    metrics, schemes = pytest.importorskip("seqeval.metrics"), pytest.importorskip("seqeval.scheme")
    plain = [["O" if tag in ODD else tag for tag in tags] for tags in predicted]  # seqeval rejects other prefixes
    for name, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score)):
        expected = score(gold, plain, mode="strict", scheme=schemes.IOB2)
        assert report[f"strict_{name}"].value == pytest.approx(100 * expected)
    number, word = next(
        (row, word)
        for row, tags in enumerate(predicted)
        for word, (before, tag) in enumerate(zip(["O", *tags], tags, strict=False))
        if tag in ODD or (tag[0] == "I" and before not in ODD and before[1:] != tag[1:])
    )
    line = sum(len(tags) + 1 for tags in gold[:number]) + word + 1
    assert f"{paths[1]}, line {line})" in report.warnings["odd_predicted_tags"]


def test_all_forms_of_files_have_the_same_scores(tmp_path: Path) -> None:
    gold, predicted = draw(7)
    other = [["NN"] * len(tags) for tags in gold]
    first = write(tmp_path / "gold.txt", gold)
    both = write(tmp_path / "both.txt", other, gold, predicted)
    tags = tmp_path / "tags.txt"
    tags.write_text("\n".join("".join(f"{tag}\n" for tag in row) for row in predicted))
    lines = tmp_path / "tags.jsonl"
    lines.write_text("".join(f"{json.dumps({'words': ['w'] * len(row), 'tags': row})}\n" for row in predicted))
    same = write(tmp_path / "same.txt", predicted, other)
    expected = evaluate_labels(test=first, hypothesis=[both, tags, lines], quiet=True)
    assert [each.difference for each in expected.comparisons[0]] == [0] * 8
    assert expected.reports[0].scores == expected.reports[2].scores
    # the correct tags beside the predicted ones; in the column of the correct tags, in a file of the same form
    beside = evaluate_labels(hypothesis=both, quiet=True).reports[0]
    assert beside.scores == expected.reports[0].scores
    wide = write(tmp_path / "wide.txt", gold, other)
    assert (
        evaluate_labels(test=wide, settings={"tag": 2}, hypothesis=same, quiet=True).reports[0].scores == beside.scores
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("w B-PER\nv O\n", r"predicted.txt, line 2: the word is 'v', but 'w' in .*gold.txt, line 2"),
        ("w B-PER\n", r"predicted.txt, line 1: the sentence has 1 words, but 2 in"),
        ("w B-PER\nw O\n", r"gold.txt, line 4: .*predicted.txt has no such sentence: it has 1 sentences"),
        ("w B-PER\nw O O\n", r"predicted.txt, line 2: the number of columns is 3"),
        ("w NN\nw VB\n\nw NN\n", r"predicted.txt, line 1: 'NN', like all other predicted tags, is not a tag of"),
        ("w B-PER\nw O\n\nw PER\n", r"predicted.txt, line 4: 'PER' is not a tag of IOB2, like 1 of the 2 predicted"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    gold = write(tmp_path / "gold.txt", [["B-PER", "O"], ["O"]])
    (tmp_path / "predicted.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        evaluate_labels(test=gold, hypothesis=tmp_path / "predicted.txt", quiet=True)


def test_the_command_compares_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold, predicted = draw(1)
    paths = [str(write(tmp_path / f"{number}.txt", tags)) for number, tags in enumerate((gold, predicted, gold))]
    arguments = ["evaluate", "labels", "encoding=utf-8", "--test", paths[0], "--hypothesis", paths[1]]
    assert main([*arguments, "--hypothesis", paths[2], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["model"] for each in found["models"]] == paths[1:]
    assert found["models"][1]["scores"]["strict_f1"]["value"] == 100
    assert found["comparisons"][0]["second"] == paths[2]
    for extra, message in (
        (["--compare", "runs/x"], "--compare can only be used without --hypothesis"),
        (["--test", paths[1]], "give --test once"),
        (["--task", "ner"], "with --hypothesis, the task is one of tagging"),
    ):
        assert main([*arguments, *extra]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_there_must_be_predictions_and_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "gold.txt", [["B-PER", "O"], ["O"]])
    with pytest.raises(ConfigError, match="nothing to evaluate"):
        evaluate_labels(test=path)
    with pytest.raises(ConfigError, match="leave out the model, or --hypothesis"):
        evaluate_labels("runs/x", test=path, hypothesis=path)
    with pytest.raises(DataError, match=r"gold.txt, line 1: expected the word, the correct and the predicted tag"):
        evaluate_labels(hypothesis=path, quiet=True)
