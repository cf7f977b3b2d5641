"""`dragoman data check`: every setting of a corpus and of cleaning that changes the report is an option."""

from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.cli.root import root_command
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig

NO_EFFECT = {
    "name": "the report does not contain the name",
    "weight": "every pair is read once",
    "tags": "tags are inserted after cleaning",
}
"""Settings of a corpus that do not change the report."""

NOT_CHECKED = {
    "enabled": "without cleaning there is no report",
    "max_tokens": "there is no tokeniser before training",
    "duplicates_between": "a check reads one corpus",
    "version": "new runs have the current rules",
}
"""Cleaning settings that do not apply to a check."""


def options() -> set[str]:
    group = root_command()
    check = group.commands["data"].commands["check"]  # type: ignore[attr-defined]
    return {option for parameter in check.params for option in parameter.opts}


@pytest.mark.parametrize("config", [CorpusConfig, TextCorpusConfig, CleaningConfig, TextCleaningConfig])
def test_every_setting_of_training_data_is_an_option(config: type) -> None:
    names = set(config.model_fields) - set(NO_EFFECT) - set(NOT_CHECKED)  # type: ignore[attr-defined]
    expected = {f"--{name.replace('_', '-')}" for name in names}
    plural = {option for option in expected if option.endswith("-scripts") or option == "--scripts"}
    expected = expected - plural | {option.removesuffix("s") for option in plural}  # repeatable options
    assert expected <= options()


def test_settings_without_an_option_exist() -> None:
    fields = {name for config in (CorpusConfig, TextCorpusConfig) for name in config.model_fields}
    rules = {name for config in (CleaningConfig, TextCleaningConfig) for name in config.model_fields}
    assert set(NO_EFFECT) <= fields and set(NOT_CHECKED) <= rules


def test_the_columns_of_a_table_are_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "corpus.tsv"
    path.write_text("1\tthe dog\tder Hund\n2\tthe cat\tdie Katze\n")
    assert main(["data", "check", "--tsv", str(path)]) == 1
    assert "--source-column, --target-column" in capsys.readouterr().err
    assert main(["data", "check", "--tsv", str(path), "--source-column", "2", "--target-column", "3"]) == 0
    assert "2 pairs read, 2 kept" in capsys.readouterr().out
    assert main(["data", "check", "--tsv", str(path), "--source-column", "2", "--target-column", "4"]) == 1
    assert "line 1: 3 tab-separated columns, but column 4 is needed" in capsys.readouterr().err
    assert main(["data", "check", "--text", str(path), "--source-column", "2"]) == 2
    assert "--source-column can only be used with sentence pairs" in capsys.readouterr().err


def test_the_share_of_a_script_is_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"sentence {number}\n" for number in range(8)) + "предложение\nслово\n", encoding="utf-8")
    assert main(["data", "check", "--text", str(path), "--script-share", "0.1"]) == 0
    assert "10 kept" in capsys.readouterr().out
    assert main(["data", "check", "--text", str(path), "--script-share", "0.5"]) == 0
    assert "8 kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "kept"), [([], 1), (["--normalization", "nfkc"], 1), (["--normalization", "none"], 2)]
)
def test_the_unicode_normalisation_is_an_option(
    options: list[str], kept: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("caf\u00e9\tKaffee\ncafe\u0301\tKaffee\n", encoding="utf-8")
    assert main(["data", "check", "--tsv", str(path), *options]) == 0
    assert f"2 pairs read, {kept} kept" in capsys.readouterr().out
    assert main(["data", "check", "--text", str(path), *options]) == 0
    assert f"2 documents read, {kept} kept" in capsys.readouterr().out


def test_records_are_checked_with_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"abstract": "a long text", "summary": ["short", "brief"]}\n')
    template = '{source: "{abstract}", target: "{summary}"}'
    assert main(["data", "check", "--jsonl", str(path), "--template", template, "--max-ratio", "0"]) == 0
    assert "2 pairs read, 2 kept" in capsys.readouterr().out
    (tmp_path / "labels.tsv").write_text("good film\tpositive\n")
    assert main(["data", "check", "--labelled", str(tmp_path / "labels.tsv"), "--max-ratio", "0"]) == 0
    assert "1 pair read, 1 kept" in capsys.readouterr().out
    assert main(["data", "check", "--jsonl", str(path), "--template", "{source: x"]) == 2
    assert "--template, line 1 is not valid YAML" in capsys.readouterr().err
