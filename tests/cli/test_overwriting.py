"""No command replaces files that belong to the user or to another run."""

import json
from pathlib import Path

import pytest
from tiny_model import write_tiny_model
from training_runs import SETTINGS, write_corpus

from dragoman.checkpoint.store import CheckpointStore
from dragoman.cli.main import main

FILES = ("README.md", "tokenizer.json", "log.jsonl", "config.yaml", "model.safetensors", "encoding.png", "recipe.yaml")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of the user that have the names of files that dragoman writes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("mine\n")
    write_tiny_model(tmp_path / "model")
    return folder


COMMANDS = {
    "train": [],
    "train-seeds": ["seeds=2"],
    "average": ["average", "model"],
    "export": ["export", "model", "--to", "ctranslate2"],
    "export-marian": ["export", "model", "--to", "marian"],
    "import": ["import", "model"],
    "inspect": ["inspect", "model", "a dog"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_of_the_user_is_kept(name: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = COMMANDS[name]
    if name.startswith("train"):
        arguments = ["train", *without_out(write_corpus(own.parent)), *SETTINGS, *arguments]
    assert main([*arguments, "--out", "own"]) in (1, 2)
    assert "own" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in own.iterdir()} == dict.fromkeys(FILES, "mine\n")


FILE_COMMANDS = {
    "--output": ["translate", "model", "-i", "text", "--output", "mine"],
    "--alignments": ["translate", "model", "-i", "text", "--alignments", "mine"],
    "--tree": ["translate", "model", "-i", "text", "--tree", "mine"],
    "align": ["align", "--source", "text", "--target", "text", "--output", "mine"],
    "--draw": ["align", "--source", "text", "--target", "text", "--draw", "mine"],
    "--scores": ["align", "--source", "text", "--target", "text", "--scores", "mine"],
    "lexicon": ["lexicon", "--source", "text", "--target", "text", "--output", "mine"],
    "predict": ["predict", "model", "-i", "text", "--output", "mine"],
    "--out": ["tune", "model", "--source", "text", "--reference", "text", "--out", "mine"],
}


@pytest.mark.parametrize("name", FILE_COMMANDS)
def test_a_file_of_the_user_is_kept(name: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("text").write_text("a dog\n")
    Path("mine").write_text("mine\n")
    assert main(FILE_COMMANDS[name]) == 2
    option = name if name.startswith("--") else "--output"
    assert f"mine already exists: choose another {option}, or delete it" in capsys.readouterr().err
    assert Path("mine").read_text() == "mine\n"


def test_an_input_is_not_to_be_deleted(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message does not advise to delete a file that is also the input."""
    Path("text").write_text("a dog\n")
    assert main(["align", "--source", "text", "--target", "text", "-o", "./text"]) == 1
    message = capsys.readouterr().err
    assert "--output text would overwrite the file to read: choose another name" in message
    assert "delete" not in message


def test_an_empty_file_is_replaced(own: Path) -> None:
    """As created by mktemp, for example."""
    Path("text").write_text("a dog\n")
    Path("empty").touch()
    assert main(["translate", "model", "-i", "text", "--output", "empty", "--engine", "torch"]) == 0
    assert Path("empty").read_text().endswith("\n")


def without_out(arguments: list[str]) -> list[str]:
    """Return the arguments of a training without its run folder."""
    if "--out" in arguments:
        at = arguments.index("--out")
        arguments = [*arguments[:at], *arguments[at + 2 :]]
    return [argument for argument in arguments if not argument.startswith("out=")]


def test_a_recipe_in_the_folder_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """`dragoman train config.yaml out=.` must not treat the recipe as the settings of a run."""
    monkeypatch.chdir(tmp_path)
    corpus = without_out(write_corpus(tmp_path))
    (tmp_path / "config.yaml").write_text("train: {max_steps: 1}\n")
    assert main(["train", *corpus, *SETTINGS, "--out", "."]) == 2
    assert "would replace config.yaml" in capsys.readouterr().err
    assert (tmp_path / "config.yaml").read_text() == "train: {max_steps: 1}\n"


def test_two_runs_in_one_folder_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = without_out(write_corpus(tmp_path))
    with CheckpointStore(tmp_path / "run"):
        assert main(["train", *corpus, *SETTINGS, "--out", "run"]) == 1
    assert "is in use by process" in capsys.readouterr().err


def test_one_checkpoint_is_not_called_a_mean(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["average", "model", "-o", "copy"]) == 0
    message = capsys.readouterr().err
    assert "the only checkpoint" in message
    assert "mean" not in message


def test_the_folder_of_checkpoints_is_explained(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(own.parent / "run" / "checkpoints" / "step-00000010")
    for arguments in (["translate", "run/checkpoints"], ["average", "run/checkpoints", "-o", "mean"]):
        assert main(arguments) == 1
        assert "each of which is a model folder, such as run/checkpoints/step-00000010" in capsys.readouterr().err
    assert main(["translate", "run"]) == 1
    assert "run/checkpoints/step-00000010 can be used" in capsys.readouterr().err


def test_a_folder_that_is_being_trained_is_named(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock of another process is simulated by another number in the lock file."""
    import subprocess
    import sys

    meta = Path("model/meta.json")
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "unfinished": True}))

    code = (
        "import fcntl, os, sys; file = open('model/.lock', 'w'); fcntl.flock(file, fcntl.LOCK_EX); "
        "print(os.getpid(), file=file, flush=True); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as process:
        process.stdout.readline()
        (own.parent / "text").write_text("a dog\n")
        assert main(["translate", "model", "-i", "text", "--engine", "torch"]) == 0
        message = capsys.readouterr().err
        process.stdin.close()
    assert f"process {process.pid} is still training in model" in message
    assert main(["translate", "model", "-i", "text", "--engine", "torch"]) == 0
    assert "still training" not in capsys.readouterr().err
