"""Sheets for human judgement: what judges see, what their answers mean, and what is rejected."""

import csv
import json
import re
from pathlib import Path
from random import Random

import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from dragoman import evaluate_judgements, write_sheet
from dragoman.cli.main import main
from dragoman.evaluation.judgement_sheet import SheetKey
from dragoman.evaluation.judgements import Assessment, PairwiseJudgement, sign_test
from dragoman.metrics.agreement import krippendorff_alpha

SOURCES = [f"source {number}" for number in range(40)]
FIRST, SECOND = [f"first {number}" for number in range(40)], [f"second {number}" for number in range(40)]
SECOND[7] = FIRST[7]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, column: str, answers: list[str], separator: str = ",") -> Path:
    lines = [f"{number}{separator}{answer}" for number, answer in enumerate(answers, 1)]
    path.write_text("\n".join([f"id{separator}{column}", *lines]) + "\n")
    return path


def test_a_sheet_of_two_systems_is_blind_and_complete(tmp_path: Path) -> None:
    files = {}
    for name, lines in (("source", SOURCES), ("one.de", FIRST), ("two.de", SECOND)):
        files[name] = tmp_path / name
        files[name].write_text("".join(f"{line}\n" for line in lines))
    command = ["evaluate", "sheet", "--source", str(files["source"]), "--hypothesis", str(files["one.de"])]
    command += ["--hypothesis", str(files["two.de"]), "--seed", "3", "-q"]
    assert main([*command, "--out", str(tmp_path / "a.csv")]) == 0
    sheet, key = rows(tmp_path / "a.csv"), SheetKey.read(tmp_path / "a.key.json")
    assert list(sheet[0]) == ["id", "source", "A", "B", "better"]
    assert sorted(key.lines) == [number for number in range(1, 41) if number != 8]
    assert list(key.lines) != sorted(key.lines) and 5 < sum(key.swapped) < 35
    for row, line, swapped in zip(sheet, key.lines, key.swapped, strict=True):
        pair = FIRST[line - 1], SECOND[line - 1]
        assert row["source"] == SOURCES[line - 1] and (row["A"], row["B"]) == (pair[::-1] if swapped else pair)
    assert "one.de" not in (tmp_path / "a.csv").read_text()
    assert main([*command, "--out", str(tmp_path / "b.html"), "--sentences", "5"]) == 0
    page = (tmp_path / "b.html").read_text()
    assert page.count("<li") == 5 and page.count('type="radio"') == 15 and "one.de" not in page
    assert SheetKey.read(tmp_path / "b.key.json").lines == key.lines[:5]
    assert not re.search(r"\{(task|keys|count|id|items|column)\}", page)
    write_sheet(tmp_path / "c.html", {"a": ["<b>"]})
    assert '<dd dir="auto">&lt;b&gt;</dd>' in (tmp_path / "c.html").read_text()


def test_preferences_are_those_of_the_first_system_whatever_its_place(tmp_path: Path) -> None:
    key = write_sheet(tmp_path / "sheet.csv", {"first": FIRST, "second": SECOND})
    answers = ["B" if swapped else "a" for swapped in key.swapped]
    answers[:9] = [{"B": "A", "a": "b"}[answer] for answer in answers[:9]]
    answers[9:12] = ["=", "=", ""]
    anna = fill(tmp_path / "anna.csv", "better", answers, ";")
    found = evaluate_judgements([anna], tmp_path / "sheet.key.json")
    assert isinstance(found, PairwiseJudgement)
    assert found.wins == (27, 9) and found.ties == 2 and found.sentences == 38
    assert found.mean == pytest.approx(18 / 38) and found.interval.low < 18 / 38 < found.interval.high
    assert found.p_value == pytest.approx(binomtest(9, 36).pvalue)
    assert "first is better in 27 sentences, second in 9; 2 ties" in str(found) and "agreement" not in str(found)
    opposite = fill(tmp_path / "ben.csv", "better", ["" for _ in answers[:30]] + answers[30:])
    both = evaluate_judgements([anna, opposite], tmp_path / "sheet.key.json")
    assert both.agreement is None and both.sentences == 38 and "undefined" in str(both)


