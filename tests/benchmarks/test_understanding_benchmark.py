"""benchmarks/understanding: rows and recipes, the texts that are derived from data sets, and the table of results."""

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmark_modules import BENCHMARKS, benchmark_modules

from dragoman.tasks.train import load_recipe

FOLDER = BENCHMARKS / "understanding"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[SimpleNamespace]:
    with benchmark_modules(["understanding"], ["parts", "results", "rows", "training"]) as modules:
        yield modules


def test_every_recipe_is_valid_and_has_a_row(
    benchmark: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    monkeypatch.setenv("UNDERSTANDING", str(tmp_path))
    used = {row.recipe or row.name for row in benchmark.rows.ROWS if row.recipe is not None}
    assert {path.stem for path in (FOLDER / "recipes").glob("*.yaml")} == used
    for row in benchmark.rows.ROWS:
        if row.recipe is not None:
            recipe = FOLDER / "recipes" / f"{row.recipe or row.name}.yaml"
            assert load_recipe(recipe, [*row.overrides, f"out={tmp_path}"]).train.limited


def test_a_row_comes_after_those_that_it_starts_from(benchmark: SimpleNamespace) -> None:
    names = [row.name for row in benchmark.rows.ROWS]
    assert len(set(names)) == len(names)
    for number, row in enumerate(benchmark.rows.ROWS):
        assert set(row.after) <= set(names[:number])


def write_data(data: Path) -> None:
    """The smallest data sets that `write_parts` reads."""
    texts: dict[str, str] = {
        "wikitext-2/wiki.train.tokens.gz": "\n = Title = \n\n A b @-@ c . An <unk> d . E f . G h .\n",
        "tatoeba/train.en-de.tsv.gz": "Hi.\tHallo!\nHi.\tGrüß Gott!\nGo.\tGeh.\n",
        "sick/train.tsv.gz": "pair_ID\tsentence_A\tsentence_B\n1\tA dog\tA cat\n",
        "stsb/train.csv.gz": '"One, two",Three,5.0\n',
        "trec/train.txt.gz": "".join(f"LOC:city Where is {number} ?\n" for number in range(13)),
        "wnut17/train.conll.gz": "@a\tO\nsays\tO\n\nb\tO\n",
        "qamr/train.json.gz": json.dumps(
            {"data": [{"paragraphs": [{"context": "C .", "qas": [{"question": "Q ?"}]}]}]}
        ),
        **{f"sst2/{part}.tsv.gz": f"it does n't {part}\t0\n" for part in ("train", "dev", "test")},
    }
    for name, text in texts.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(gzip.compress(text.encode()))
    (data / "conll2000").mkdir()
    with zipfile.ZipFile(data / "conll2000" / "conll2000.zip", "w") as archive:
        for part in ("train", "test"):
            archive.writestr(f"conll2000/{part}.txt", "".join(f"{part}{n} NN B-NP\n. . O\n\n" for n in range(13)))


def test_texts_are_derived_without_dev_and_test_sets(benchmark: SimpleNamespace, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    write_data(data)
    benchmark.parts.write_parts(data, out)
    read = {path.name: path.read_text("utf-8") for path in out.iterdir()}
    assert read["wikitext.txt"] == "A b-c .\nE f . G h .\n"
    assert read["tatoeba.txt"] == "Hi.\nGo.\n"
    assert read["sst2-test.tsv"] == "it doesn't test\t0\n"
    assert [len(read[f"trec-{part}.txt"].splitlines()) for part in ("train", "valid")] == [11, 2]
    assert read["conll2000-valid.txt"] == "train0 NN B-NP\n. . O\n\ntrain12 NN B-NP\n. . O\n\n"
    assert read["conll2000-test.txt"].count("B-NP") == 13
    tasks = read["tasks.txt"].splitlines()
    assert {"it doesn't train", "One, two", "Three", "A dog", "@a says", "b", "C .", "Q ?", "train1 ."} <= set(tasks)
    assert not any("dev" in text or "test" in text or text in ("Where is 0 ?", "train0 .") for text in tasks)


def test_parts_that_are_there_are_kept(benchmark: SimpleNamespace, tmp_path: Path) -> None:
    write_data(tmp_path / "data")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tatoeba.txt").write_text("mine\n", "utf-8")
    benchmark.parts.write_parts(tmp_path / "data", tmp_path / "out")
    assert (tmp_path / "out" / "tatoeba.txt").read_text("utf-8") == "mine\n"


def line(row: str, seed: int, value: float, **entry: Any) -> dict[str, Any]:
    return {"row": row, "seed": seed, "cpu_minutes": 2.0, "measures": {"accuracy": {"value": value, **entry}}}


def test_the_table_shows_mean_and_deviation_or_the_interval(benchmark: SimpleNamespace) -> None:
    lines = [line("trec", 1, 90.0), line("trec", 2, 92.0), line("rte", 1, 55.0, interval={"low": 51.5, "high": 58.5})]
    table = benchmark.results.table([*lines, {"row": "body", "seed": 1, "cpu_minutes": 14, "measures": {}}])
    assert "| TREC, 6 classes, accuracy | ≥ 92 | 91.00 ± 1.41 | 2 | 2.0 |" in table
    assert "| RTE-3, accuracy | reported | 55.00 (51.50–58.50) | 1 | 2.0 |" in table
    assert len(table.splitlines()) == 4


def test_only_missing_seeds_are_trained(
    benchmark: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results, trained = tmp_path / "results.jsonl", []

    def train(row: Any, seed: int, folder: Path, out: Path) -> dict[str, float]:
        trained.append((row.name, seed, folder))
        return {"cpu_minutes": 1.0, "minutes": 1.0}

    monkeypatch.setattr(benchmark.training, "train", train)
    monkeypatch.setattr(benchmark.training, "score", lambda *_: {})
    benchmark.results.add(line("trec", 2, 90.0), results)
    for _ in range(2):
        benchmark.training.complete(benchmark.rows.by_name("trec"), tmp_path, tmp_path, 3)
    assert trained == [
        ("body", 1, tmp_path / "body" / "seed-1"),
        ("trec", 1, tmp_path / "trec" / "seed-1"),
        ("trec", 3, tmp_path / "trec" / "seed-3"),
    ]
