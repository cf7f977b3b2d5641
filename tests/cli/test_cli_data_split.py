"""`dragoman data split` on the command line."""

from pathlib import Path

import pytest

from dragoman.cli.main import main


@pytest.fixture(autouse=True)
def _corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = (f"{chr(97 + number // 10)}{chr(97 + number % 10)}" for number in range(60))
    lines = [f"source {name}\ttarget {name}\n" for name in names]
    Path("pairs.tsv").write_text("".join([*lines, lines[0].upper(), "\n"]))


def test_data_split_writes_three_sets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "split", "--pairs", "pairs.tsv", "--out", "corpus", "data.held_out.test=10"]) == 0
    output = capsys.readouterr().out
    assert "corpus: 45 pairs for training, 6 for validation, 10 for testing" in output
    names = [f"{part}.{side}" for part in ("test", "train", "valid") for side in ("source", "target")]
    assert sorted(path.name for path in Path("corpus").iterdir()) == names
    assert len(Path("corpus/test.target").read_text().splitlines()) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
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