def test_scores_have_a_mean_an_interval_and_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sheet(tmp_path / "sheet.csv", [FIRST], source=SOURCES, reference=SECOND)
    assert list(rows(tmp_path / "sheet.csv")[0]) == ["id", "source", "reference", "translation", "score"]
    scores = [float(10 * (number % 9) + 5) for number in range(40)]
    anna = fill(tmp_path / "anna.csv", "score", [f"{score:g}" for score in scores])
    ben = fill(tmp_path / "ben.csv", "score", [f"{score + 2:g},5" for score in scores], "\t")
    found = evaluate_judgements([anna, ben], tmp_path / "sheet.key.json")
    assert isinstance(found, Assessment) and found.agreement is not None and found.agreement > 0.98
    assert found.mean == pytest.approx(sum(scores) / 40 + 1.25)
    deviation = (sum((score + 1.25 - found.mean) ** 2 for score in scores) / 40) ** 0.5 / 40**0.5
    assert (found.interval.high - found.interval.low) / 2 == pytest.approx(1.96 * deviation, rel=0.1)
    assert (
        main(["evaluate", "judgements", str(anna), str(ben), "--key", str(tmp_path / "sheet.key.json"), "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["judges"][str(ben)]["sentences"] == 40


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,score\n1,good\n", "line 2: 'good' is no score: give a number from 0 to 100"),
        ("id,score\n1,50\n2,101\n", "line 3: '101' is no score"),
        ("id,score\n1,nan\n", "line 2: 'nan' is no score"),
        ("id,score\n1,5\n1,6\n", "line 3: the id 1 occurs twice"),
        ("id,score\n41,5\n", "line 2: the id '41' is not in the key"),
        ("id,better\n1,A\n", "the column 'score' is missing: it has id, better"),
        ("", "the column 'id' is missing"),
        ("id,score\n1,\n", "nothing has been judged"),
        ('id,score\n1,"5\n', "not valid CSV"),
    ],
)
def test_faulty_sheets_are_one_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sheet(tmp_path / "sheet.csv", [FIRST])
    (tmp_path / "sheet.csv").write_text(content)
    capsys.readouterr()
    assert main(["evaluate", "judgements", str(tmp_path / "sheet.csv")]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ") and message in error


def test_faulty_uses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a").write_text("x\n")
    sheet = ["evaluate", "sheet", "--hypothesis", str(tmp_path / "a"), "--out", str(tmp_path / "sheet.csv"), "-q"]
    assert main(sheet) == 0 and main(sheet) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*sheet[:-2], str(tmp_path / "sheet.txt")]) == 2
    assert "a .csv or an .html file" in capsys.readouterr().err
    assert main([*sheet[:-2], str(tmp_path / "b.csv"), "--hypothesis", str(tmp_path / "a")]) == 1
    assert "are equal, so there is nothing to judge" in capsys.readouterr().err
    assert main(["evaluate", "judgements", str(tmp_path / "a")]) == 1
    assert "a.key.json does not exist" in capsys.readouterr().err


def test_alpha_is_that_of_the_literature_and_of_scikit_learn() -> None:
    nan = float("nan")
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
        [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
    ]  # Krippendorff 2011, section C
    units = [[value for value in unit if value == value] for unit in zip(*observers, strict=True)]
    assert krippendorff_alpha(units, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units, "interval") == pytest.approx(0.849, abs=5e-4)
    draw = Random(1)
    one = [draw.randrange(5) for _ in range(60)]
    other = [value if draw.random() < 0.6 else draw.randrange(5) for value in one]
    size = 2 * len(one)
    for scale, weights in (("nominal", None), ("interval", "quadratic")):
        pooled = float(cohen_kappa_score(one + other, other + one, weights=weights))  # Scott's pi
        found = krippendorff_alpha(list(zip(one, other, strict=True)), scale)  # type: ignore[arg-type]
        assert found == pytest.approx(1 - (1 - pooled) * (size - 1) / size)
    assert krippendorff_alpha([[1], [2]], "interval") is krippendorff_alpha([[1, 1]], "nominal") is None


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 3), (10, 2), (61, 39), (300, 200)])
def test_sign_test_is_that_of_scipy(wins: int, losses: int) -> None:
    expected = binomtest(wins, wins + losses).pvalue if wins else 1.0
    assert sign_test(wins, losses) == pytest.approx(expected)
