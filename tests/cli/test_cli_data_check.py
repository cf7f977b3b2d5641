"""`dragoman data check` on the command line."""

import json
from pathlib import Path

import pytest

from dragoman.cli.main import main


def test_data_check_reports_rules_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("one two\n\nsame same\none two\nvery " * 1 + "long " * 30 + "\n")
    target.write_text("eins zwei\nleer\nsame same\neins zwei\nkurz\n")
    files = ["--source", str(source), "--target", str(target)]
    assert main(["data", "check", *files]) == 0
    out = capsys.readouterr().out
    assert "5 pairs read, 2 kept" in out
    assert (
        main(["data", "check", *files, "--json", "--copied-words", "2", "--max-ratio", "0", "--max-words", "20"]) == 0
    )
    assert json.loads(capsys.readouterr().out) == {
        "pairs": 5,
        "kept": 1,
        "dropped": {"empty": [2], "copied_words": [3], "max_words": [5], "duplicates": [4]},
    }
    assert main(["data", "check", *files, "--json", "--no-empty", "--no-duplicates", "--max-ratio", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 5


def test_data_check_of_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text, objects = tmp_path / "text", tmp_path / "objects.jsonl"
    text.write_text(" = One = \nsome words\n\n = Two = \nmore\n\n = One = \nsome words\n\n")
    objects.write_text('{"text": "some words"}\n{"text": "\\u0001"}\n')
    assert main(["data", "check", "--text", str(text)]) == 0
    assert "9 documents read, 4 kept" in capsys.readouterr().out
    articles = ["--text", str(text), "--documents", "file", "--heading", " = [^=].* = "]
    assert main(["data", "check", *articles, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"documents": 3, "kept": 2, "dropped": {"duplicates": [7]}}
    assert main(["data", "check", *articles, "--json", "--no-duplicates"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 3
    assert main(["data", "check", "--jsonl", str(objects), "--field", "text", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["dropped"] == {"empty": [2]}
    assert report["found"] == [
        {"setting": "control_characters", "side": str(objects), "name": "U+0001 control character", "lines": [2]}
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "a", "--max-ratio", "3"], "--max-ratio can only be used with sentence pairs"),
        (["--text", "a", "--source-script", "latin"], "--source-script can only be used with sentence pairs"),
        (["--source", "a", "--target", "a", "--script", "latin"], "--script can only be used with --text or --field"),
        (["--text", "a", "--target-language", "ja"], "--target-language can only be used with sentence pairs"),
        (["--tsv", "a", "--language", "ja"], "--language can only be used with --text or --field"),
        (["--text", "a", "--field", "text"], "give the corpus either as"),
        (["--text", "a", "--heading", "x"], "set `documents` to file"),
        (["--text", "missing"], "missing"),
        ([], "give the corpus either as"),
    ],
)
def test_data_check_refuses_conflicting_options(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("some words\n")
    assert main(["data", "check", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err
