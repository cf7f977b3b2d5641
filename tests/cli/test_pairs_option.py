"""`--pairs`: one file of sentence pairs, in any format, in the place of two files."""

import json
from pathlib import Path

import pytest

from dragoman.cli.main import main

ROWS = [("Hund läuft .", "dog runs ."), ("Katze schläft .", "cat sleeps ."), ("Hund schläft .", "dog sleeps .")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("de;en\n" + "".join(f"{one};{other}\n" for one, other in ROWS), encoding="utf-8")
    for side, name in enumerate(("de", "en")):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in ROWS), encoding="utf-8")
    return path


def test_commands_read_one_file_like_two(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--source", str(tmp_path / "de"), "--target", str(tmp_path / "en")]
    test = ["--source", str(tmp_path / "de"), "--reference", str(tmp_path / "en")]
    output = ["--hypothesis", str(tmp_path / "en"), "--metric", "chrf", "--json"]
    for command, two, options in (("align", files, []), ("evaluate", test, output), ("data check", files, ["--json"])):
        printed = []
        for corpus in (two, ["--pairs", str(table)]):
            assert main([*command.split(), *corpus, *options]) == 0
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1], command


def test_the_columns_are_settings(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--pairs", str(table), "--hypothesis", str(tmp_path / "de"), "--metric", "chrf", "--json"]
    assert main([*command, "pairs.source_code=en"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"][0]["scores"][0]["value"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--pairs", "pairs.csv", "--source", "de", "--hypothesis", "de"], "--source is also given"),
        (["align", "--pairs", "pairs.csv", "--target", "en"], "--target is also given"),
        (["align", "--source", "de"], "give --source FILE and --target FILE, or --pairs FILE"),
        (["align", "--source", "de", "--target", "en", "pairs.header=true"], "give --pairs FILE"),
        (["align", "--pairs", "pairs.csv", "pairs.haeder=true"], "did you mean header"),
        (["train", "--pairs", "pairs.csv", "--source", "de", "--out", "run"], "use only one form"),
        (["data", "check", "--pairs", "."], "is a folder"),
        (["data", "check", "--pairs", "pair.csv"], "did you mean pairs.csv"),
        (["data", "check", "--pairs", "de"], "only one column"),
    ],
)
def test_faulty_uses_are_one_line(
    arguments: list[str], message: str, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(table.parent)
    assert main(arguments) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
