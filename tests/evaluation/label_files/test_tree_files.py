"""`evaluate labels --hypothesis` of trees: the scores of EVALB, forms of files, and errors with file and line."""

import json
import os
from pathlib import Path

import pytest

from dragoman import evaluate_labels
from dragoman.base.errors import ConfigError, DataError
from dragoman.evaluation.label_files.trees import read_rules
from dragoman.metrics.labels.brackets import COLLINS
from dragoman.metrics.labels.report import Report

DATA = os.environ.get("DRAGOMAN_DATA")
needs_evalb = pytest.mark.skipif(not DATA, reason="needs EVALB's sample files in DRAGOMAN_DATA/evalb")

GOLD = "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBD saw) (NP (NN fire))) (. .)))"
FLAT = "(S (NP (DT The) (NN dog)) (VP (VBD saw) (NN fire)) (. .))"


def write(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def report(test: Path, hypothesis: Path, prm: Path | None = None) -> Report:
    return evaluate_labels(test=test, hypothesis=hypothesis, prm=prm, quiet=True).reports[0]


@needs_evalb
def test_the_summary_of_evalb_is_reproduced() -> None:
    folder = Path(str(DATA)) / "evalb"
    found = report(folder / "sample.gld", folder / "sample.tst", folder / "sample.prm")
    lines = (folder / "sample.rsl").read_text().split("-- All --")[1].splitlines()
    expected = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines[:12])}
    for name, key in (
        ("Bracketing Recall", "bracket_recall"),
        ("Bracketing Precision", "bracket_precision"),
        ("Complete match", "complete_match"),
        ("Average crossing", "crossing"),
        ("No crossing", "no_crossing"),
        ("Tagging accuracy", "tagging_accuracy"),
    ):
        assert f"{found[key].value:.2f}" == expected[name], name
    assert found["bracket_f1"].signature == "F1|EVALB|sample.prm"
    assert found.warnings["errors"].startswith("7 of 24 sentences are left out")


@needs_evalb
def test_the_default_rules_are_those_of_collins_prm() -> None:
    assert read_rules(Path(str(DATA)) / "evalb" / "COLLINS.prm") == COLLINS


def test_forms_of_files_have_the_same_scores(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.mrg", GOLD, GOLD, GOLD)
    expected = report(gold, write(tmp_path / "a.txt", FLAT, GOLD, ""))
    assert expected["bracket_recall"].value == pytest.approx(100 * 7 / 8)
    assert "1 of 3 sentences are left out" in expected.warnings["errors"]
    several = [line.replace(" (VP", "\n  (VP") for line in (GOLD, GOLD, GOLD)]
    for name, rows in (
        ("empty.txt", [FLAT, GOLD, "(())"]),
        ("blank.txt", [FLAT, GOLD, "", "", ""]),
        ("trees.jsonl", [json.dumps({"tree": tree}) for tree in (FLAT, GOLD, "")]),
    ):
        assert report(gold, write(tmp_path / name, *rows)).scores == expected.scores, name
        over_lines = write(tmp_path / "several.mrg", "", *several)
        assert report(over_lines, write(tmp_path / name, *rows)).scores == expected.scores, name
    assert report(gold, write(tmp_path / "several.txt", *several))["bracket_f1"].value == 100


def test_a_parameter_file_holds_for_the_trees_as_they_are(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.mrg", GOLD)
    prm = write(tmp_path / "own.prm", "# rules", "LABELED 1", "DELETE_LABEL .", "EQ_LABEL NP S")
    found = report(gold, write(tmp_path / "a.txt", FLAT), prm)
    assert found["bracket_recall"].value == pytest.approx(100 * 3 / 5)  # TOP counts
    for line in ("LABELED 0", "DELETE_LABEL", "REMOVE_LABEL X"):
        with pytest.raises(DataError, match=rf"own.prm, line 1: '{line}' is not a parameter of EVALB"):
            report(gold, gold, write(prm, line))
    with pytest.raises(ConfigError, match="--prm can only be used with trees"):
        evaluate_labels(test=write(tmp_path / "x.txt", "x"), hypothesis=prm, prm=prm)
    with pytest.raises(ConfigError, match="--prm can only be used with --hypothesis"):
        evaluate_labels("runs/parser", gold, prm=prm)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([FLAT, FLAT[:-1]], r"a.txt, line 2: 1 brackets are not closed. Correct the tree, or leave the line blank"),
        ([f"{FLAT})", FLAT], r"a.txt, line 1: '\)' is outside of all brackets"),
        ([FLAT], r"gold.mrg, line 2: .*a.txt has no such tree: the numbers of trees are 2 in .* and 1 in"),
        ([FLAT, FLAT, FLAT], r"a.txt, line 3: .*gold.mrg has no such tree"),
        (["NP VP", FLAT], r"a.txt, line 1: 'NP' is outside of all brackets"),
        ([], r"a.txt has no trees"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        report(write(tmp_path / "gold.mrg", GOLD, GOLD), write(tmp_path / "a.txt", *lines))
