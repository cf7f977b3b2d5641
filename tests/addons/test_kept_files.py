"""The commands of add-ons replace no files or folders of the user, and check their settings before they write any."""

from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from dragoman.cli.main import main


@pytest.mark.parametrize("command", ["demo", "positions"])
def test_a_folder_of_the_user_is_kept(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("README.md", "log.jsonl", "config.yaml", "model.safetensors", "encoding.png")
    Path("own").mkdir()
    for name in names:
        Path("own", name).write_text("mine\n")
    assert main([command, "--out", "own"]) in (1, 2)
    assert "own" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in Path("own").iterdir()} == dict.fromkeys(names, "mine\n")


@pytest.mark.parametrize(
    "command",
    [["translate-document", "model"], ["client", "http://127.0.0.1:9", "--target", "de"]],
    ids=lambda command: command[0],
)
def test_a_file_of_the_user_is_kept(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "model")
    Path("text").write_text("a dog\n")
    Path("mine").write_text("mine\n")
    assert main([*command, "-i", "text", "--output", "mine"]) == 2
    assert "mine already exists: choose another --output, or delete it" in capsys.readouterr().err
    assert Path("mine").read_text() == "mine\n"


def test_the_demo_reports_impossible_folders_and_wrong_settings_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("a dog runs\n")
    for out in (text, text / "below"):
        assert main(["demo", "--out", str(out)]) != 0
        assert "choose another path" in capsys.readouterr().err
    assert main(["demo", "--out", str(tmp_path / "demo"), "train.max_stps=3"]) != 0
    assert "train.max_steps" in capsys.readouterr().err
    assert not (tmp_path / "demo" / "corpus").exists()
