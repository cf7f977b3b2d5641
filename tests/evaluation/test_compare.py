"""`dragoman compare`: models that differ in the seed are one system, and systems are compared over seeds."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from cards import rows
from tiny_model import SOURCES, TARGETS, write_tiny_model

import dragoman
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main
from dragoman.evaluation.compare import tabulate
from dragoman.evaluation.system_table import SystemTable
from dragoman.evaluation.systems import System, find_systems
from dragoman.evaluation.test_set import TestSet
from dragoman.metrics.registry import metric_of

REFERENCES = [f"sentence {number} of the test set is here" for number in range(40)]


def with_settings(folder: Path, seed: int, rate: float, steps: int) -> Path:
    """Add settings and a log of a training to a model folder."""
    text = (folder / "config.yaml").read_text()
    train = f"train: {{seed: {seed}, learning_rate: {rate}}}\nout: {folder}\n"
    (folder / "config.yaml").write_text(text + train)
    records = [{"step": step, "valid_bleu": 10 * rate * step + seed, "valid_loss": 1} for step in range(1, steps + 1)]
    (folder / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems, of two seeds and of one seed."""
    runs = tmp_path_factory.mktemp("runs")
    write_tiny_model(runs / "model")
    for name, seed, rate, steps in (("slow/seed-1", 1, 0.1, 3), ("slow/seed-2", 2, 0.1, 2), ("fast", 1, 0.2, 3)):
        with_settings(Path(shutil.copytree(runs / "model", runs / name)), seed, rate, steps)
    return runs


def test_models_that_differ_in_the_seed_are_one_system(runs: Path) -> None:
    seeds = (runs / "slow/seed-1", runs / "slow/seed-2")
    expected = [System(str(runs / "slow"), seeds), System(str(runs / "fast"), (runs / "fast",))]
    assert find_systems([*seeds, runs / "fast"]) == expected
    assert find_systems([runs / "slow", runs / "fast"]) == expected
    (runs / "slow" / "seeds.json").write_text('{"seeds": [1, 2]}')
    assert find_systems([runs / "slow", runs / "fast"]) == expected
    assert [len(each.folders) for each in find_systems([runs / "fast", seeds[1]])] == [1, 1]


def test_unusable_folders_are_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is given twice"):
        find_systems([runs / "slow", runs / "slow/seed-2"])
    with pytest.raises(ConfigError, match="is not a model folder and contains none"):
        find_systems([tmp_path])


def test_equal_seeds_are_reported(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(runs / "fast", tmp_path / "copy"))
    assert len(find_systems([runs / "fast", copy])) == 1
    assert "not even different seeds" in capsys.readouterr().err


def garbled(every: int, word: str) -> list[str]:
    return [line.replace("sentence", word) if row % every == 0 else line for row, line in enumerate(REFERENCES)]


@pytest.fixture(scope="module")
def table() -> SystemTable:
    """A system of two seeds, one that is much better, and one seed of another."""
    translated = [[garbled(2, "x"), garbled(2, "yy")], [garbled(9, "x"), garbled(9, "yy")], [REFERENCES]]
    systems = [System(name, ()) for name in ("base_1", "good | better", "single")]
    metrics = {key: metric_of(key).with_tokenizer("13a") for key in ("bleu", "chrf")}
    return tabulate(systems, translated, TestSet(["test.de"], [REFERENCES], REFERENCES), metrics)


def test_means_and_deviations_are_those_of_sacrebleu(table: SystemTable) -> None:
    from statistics import fmean, stdev

    import sacrebleu

    scores = [sacrebleu.corpus_chrf(garbled(2, word), [REFERENCES]).score for word in ("x", "yy")]
    assert table.rows[0].mean("chrf") == pytest.approx(fmean(scores))
    assert table.rows[0].deviation("chrf") == pytest.approx(stdev(scores))
    assert table.rows[2].deviation("chrf") is None


def test_only_systems_of_several_seeds_differ_significantly(table: SystemTable) -> None:
    assert table.rows[1].comparisons["bleu"].is_significant
    single = table.rows[2].comparisons["bleu"]
    assert single.p_value < 0.05 and not single.is_significant
    text = str(table)
    assert "for these models only" in text and "One seed of single" in text
    lines = text.splitlines()
    assert lines[0].split() == ["system", "seeds", "BLEU", "chrF2"]
    assert "†" in lines[2] and "†" not in lines[1] + lines[3]


def test_tables_for_papers(table: SystemTable) -> None:
    markdown = table.format("markdown").splitlines()
    assert markdown[1] == "| --- | ---: | ---: | ---: |" and markdown[3].startswith(r"| good \| better | 2 | ")
    assert "| **100.00** | **100.00** |" in markdown[4]
    latex = table.format("latex")
    assert all(each in latex for each in (r"base\_1 & 2 & ", r"$\pm$", r"\textbf{100.00} \\", r"$^\dagger$"))
    read = list(csv.DictReader(io.StringIO(table.format("csv"))))
    assert [(row["system"], row["seed"]) for row in read[:4]] == [("base_1", "1"), ("base_1", "2")] * 2
    assert float(read[0]["value"]) == table.rows[0].scores["bleu"][0].value
    values = json.loads(table.format("json"))["systems"]
    assert values[1]["against_first"]["bleu"]["significant"] and values[0]["scores"]["chrf"]["sd"] > 0
    assert rows(table) == [re.split(" {2,}", line) for line in table.format("text").splitlines()[:4]]
    with pytest.raises(ConfigError, match="unknown format 'xls': expected one of text, markdown"):
        table.format("xls")  # type: ignore[arg-type]


def test_the_command(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in (("test.en", SOURCES), ("test.de", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines * 4))
    command = ["compare", str(runs / "slow"), str(runs / "fast"), "--beam", "1", "--metric", "chrf"]
    texts = ["--source", str(tmp_path / "test.en"), "--reference", str(tmp_path / "test.de")]
    assert main([*command, *texts, "--draw", str(tmp_path / "curves.csv"), "search.minimum_length=3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["system", "seeds", "chrF2"]
    assert out[1].split()[:2] == [str(runs / "slow"), "2"] and out[2].split()[:2] == [str(runs / "fast"), "1"]
    one = dragoman.evaluate(
        runs / "fast",
        source=SOURCES * 4,
        reference=TARGETS * 4,
        metric=["chrf"],
        beam=1,
        search=["search.minimum_length=3"],
    )
    assert out[2].split()[2] == f"{one['chrf'].value:.2f}"
    curves = list(csv.DictReader((tmp_path / "curves.csv").open()))
    slow = {row["curve"].removeprefix(f"{runs}/"): [] for row in curves}
    for row in curves:
        slow[row["curve"].removeprefix(f"{runs}/")].append((float(row["step"]), float(row["value"])))
    assert slow["slow"] == [(1, 2.5), (2, 3.5)]  # the second seed has two validations
    assert slow["slow, lowest"] == [(1, 2), (2, 3)] and slow["slow, highest"] == [(1, 3), (2, 4)]
    assert slow["fast"] == [(1, 3), (2, 5), (3, 7)]


def test_models_without_a_common_test_set_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(runs / "slow"), str(runs / "fast")]) == 2
    assert "has no test set of its own: give the texts to compare the models with" in capsys.readouterr().err
    assert main(["compare", str(runs / "slow"), "--source", "test.en"]) == 2
    assert "a test set has two sides" in capsys.readouterr().err
