"""`dragoman evaluate` of a model folder says whether the model is good, and shows lines."""

import json
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import SOURCES, TARGETS, write_tiny_model

import dragoman
from dragoman.cli.main import main
from dragoman.evaluation.examples import ExampleLines
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.chrf import ChrF


@given(st.lists(st.tuples(st.text("ab c", max_size=9), st.text("ab c", max_size=9)), min_size=1, max_size=12))
@settings(max_examples=60)
def test_examples_are_the_worst_lines_and_lines_of_median_quality(lines: list[tuple[str, str]]) -> None:
    translations, references = [pair[0] for pair in lines], [pair[1] for pair in lines]
    found = ExampleLines.of(translations, TestSet(["reference"], [references], translations), 3)
    scores = ChrF().sentence_scores(translations, references)
    kept = sorted(score for score, reference in zip(scores, references, strict=True) if reference.strip())
    assert [each.score for each in found.worst] == kept[: len(found.worst)]
    rows = [each.line for each in (*found.worst, *found.typical)]
    assert len(set(rows)) == len(rows) and len(found.worst) == len(found.typical) == min(3, len(kept) // 2)
    assert all(each.score >= found.worst[-1].score for each in found.typical)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdict")
    write_tiny_model(folder / "model")
    config = (folder / "model" / "config.yaml").read_text()
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)) * 4)
    (folder / "model" / "config.yaml").write_text(f"{config}\ndata: {{train: {{pairs: {folder}/pairs.tsv}}}}\n")
    return folder


def test_random_model_is_called_unusable(folder: Path) -> None:
    found = dragoman.evaluate(folder / "model", source=SOURCES * 4, reference=TARGETS * 4, metric=["chrf"])
    assert found.verdict is not None and found.verdict.is_poor and found.examples is not None
    assert found.verdict.sentence.startswith("Not usable: it is worse than")
    assert found.verdict.source is not None and found.verdict.source.unseen == 0
    assert len(found.verdict.others) == 2 and found.verdict.pairs == 12
    assert len(found.examples.worst) == 3
    text = str(found)
    assert "Is this good?" in text and "word-by-word dictionary" in text and "Typical lines, by chrF" in text


def test_verdict_and_examples_can_be_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in (("source", SOURCES), ("reference", TARGETS)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines * 4))
    command = ["evaluate", str(folder / "model"), "--source", str(folder / "source")]
    command += ["--reference", str(folder / "reference"), "--metric", "chrf", "--json", "--beam", "1"]
    assert main(command) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["verdict"]["is_poor"] and len(values["examples"]["typical"]) == 3
    assert main([*command, "--no-verdict"]) == 0
    assert not {"verdict", "examples"} & json.loads(capsys.readouterr().out).keys()
    assert main([*command[:-3], "--no-verdict", "--examples", "1"]) == 0
    assert capsys.readouterr().out.count("Worst lines") == 1


def test_examples_of_files_need_no_model() -> None:
    found = dragoman.evaluate(reference=TARGETS, hypothesis=SOURCES, metric=["chrf"], examples=1)
    assert found.verdict is None and found.examples is not None and found.examples.worst[0].source is None


def test_scores_without_a_verdict_have_the_intervals_of_sacrebleu() -> None:
    lines, references = [*SOURCES, *TARGETS] * 4, [*TARGETS, *TARGETS] * 4
    found = dragoman.evaluate(reference=references, hypothesis=lines, metric=["bleu", "chrf", "ter"])
    for key, metric in (("bleu", sacrebleu.BLEU()), ("chrf", sacrebleu.CHRF()), ("ter", sacrebleu.TER())):
        expected: Any = metric.corpus_score(lines, [references], n_bootstrap=1000)
        interval = found[key].interval
        assert interval is not None and (interval.high - interval.low) / 2 == pytest.approx(expected._ci, abs=1e-3)
    assert "BLEU = " in str(found) and "(95% of resampled test sets: " in str(found)
    few = dragoman.evaluate(reference=references[:9], hypothesis=lines[:9], metric=["bleu"])
    assert few["bleu"].interval is None
