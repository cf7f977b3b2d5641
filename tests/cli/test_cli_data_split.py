"""`dragoman data split` on the command line."""

from pathlib import Path

import pytest

from dragoman import split_data
from dragoman.cli.main import main
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.read import read_labelled

PARTS = ("train", "valid", "test")


@pytest.fixture(autouse=True)
def _corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = (f"{chr(97 + number // 10)}{chr(97 + number % 10)}" for number in range(60))
    lines = [f"source {name}\ttarget {name}\n" for name in names]
    Path("pairs.tsv").write_text("".join([*lines, lines[0].upper(), "\n"]))
    Path("p").write_text("a X\n\nb Y\n")


def test_data_split_writes_three_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "split", "--pairs", "pairs.tsv", "--out", "corpus", "data.held_out.test=10"]) == 0
    output = capsys.readouterr().out
    assert "corpus: 45 pairs for training, 6 for validation, 10 for testing" in output
    names = [f"{part}.{side}" for part in ("test", "train", "valid") for side in ("source", "target")]
    assert sorted(path.name for path in Path("corpus").iterdir()) == names
    assert len(Path("corpus/test.target").read_text().splitlines()) == 10


def test_examples_are_divided_as_by_a_run_of_their_task(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(60)]
    Path("pairs.csv").write_text(
        "".join(f"first {each},second {each},{len(each) + n % 2}\n" for n, each in enumerate(names))
    )
    corpus = "data.train={path: pairs.csv, columns: {text: 1, pair: 2, label: 3}}"
    assert main(["data", "split", "task.kind=regression", corpus, "--out", "corpus", "data.held_out.test=9"]) == 0
    assert "corpus: 45 examples for training, 6 for validation, 9 for testing" in capsys.readouterr().out
    parts = {part: read_labelled(LabelledCorpusConfig(path=Path("corpus", f"{part}.jsonl"))) for part in PARTS}
    assert {part: len(each) for part, each in parts.items()} == {"train": 45, "valid": 6, "test": 9}
    texts = [each.texts for examples in parts.values() for each in examples]
    assert sorted(texts) == [(f"first {each}", f"second {each}") for each in names]
    settings = {"path": "pairs.csv", "columns": {"text": 1, "pair": 2, "label": 3}}
    result = split_data(settings, "again", {"test": 9}, task="regression", quiet=True)
    assert (result.train, result.unit) == (45, "examples")
    assert Path("again/test.jsonl").read_bytes() == Path("corpus/test.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["task.kind=parsing", "data.train=pairs.tsv", "--pairs", "pairs.tsv", "--out", "x"], "without task.kind"),
        (["task.kind=tagging", "data.train=p", "data.valid=p", "--out", "x"], "data.valid names a validation set"),
        (["task.kind=denoising", "data.train.text=pairs.tsv", "--out", "x"], "only sentence pairs and labelled"),
        (["--pairs", "pairs.tsv", "--out", "."], "already exists"),
        (["--source", "pairs.tsv", "--out", "x"], "give one corpus"),
        (["--out", "x"], "give one corpus"),
        (["--pairs", "pairs.tsv", "--out", "x", "data.held_out.valid=50"], "more than half of the 61 pairs"),
        (["--pairs", "pairs.tsv", "--out", "x", "data.held_out.size=50"], "unknown setting data.held_out.size"),
    ],
)
def test_data_split_refuses_unsuitable_settings(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "split", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err
    assert not Path("x").exists()
