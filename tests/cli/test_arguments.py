"""Advice for mistakes in the arguments of a command."""

from pathlib import Path

import pytest

from dragoman.base.errors import ConfigError
from dragoman.cli.arguments import check_options, check_settings, split_recipe
from dragoman.cli.main import main
from dragoman.cli.usage import expand_home


def advice(*arguments: str, files: str | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        check_settings(arguments, files=files)
    return str(error.value)


def test_the_home_directory_inside_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/ann")
    assert expand_home(["--out=~/runs/a", "--out", "~", "a=~/b", "--text=a ~/b"]) == [
        "--out=/users/ann/runs/a",
        "--out",
        "~",
        "a=~/b",
        "--text=a ~/b",
    ]


@pytest.mark.parametrize("spaced", [["train.seed", "=", "3"], ["train.seed=", "3"], ["train.seed", "=3"]])
def test_spaces_next_to_the_equals_sign(spaced: list[str]) -> None:
    assert "write train.seed=3" in advice("train.max_steps=1", *spaced, "out=x")
    with pytest.raises(ConfigError, match=r"write train\.seed=3"):
        split_recipe(spaced)


def test_a_group_without_quotes() -> None:
    # as bash passes model.decoder={kind: recurrent, layers: 2}
    assert "write 'model.decoder={kind: recurrent, layers: 2}' with the quotes" in advice(
        "model.decoder={kind:", "recurrent,", "layers:", "2}"
    )
    # as bash expands model.decoder={kind:recurrent,layers:2}
    assert "write 'model.decoder={kind: recurrent, layers: 2}' with the quotes" in advice(
        "model.decoder=kind:recurrent", "model.decoder=layers:2"
    )
    assert "write 'data.train=[{pairs: a}, {pairs: b}]' with the quotes" in advice(
        "data.train=[{pairs:", "a},", "{pairs:", "b}]"
    )


def test_a_colon_instead_of_an_equals_sign() -> None:
    assert "write train.seed=3" in advice("train.seed:3")
    assert "write train.seed=3" in advice("train.seed:", "3")


def test_files_and_folders_instead_of_settings(tmp_path: Path) -> None:
    text, run = tmp_path / "text.en", tmp_path / "run"
    text.write_text("a\n")
    (run / "training").mkdir(parents=True)
    assert "pass it as --input FILE" in advice(str(text), files="--input FILE")
    assert "--source and --target" in advice(str(text))
    assert f"--resume --out {run}" in advice(str(run))
    assert "neither a recipe" in advice(str(tmp_path))
    assert "must be the first argument" in advice("train.seed=1", "recipe.yaml")
    assert "write key=value" in advice("fast")


def test_a_repeated_setting_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    check_settings(["train.seed=1", "train.seed=2"])
    assert "train.seed is set 2 times: the last value, 2, applies" in capsys.readouterr().err
    check_settings(["train.seed=1", "train.seed=1", "train.max_steps=1"])
    assert capsys.readouterr().err == ""
    check_options({"out": Path("a"), "data.train.pairs": None}, ["out=a", "data.train.pairs=b"])
    check_options({"out": Path("a")}, ["out=b"])
    assert "out is set twice: out=b applies, and not a from the option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["train", "--lr", "3"], "train.schedule.peak=3"),
        (["train", "--batch-size=64", "--epochs", "3"], "data.batch.sentences=64 or data.batch.tokens=64"),
        (["train", "--fp16", "train.seed=1"], "train.precision=VALUE"),
        (["distill", "model", "--dropout", "0.1"], "model.dropout=0.1"),
    ],
)
def test_options_of_other_toolkits(arguments: list[str], hint: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert f"which is written without dashes: {hint}" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["export", "model", "--format", "marian", "--out", "x"], "--format is called --to here"),
        (["translate", "model", "--num-beams", "4"], "--num-beams is called --beam here"),
        (["evaluate", "model", "--ref=x"], "--ref is called --reference here"),
        (["align", "--src", "a", "--tgt", "b"], "--src is called --source here"),
        (["evaluate", "--reference", "x", "--target-language", "ja"], "--target-language is called --tokenizer here"),
    ],
)
def test_options_with_another_name(arguments: list[str], hint: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert hint in capfd.readouterr().err


@pytest.mark.parametrize("option", [["--out="], ["--out", ""]])
def test_a_path_without_a_value_is_not_the_current_folder(
    option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--source", "a", "--target", "b", *option]) == 2
    assert "--out has no value" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_after_the_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text"
    text.write_text("a\n")
    assert main(["score", "model", str(text)]) == 2
    assert "pass files as --source and --target" in capfd.readouterr().err
    assert main(["translate", "model", str(text)]) == 2
    assert "pass it as --input FILE" in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [["-h", "translate"], ["--help", "translate"], ["help", "translate"]])
def test_help_before_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "--length-penalty" in capsys.readouterr().out
    assert main(["help"]) == 0
    assert "backtranslate" in capsys.readouterr().out
