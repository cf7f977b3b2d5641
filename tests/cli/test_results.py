"""In a terminal, results have colours and lines that fit; anywhere else, their text is that of `print`."""

import ast
import io
import random
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT
from rich.cells import cell_len

import dragoman
from dragoman.base.line_breaks import fit
from dragoman.base.marks import Level, Mark
from dragoman.base.table import TEXT_WIDTH, Table
from dragoman.checkpoint.precision_cost import PrecisionCost
from dragoman.checkpoint.verdict import COPYING, DICTIONARY, ScoreRange, SystemRanges, Verdict
from dragoman.cli.results import print_results
from dragoman.data.cleaning.report import CleaningReport
from dragoman.evaluation.evaluate_labels import LabelEvaluation
from dragoman.evaluation.judgements import PairwiseJudgement
from dragoman.evaluation.minimal_pairs import PairAccuracy
from dragoman.evaluation.score import Scores
from dragoman.evaluation.system_table import SystemRow, SystemTable
from dragoman.metrics.labels.parsing import parsing_report
from dragoman.metrics.labels.report import compare
from dragoman.metrics.labels.scoring import answer_report, classification_report, regression_report, tagging_report
from dragoman.metrics.score import Interval, Score
from dragoman.metrics.seed_comparison import SeedComparison
from dragoman.metrics.text_score import TextScore
from dragoman.text.trees.brackets import parse_tree

FONT = re.compile(r"\x1b\[[0-9;]*m")
LABELS = ["ABBR:expansion", "DESC:definition", "ENTY:animal", "HUM:individual", "LOC:city", "NUM:count", "NUM:date"]


