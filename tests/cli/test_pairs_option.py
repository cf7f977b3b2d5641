"""`--pairs`: one file of sentence pairs, in any format, in the place of two files."""

import gzip
import json
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.cli.moses_files import moses_files

ROWS = [("Hund läuft .", "dog runs ."), ("Katze schläft .", "cat sleeps ."), ("Hund schläft .", "dog sleeps .")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("de;en\n" + "".join(f"{one};{other}\n" for one, other in ROWS), encoding="utf-8")
    for side, name in enumerate(("de", "en")):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in ROWS), encoding="utf-8")
    (tmp_path / "three.tsv").write_text("a\tb\tc\n" * 3)
    (tmp_path / "keys.jsonl").write_text('{"one": "a", "two": "b"}\n')
    unit = "".join(f'<tuv xml:lang="{code}"><seg>a</seg></tuv>' for code in ("de", "en", "fr"))
    (tmp_path / "three.tmx").write_text(f'<tmx version="1.4"><body>{f"<tu>{unit}</tu>" * 3}</body></tmx>')
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


def test_the_prefix_of_two_files_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.de").write_text("".join(f"{one}\n" for one, _ in ROWS), encoding="utf-8")
    with gzip.open("own.en.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{other}\n" for _, other in ROWS)
    own, direction = ["--pairs", "own"], ["--source", "en", "--target", "de"]
    named = ["--source", "own.en.gz", "--target", "own.de"]
    for command in (["align"], ["data", "check"], ["data", "split", "--out", "split"]):
        code, printed = main([*command, *own, *direction]), capsys.readouterr().out
        assert (code, printed) == (main([*command, *named]), capsys.readouterr().out), command
        assert main([*command, *own]) == 2
        assert "own stands for own.de, own.en.gz: say which is the source" in capsys.readouterr().err
    for language in ("de", "en"):
        (tmp_path / f"book.en-de.{language}").write_text("a\nb\n")
    assert moses_files(Path("book.en-de")) == (Path("book.en-de.en"), Path("book.en-de.de"))
    assert moses_files(Path("book.en-de.en")) is None and moses_files(Path("other")) is None
    assert main(["train", *own, "--source", "en", "--target", "fr", "--out", "run"]) == 2
    assert "there is no file own.fr: expected one of de, en" in capsys.readouterr().err


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
        (["data", "check", "--pairs", "three.tsv"], "such as data.train.source_column=2."),
        (["evaluate", "--pairs", "three.tsv", "--hypothesis", "de"], "such as pairs.source_column=2."),
        (["align", "--pairs", "keys.jsonl"], "such as pairs.source_column=KEY"),
        (["evaluate", "--pairs", "three.tmx", "--hypothesis", "de"], "such as pairs.source_code=en"),
        (["data", "compare"], "give a recipe, or --source FILE and --target FILE, --pairs FILE"),
        (["data", "compare", "--pairs", "pairs.csv", "--valid-source", "de"], "--valid-target must be given together"),
        (["data", "compare", "--pairs", "pairs.csv", "--target", "de"], "use only one form"),
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


def test_a_file_of_pairs_is_compared(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "compare", "--pairs", str(table), "--valid-pairs", str(table)]) == 0
    printed = capsys.readouterr().out
    assert "data.train has only 3 pairs" in printed and "3 of 3" in printed
    assert main(["data", "compare", "--pairs", str(table)]) == 0
    assert "data.train has only 3 pairs" in capsys.readouterr().out
    assert not [path for path in table.parent.iterdir() if path.is_dir()]
