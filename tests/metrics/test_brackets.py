"""Bracket scores as EVALB counts them, compared with EVALB's own sample files."""

import os
from pathlib import Path

import pytest

from dragoman.evaluation.label_files.trees import read_rules, read_tree_pairs
from dragoman.metrics.labels.brackets import COLLINS, BracketCounts, count_brackets
from dragoman.metrics.labels.parsing import parsing_report
from dragoman.text.trees.brackets import parse_tree

DATA = os.environ.get("DRAGOMAN_DATA")
needs_evalb = pytest.mark.skipif(not DATA, reason="needs EVALB's sample files in DRAGOMAN_DATA/evalb")


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def table(counts: list[BracketCounts]) -> list[str]:
    """Return the lines of EVALB's table, without its heading."""
    lines = []
    for number, each in enumerate(counts, 1):
        status = {"valid": 0, "error": 1, "skipped": 2}[each.status]
        lines.append(
            f"{number:4}  {each.length:3}    {status}  {percent(each.matched, each.gold):6.2f} "
            f"{percent(each.matched, each.predicted):6.2f}   {each.matched:3}    {each.gold:3}  {each.predicted:3}    "
            f"{each.crossing:3}   {each.words:4}  {each.tags:4}   {percent(each.tags, each.words):6.2f}"
        )
    return lines


def summary(counts: list[BracketCounts], with_f1: bool) -> list[str]:
    valid = [each for each in counts if each.status == "valid"]
    sums = {name: sum(getattr(each, name) for each in valid) for name in ("gold", "predicted", "matched", "tags")}
    words, crossing = sum(each.words for each in valid), [each.crossing for each in valid]
    recall, precision = percent(sums["matched"], sums["gold"]), percent(sums["matched"], sums["predicted"])
    rows: list[tuple[str, int | float]] = [
        ("Number of sentence", len(counts)),
        ("Number of Error sentence", sum(each.status == "error" for each in counts)),
        ("Number of Skip  sentence", sum(each.status == "skipped" for each in counts)),
        ("Number of Valid sentence", len(valid)),
        ("Bracketing Recall", recall),
        ("Bracketing Precision", precision),
        *([("Bracketing FMeasure", 2 * recall * precision / (recall + precision))] if with_f1 else []),
        ("Complete match", percent(sum(each.complete for each in valid), len(valid))),
        ("Average crossing", sum(crossing) / len(valid)),
        ("No crossing", percent(sum(each == 0 for each in crossing), len(valid))),
        ("2 or less crossing", percent(sum(each <= 2 for each in crossing), len(valid))),
        ("Tagging accuracy", percent(sums["tags"], words)),
    ]
    return [
        f"{name:25} = {value:6d}" if isinstance(value, int) else f"{name:25} = {value:6.2f}" for name, value in rows
    ]


@needs_evalb
@pytest.mark.parametrize(("name", "with_f1"), [("sample", False), ("bug", True)])
def test_evalbs_own_results_are_reproduced_line_by_line(name: str, with_f1: bool) -> None:
    folder = Path(str(DATA)) / "evalb"
    result = folder / f"{name}.rsl{'-new' if with_f1 else ''}"
    if name == "sample":
        rules = read_rules(folder / "sample.prm")
    else:  # the parameter file of these results is not part of the samples
        quotes = frozenset({"``", "''", "POS", "NN", "CD", "VBZ", ":"})
        rules = COLLINS._replace(deleted=COLLINS.deleted | {"S1", "?", "!"}, quotes=quotes)
    trees = read_tree_pairs(folder / f"{name}.gld", folder / f"{name}.tst", is_raw=True)
    counts = [count_brackets(*pair, rules) for pair in zip(*trees, strict=True)]
    expected = result.read_text().splitlines()
    body = [line.split() for line in expected[3 : 3 + len(counts)]]
    assert [line.split() for line in table(counts)] == body
    start = expected.index("-- All --") + 1
    assert summary(counts, with_f1) == expected[start : start + 11 + with_f1]
    short = [each for each in counts if each.length <= 40]
    start = expected.index("-- len<=40 --") + 1
    assert summary(short, with_f1) == expected[start : start + 11 + with_f1]


def test_a_report_has_the_measures_of_evalb_with_intervals_and_a_baseline() -> None:
    gold = [parse_tree("(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))) (. .))")] * 20
    near = parse_tree("(S (NP (DT a) (NN b)) (VP (VB c) (NN d)) (. .))")
    report = parsing_report(gold, [near] * 10 + gold[10:])
    assert report["bracket_precision"].value == 100
    assert report["bracket_recall"].value == pytest.approx(100 * 70 / 80)
    assert report["bracket_f1"].value == pytest.approx(200 * 70 / 150)
    assert report["complete_match"].value == 50
    interval = report["bracket_f1"].interval
    assert interval is not None and interval.low < 93 < interval.high
    assert report.baseline is not None
    # (S a (VP b (VP c d))) has S and VP in common with the correct tree
    assert report.baseline.values["bracket_precision"] == pytest.approx(100 * 2 / 3)
    assert not report.warnings


def test_a_report_counts_sentences_that_cannot_be_scored_and_repairs() -> None:
    gold = [parse_tree("(S (NN a) (. .))"), parse_tree("(S (NN a) (NN b))")]
    predicted = [parse_tree("(S (NN a) (NN .))"), gold[1]]
    report = parsing_report(gold, predicted, repairs=[0, 3], samples=0)
    assert report["bracket_f1"].value == 100
    assert report.warnings["errors"].startswith("1 of 2 sentences are left out of all metrics")
    assert "3 symbols" in report.warnings["repairs"]


def test_a_report_without_comparable_sentences_is_undefined() -> None:
    report = parsing_report([parse_tree("(S (NN a))")], [parse_tree("(S (NN b))")], samples=0)
    assert not report["bracket_f1"].is_defined
    assert "no sentence can be compared" in report.text()