def print_in_terminal(columns: int, monkeypatch: pytest.MonkeyPatch, *results: object, **options: Any) -> str:
    """Return what is written to a terminal of this width."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    print_results(*results, **options)
    return stream.getvalue()


def verdict() -> Verdict:
    def ranges(system: str) -> SystemRanges:
        scores = [
            ScoreRange(metric=each, value=12.3, low=10.2, high=14.5, signature="s") for each in ("BLEU", "chrF2", "TER")
        ]
        return SystemRanges(system=system, scores=tuple(scores), better=("BLEU", "chrF2"))

    return Verdict(
        data="test",
        sentences=1000,
        pairs=4000,
        model=ranges("runs/a-model-with-a-long-name (phrase-based model)"),
        others=(ranges(COPYING), ranges(DICTIONARY)),
        advice=("translate text in the target language back, as further training pairs: dragoman backtranslate",),
    )


def translations() -> object:
    lines = [f"The dog sees {each} cats in the garden of the neighbours ." for each in range(60)]
    other = [line.replace("dog", "cat").replace("garden", "house") for line in lines]
    systems = {"a/long/path/of/a/system/test.de": other, "another/system.de": lines}
    return dragoman.evaluate(source=lines, reference=lines, hypothesis=systems, tokenized="de", quiet=True)


def label_evaluation() -> object:
    draw = random.Random(1)
    gold, *predicted = ([draw.choice(LABELS) for _ in range(90)] for _ in range(3))
    reports = tuple(classification_report(gold, each) for each in predicted)
    return LabelEvaluation(("runs/first", "runs/second"), reports, (tuple(compare(*reports)),))


def seeds() -> object:
    reports = tuple(classification_report(["yes", "no"] * 20, [*["yes", "no"] * last, *["no"] * 20]) for last in (10,))
    return LabelEvaluation(("runs/seed-1", "runs/seed-2"), reports * 2, (), "runs")


def many_classes() -> object:
    names = [f"class-{number}" for number in range(40)]
    return classification_report(names, names[::-1]).text()


def trees() -> object:
    gold = [parse_tree("(S (NP (DT a) (NN b)) (VP (VB c) (NP (NN d))) (. .))")] * 20
    predicted = [parse_tree("(S (NN x) (VP (VB c)))"), *gold[1:]]
    return parsing_report(gold, predicted, repairs=[3, *[0] * 19]).text()


def systems() -> object:
    score = Score("sacreBLEU of detokenised text", 12.3, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|v:2", "bleu")
    others = {f"{score.key}{number}": [replace(score, key=f"{score.key}{number}")] * 2 for number in range(5)}
    gain = SeedComparison(1.5, Interval(1.5, 0.5, 2.5), 0.001, (2, 2), 3.0)
    rows = [SystemRow("baseline", others, {}), SystemRow("longer-trained", others, dict.fromkeys(others, gain))]
    return SystemTable(rows, "test", 1000)


def cleaning() -> object:
    rows = np.arange(1, 200, 3)
    details = {"empty": "A side of the pair is empty. " * 5}
    return CleaningReport(1000, {"empty": rows, "duplicate": rows}, details=details).table()


def precision_cost() -> object:
    texts = dict.fromkeys(("model", "data", "data_fingerprint", "bleu_signature", "chrf_signature"), "a-long-name")
    float32 = {"bleu": 1.0, "chrf": 2.0}
    int8 = {**float32, "bits": 7, "differing_lines": 3, "speed": 2.0}
    return PrecisionCost.model_validate(
        {**texts, "sentences": 1000, "set_size": 1000, "beam": 4, "float32": float32, "int8": [int8]}
    )


def judgements() -> object:
    names, interval = ("a/long/path/to/first.de", "second.de"), Interval(0.1, 0, 0.2)
    return PairwiseJudgement(names, {"anna": (90, 0.1)}, 90, 0.1, interval, 0.7, (50, 20), 20, 0.001)


def text_score() -> TextScore:
    return TextScore(-30.0, 12, 10, 50, 2, -5.0)


WRITERS: dict[str, Callable[[], object]] = {
    "verdict": verdict,
    "translations": translations,
    "labels": label_evaluation,
    "seeds": seeds,
    "many classes": many_classes,
    "regression": lambda: regression_report([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 3.0]).text(),
    "tags": lambda: tagging_report([["B-PER", "O", "B-LOC"]] * 9, [["B-PER", "O", "O"]] * 9).text(),
    "answers": lambda: answer_report([["a"], ["b"], []] * 5, ["a", "", "c"] * 5, no_answer_scores=[0.1] * 15).text(),
    "trees": trees,
    "alignments": lambda: dragoman.evaluate_alignments(
        ["0-0 1-1 1?2"] * 20, {"aligner": ["0-0 1-2"] * 20, "other": ["0-0 1-1"] * 20}, quiet=True
    ),
    "minimal pairs": lambda: PairAccuracy("runs/lm", {"a_paradigm": 50.0, "b": 25.0}, {"a_paradigm": 4, "b": 4}),
    "judgements": judgements,
    "perplexity": lambda: Scores((text_score(),), text_score(), "documents"),
    "systems": systems,
    "cleaning": cleaning,
    "precision cost": precision_cost,
}


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("name", WRITERS)
def test_every_report_fits_a_terminal_and_loses_nothing(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = WRITERS[name]()
    shown = FONT.sub("", print_in_terminal(columns, monkeypatch, result))
    assert [line for line in shown.splitlines() if cell_len(line) > columns] == []
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", str(result))
    words = re.compile(r"[^\s|/;]+")  # long paths and signatures may be broken after these
    assert words.findall(shown) == words.findall(str(result))


TABLES = re.compile(r"^\S.*\S {2,}\S", re.MULTILINE)


@pytest.mark.parametrize("name", WRITERS)
def test_no_row_of_a_table_is_wider_than_80_columns(name: str) -> None:
    lines = str(WRITERS[name]()).splitlines()
    assert [line for line in lines if TABLES.search(line) and cell_len(line) > TEXT_WIDTH] == []


@given(st.text("ab |/ \n", max_size=300), st.integers(4, 90))
def test_fitted_lines_lose_nothing_and_fit(text: str, width: int) -> None:
    fitted = fit(text, width)
    assert fitted.replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")
    assert all(cell_len(line) <= width for line in fitted.split("\n"))


def test_lines_continue_below_their_column() -> None:
    row = "    duplicates                    12   lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17"
    assert fit(row, 80).split("\n")[1] == " " * row.index("lines") + "12, 13, 14, 15, 16, 17"
    assert fit("source  " + "word " * 20, 60).split("\n")[1].startswith("        word")
    assert fit("token  word +0.1  another +0.2", 24) == "token  word +0.1\n       another +0.2"
    assert fit("  a" + " b" * 40, 60).split("\n")[1].startswith("    b")
    assert fit("wide 語語語語語", 10) == "wide\n  語語語語\n  語"


def test_a_wide_table_is_divided_into_parts_with_the_first_column() -> None:
    table = Table([["name", *(f"column {each}" for each in range(12))], ["row", *map(str, range(12))]], right=1)
    first, second = table.text().split("\n\n")
    assert first.splitlines()[0].split()[-1] == "6" and second.splitlines()[0].startswith("name  column 7")
    assert second.splitlines()[1].split() == ["row", "7", "8", "9", "10", "11"]


COLOURS: list[tuple[Level, str]] = [("good", "32"), ("warning", "33"), ("bad", "31")]


@pytest.mark.parametrize(("level", "colour"), COLOURS)
def test_marks_are_coloured_in_a_terminal_only(level: Level, colour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Result:
        def __str__(self) -> str:
            return "table [a]\nIt is so.\nwarning: more"

        def marks(self) -> list[Mark]:
            return [Mark(level, "so", "It is so.")]

    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = print_in_terminal(80, monkeypatch, Result())
    assert shown == f"table [a]\nIt is \x1b[1;{colour}mso\x1b[0m.\n\x1b[1;33mwarning:\x1b[0m more\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert print_in_terminal(80, monkeypatch, Result()) == f"{Result()}\n"
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.delenv("NO_COLOR")
    print_results(Result())
    assert pipe.getvalue() == f"{Result()}\n"


@pytest.mark.parametrize("name", ["translations", "labels", "alignments", "judgements", "systems", "verdict"])
def test_good_and_bad_differences_are_coloured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = print_in_terminal(200, monkeypatch, WRITERS[name]())
    coloured = re.findall(r"\x1b\[1;(3\d)m([^\x1b]*)", shown)
    text = str(WRITERS[name]())
    assert coloured and all(part in text for _, part in coloured)
    if name == "translations":  # TER is better the lower it is
        assert {colour for colour, _ in coloured} == {"32"} and len(coloured) == len(re.findall("significant", text))


PRINTS_DATA = {
    "generate": "texts",
    "score": "a number per line",
    "translate": "texts",
    "settings": "pages of its own width",
    "recipes": "YAML",
    "backtranslate": "YAML",
    "describe": "a text of the terminal's width",
    "data_get": "commands to copy",
    "compare": "Markdown, LaTeX, CSV and JSON",
}


def test_commands_print_reports_by_print_results() -> None:
    for path in (ROOT / "src/dragoman/cli/commands").rglob("*.py"):
        if path.stem in PRINTS_DATA and path.parent.name == "commands":
            continue
        calls = [each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.Call)]
        printed = [ast.unparse(each) for each in calls if isinstance(each.func, ast.Name) and each.func.id == "print"]
        assert all("json.dumps" in each for each in printed), f"{path}: {printed}"
