"""The commands that messages recommend can be executed."""

import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from marian_folders import write_marian
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, write_tiny_model
from training_runs import SETTINGS, write_corpus

from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.cli.arguments import check_settings
from dragoman.cli.main import main
from dragoman.tasks.translation.validation import Validation, Validator
from dragoman.text.tokenizers import TextConfig, train_tokenizers

COMMAND = re.compile(r"`(dragoman [^`]+)`|: (dragoman .+)$", re.MULTILINE)


def remedies(message: str) -> list[list[str]]:
    """Return the arguments of the commands in a message."""
    return [shlex.split(first or second)[1:] for first, second in COMMAND.findall(message)]


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]):
    """Run a command, and return its stderr."""

    def run(*arguments: str, code: int = 0) -> str:
        found = main(list(arguments))
        error = capfd.readouterr().err
        assert found == code, error
        return error

    return run


def test_the_command_after_an_interruption_resumes_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said
) -> None:
    """The folder has a space, and the validation that is interrupted is repeated."""
    monkeypatch.chdir(tmp_path)
    corpus = write_corpus(tmp_path, 120)
    corpus[-1] = "my runs/first"
    validate = Validator.run

    def interrupted(self: Validator, engine: object) -> Validation:
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(self, engine)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Validator, "run", interrupted)
        message = said("train", *corpus, *SETTINGS, "train.max_steps=20", code=128 + signal.SIGTERM)
    assert "interrupted at step 15" in message
    (remedy,) = remedies(message)
    assert "Resuming at step 15" in said(*remedy)
    steps = re.findall(r'"step": (\d+).*"valid_loss"', Path("my runs/first/log.jsonl").read_text())
    assert steps == ["15", "20"]
    message = said("average", *map(str, sorted(Path("my runs/first/checkpoints").iterdir())), "-o", "mean")
    assert remedies(message) == [["evaluate", "precision-cost", "mean"]]
    assert "was 20 and is now 22" in said("train", "--resume", "--out", "my runs/first", "train.max_steps=22")


@pytest.mark.parametrize(
    ("to", "kind"),
    [
        ("ctranslate2", "bpe"),
        ("ctranslate2", "learned"),
        pytest.param("ctranslate2", "imported", marks=pytest.mark.slow),
        ("marian", "imported"),
    ],
)
def test_the_command_after_an_export_translates(
    to: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said
) -> None:
    pytest.importorskip("ctranslate2")
    monkeypatch.chdir(tmp_path)
    if kind == "bpe":
        write_tiny_model(tmp_path / "model")
    elif kind == "learned":
        write_model_with_unknown_words(tmp_path / "model")
    else:
        write_marian(tmp_path / "marian")
        message = said("import", "marian", "--out", "model")
        assert "`dragoman translate`" in message
    message = said("export", "model", "--to", to, "--out", "exported")
    Path("text").write_text("the dog sleeps .\n")
    for command in remedies(message):
        said(*command, "--input", "text", "--output", "translated", "--beam", "1")
        assert len(Path("translated").read_text().splitlines()) == 1
    if to == "marian":
        said("import", "exported", "--out", "again")


def write_model_with_unknown_words(folder: Path) -> None:
    """Write a model whose SentencePiece vocabulary lacks characters, so that its default is to copy unknown words."""
    tokenizers = train_tokenizers(
        TextConfig.model_validate({"subword": {"kind": "sentencepiece", "size": 60}}), SOURCES * 20, TARGETS * 20
    )
    config = tiny_config()
    section = "\n".join(f"  {line}" for line in dump_settings(config).splitlines())
    parameters = model_parameters(tiny_model(config, tokenizers))
    write_model_folder(folder, parameters, f"model:\n{section}\n", tokenizers, Meta(step=1))


def test_hints_for_arguments_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said) -> None:
    monkeypatch.chdir(tmp_path)
    for wrong in (
        ["train.seed", "=", "3"],
        ["train.seed:", "3"],
        ["model.decoder={kind:", "recurrent}"],
        ["model.decoder=kind:recurrent", "model.decoder=layers:2"],
    ):
        message = said("train", *wrong, code=2)
        written = re.search(r"write ('?)(.+?)\1( with the quotes)?$", message.strip())
        assert written is not None, message
        check_settings([written[2]])
        assert written[2] not in said("train", written[2], code=2)


def test_the_checkpoint_that_a_message_names_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said) -> None:
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "run" / "checkpoints" / "step-00000010")
    Path("text").write_text("a dog\n")
    for folder in ("run", "run/checkpoints"):
        message = said("translate", folder, code=1)
        checkpoint = re.search(r"run/checkpoints/step-\d+", message)
        assert checkpoint is not None
        said("translate", checkpoint[0], "-i", "text", "-o", f"{len(folder)}.out")
