"""`dragoman data check` on the command line."""

import json
from pathlib import Path

import pytest

from dragoman.cli.main import main


def test_data_check_reports_rules_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("one two\n\nsame same\none two\nvery " * 1 + "long " * 30 + "\n")
    target.write_text("eins zwei\nleer\nsame same\neins zwei\nkurz\n")
    command = ["data", "check", "--source", str(source), "--target", str(target)]
    assert main(command) == 0
    assert "5 pairs read, 2 kept" in capsys.readouterr().out
    rules = ["data.cleaning.copied_words=2", "data.cleaning.max_ratio=null", "data.cleaning.max_words=20"]
    assert main([*command, "--json", *rules]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "pairs": 5,
        "kept": 1,
        "dropped": {"empty": [2], "copied_words": [3], "max_words": [5], "duplicates": [4]},
    }
    assert main([*command, "--json", "data.cleaning={empty: false, duplicates: false, max_ratio: null}"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 5


def test_data_check_of_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    text, objects = tmp_path / "text", tmp_path / "objects.jsonl"
    text.write_text(" = One = \nsome words\n\n = Two = \nmore\n\n = One = \nsome words\n\n")
    objects.write_text('{"text": "some words"}\n{"text": "\\u0001"}\n')
    assert main(["data", "check", "--text", str(text)]) == 0
    assert "9 documents read, 4 kept" in capsys.readouterr().out
    articles = ["--text", str(text), "data.train.documents=file", "data.train.heading=' = [^=].* = '"]
    assert main(["data", "check", *articles, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"documents": 3, "kept": 2, "dropped": {"duplicates": [7]}}
    assert main(["data", "check", *articles, "--json", "data.cleaning.duplicates=false"]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 3
    assert main(["data", "check", f"data.train.jsonl={objects}", "data.train.field=text", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["dropped"] == {"empty": [2]}
    assert report["found"] == [
        {"setting": "control_characters", "side": str(objects), "name": "U+0001 control character", "lines": [2]}
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--text", "a", "data.cleaning.max_ratio=3"], "unknown setting data.cleaning.max_ratio"),
        (["--text", "a", "data.cleaning.source_scripts=[Latn]"], "unknown setting data.cleaning.source_scripts"),
        (["--source", "a", "--target", "a", "data.cleaning.scripts=[Latn]"], "unknown setting data.cleaning.scripts"),
        (["--text", "a", "data.target_language=ja"], "unknown setting data.target_language"),
        (["--pairs", "a", "data.language=ja"], "unknown setting data.language"),
        (["--pairs", "a", "data.train.source_collumn=2"], "did you mean data.train.source_column"),
        (["--pairs", "a", "max_words=2"], "did you mean data.cleaning.max_words"),
        (["--source", "a"], "give one corpus"),
        (["--pairs", "a", "--text", "a"], "give one corpus"),
        (["--source", "a", "data.train.pairs=a"], "give one corpus"),
        (["--text", "a", "data.train.heading=x"], "set `documents` to file"),
        (["--text", "a", "data.train.jsonl=b"], "data.train"),
        (["--text", "missing"], "missing"),
        (["a"], "pass it as --source FILE and --target FILE"),
        ([], "give one corpus"),
    ],
)
def test_data_check_refuses_unsuitable_settings(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("some words\n")
    assert main(["data", "check", *arguments]) in (1, 2)
    assert message in capsys.readouterr().err


def test_the_columns_of_a_table_are_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("1\tthe dog\tder Hund\n2\tthe cat\tdie Katze\n")
    command = ["data", "check", "--pairs", str(path)]
    assert main(command) == 1
    assert "such as data.train.source_column=2" in capsys.readouterr().err
    assert main([*command, "data.train.source_column=2", "data.train.target_column=3"]) == 0
    assert "2 pairs read, 2 kept" in capsys.readouterr().out
    assert main([*command, "data.train.source_column=2", "data.train.target_column=4"]) == 1
    assert "line 1: 3 tab-separated columns, but column 4 is needed" in capsys.readouterr().err


def test_the_fraction_of_a_script_is_a_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"sentence {number}\n" for number in range(8)) + "предложение\nслово\n", encoding="utf-8")
    assert main(["data", "check", "--text", str(path), "data.cleaning.script_fraction=0.1"]) == 0
    assert "10 kept" in capsys.readouterr().out
    assert main(["data", "check", "--text", str(path), "data.cleaning.script_fraction=0.5"]) == 0
    assert "8 kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "kept"), [([], 1), (["text.normalization=nfkc"], 1), (["text.normalization=none"], 2)]
)
def test_the_unicode_normalisation_is_a_setting(
    settings: list[str], kept: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("caf\u00e9\tKaffee\ncafe\u0301\tKaffee\n", encoding="utf-8")
    assert main(["data", "check", "--pairs", str(path), *settings]) == 0
    assert f"2 pairs read, {kept} kept" in capsys.readouterr().out
    assert main(["data", "check", "--text", str(path), *settings]) == 0
    assert f"2 documents read, {kept} kept" in capsys.readouterr().out


def test_records_are_checked_with_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"abstract": "a long text", "summary": ["short", "brief"]}\n')
    command = ["data", "check", "data.cleaning.max_ratio=null"]
    template = 'data.train.template={source: "{abstract}", target: "{summary}"}'
    assert main([*command, f"data.train.pairs={path}", template]) == 0
    assert "2 pairs read, 2 kept" in capsys.readouterr().out
    (tmp_path / "labels.tsv").write_text("good film\tpositive\n")
    assert main([*command, f"data.train.labelled={tmp_path / 'labels.tsv'}"]) == 0
    assert "1 pair read, 1 kept" in capsys.readouterr().out
    assert main([*command, f"data.train.pairs={path}", "data.train.template={source: x"]) == 2
    assert "data.train.template" in capsys.readouterr().err


def test_the_corpora_of_a_recipe_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pairs.csv").write_text("a dog,ein Hund\n,leer\n")
    (tmp_path / "more.jsonl").write_text('{"en": "a cat", "de": "eine Katze"}\n')
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"data:\n  train: {tmp_path}/pairs.csv\n  valid: [{tmp_path}/more.jsonl]\nout: run\n")
    assert main(["data", "check", str(recipe)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"data.train: {tmp_path}/pairs.csv", "2 pairs read, 1 kept (50.00 %)"]
    assert lines[-2:] == [f"data.valid: {tmp_path}/more.jsonl", "1 pair read, 1 kept (100.00 %)"]
    assert main(["data", "check", str(recipe), "--json"]) == 0
    assert [each["kept"] for each in json.loads(capsys.readouterr().out)["corpora"]] == [1, 1]
    assert main(["data", "check", str(recipe), "--pairs", str(tmp_path / "pairs.csv")]) == 2
    assert "a recipe names its corpora" in capsys.readouterr().err
