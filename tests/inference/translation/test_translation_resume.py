"""`dragoman translate --resume`: the work that is kept, how it continues, and what it refuses."""

import gzip
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trained_model import FOLDER as MODEL

from dragoman.base import journal as journals
from dragoman.base.journal import OutputJournal
from dragoman.cli.main import main
from dragoman.data.files.lines import open_lines

LINES, WINDOW = 11, 2
DOERS = ("dog", "man", "two men", "dog in the park", "man in a park")
COMMAND = ["translate", "model", "-i", "in", "--batch-size", str(WINDOW), "--engine", "torch"]
GREEDY = [*COMMAND, "--beam", "1", "-o", "out"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`in` with six windows, committed one at a time; a prefix for every second line; a model."""
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)
    monkeypatch.setattr("dragoman.inference.translation.files.translated_file.COMMIT_INTERVAL", 0.0)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(MODEL, "model")
    Path("in").write_text("".join(f"the {DOERS[number % 5]} runs {number}.\n" for number in range(LINES)))
    Path("prefix").write_text("Ein\n\n" * (LINES // 2) + "Ein\n")


@pytest.fixture
def half(stop: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    """A greedy translation to `out` that was stopped after two windows."""
    stop(5)
    assert main(GREEDY) == 130
    capfd.readouterr()


@pytest.fixture
def failure(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return the message of a command that fails."""

    def run(*command: str, code: int = 2) -> str:
        assert main([*command]) == code
        return " ".join(capfd.readouterr().err.split())

    return run


@pytest.mark.parametrize(
    ("options", "out"),
    [
        (["--beam", "1"], "out.gz"),
        (["--beam", "3", "--nbest", "3"], "out"),
        pytest.param(["--beam", "1", "--scores", "--prefix", "prefix"], "out.zst", marks=pytest.mark.slow),
        pytest.param(["--sample", "--temperature", "2", "--nbest", "2"], "out.xz", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_translation_resumes_to_the_same_bytes(
    options: list[str], out: str, stop: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    if out == "out":  # what is written to the standard output
        assert main([*COMMAND, *options]) == 0
        Path(f"whole.{out}").write_text(capfd.readouterr().out)
    else:
        assert main([*COMMAND, *options, "-o", f"whole.{out}"]) == 0
    command = [*COMMAND, *options, "-o", out]
    for line, number, code in ((5, signal.SIGINT, 130), (9, signal.SIGTERM, 143)):
        stop(line, number)
        assert main([*command, "--resume"]) == code
        told = " ".join(capfd.readouterr().err.split())
        kept = line // WINDOW * WINDOW
        assert f"interrupted after line {kept}; " in told and "Resume with the same command and --resume" in told
        assert not Path(out).exists()
        with Path(f"{out}.partial/text").open("ab") as text:
            text.write(b"half a wind")  # written, but not committed
    assert main([*command, "--resume"]) == 0
    assert "Resuming after line 8." in capfd.readouterr().err
    assert Path(out).read_bytes() == Path(f"whole.{out}").read_bytes()
    assert not Path(f"{out}.partial").exists()


@pytest.mark.usefixtures("half")
def test_unfinished_work_is_not_lost_without_resume(failure: Callable[..., str]) -> None:
    before = Path("out.partial/text").read_bytes()
    assert "the first 4 lines: add --resume to continue, or delete that folder" in failure(*GREEDY)
    assert Path("out.partial/text").read_bytes() == before
    assert main([*GREEDY, "--resume"]) == 0


@pytest.mark.usefixtures("half")
@pytest.mark.parametrize(
    ("options", "different"),
    [
        (["--beam", "2"], "decoding.beam (was 1, now 2)"),
        (["--length-penalty", "0.3"], "decoding.length_penalty.alpha (was"),
        (["--scores"], "scores (was False, now True)"),
        (["--beam", "2", "--nbest", "2"], "decoding.beam (was 1, now 2), decoding.nbest (was 1, now 2)"),
        (["--prefix", "prefix"], "prefix (was False, now True)"),
        (["--engine", "native", "--precision", "int8"], "precision (was 'float32', now 'int8')"),
    ],
)
def test_other_settings_are_reported(options: list[str], different: str, failure: Callable[..., str]) -> None:
    told = failure(*GREEDY, *options, "--resume")
    assert "work with other options: " in told and different in told and "delete that folder" in told


@pytest.mark.usefixtures("half")
def test_another_model_is_reported(failure: Callable[..., str]) -> None:
    with Path("model/tokenizer.json").open("a") as tokenizer:
        tokenizer.write("\n")
    assert "work with other options: model (was" in failure(*GREEDY, "--resume")


@pytest.mark.usefixtures("half")
def test_a_changed_text_is_refused_and_a_longer_one_accepted(failure: Callable[..., str]) -> None:
    lines = Path("in").read_text().splitlines(keepends=True)
    Path("in").write_text("".join([*lines[:2], "another\n", *lines[3:]]))
    assert "in has changed between lines 3 and 4" in failure(*GREEDY, "--resume")
    Path("in").write_text("".join(lines[:3]))
    assert "in has 3 line(s), but 4 lines are already done" in failure(*GREEDY, "--resume")
    Path("in").write_text("".join(lines) + "one more\n")  # the completed part has not changed
    assert main([*GREEDY, "--resume"]) == 0
    shutil.move("out", "resumed")
    assert main(GREEDY) == 0
    assert Path("resumed").read_bytes() == Path("out").read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("half")
def test_a_moved_text_and_other_batches_are_resumed() -> None:
    Path("packed.gz").write_bytes(gzip.compress(Path("in").read_bytes()))
    command = ["packed.gz" if word == "in" else word for word in GREEDY] + ["--resume"]
    command[command.index("--batch-size") + 1] = "3"
    assert main(command) == 0
    assert main([*GREEDY[:-1], "whole"]) == 0
    assert Path("out").read_bytes() == Path("whole").read_bytes()


def test_changed_prefixes_are_reported(stop: Callable[..., None], failure: Callable[..., str]) -> None:
    stop(5)
    assert main([*GREEDY, "--prefix", "prefix"]) == 130
    Path("prefix").write_text("Zwei\n" * LINES)
    assert "prefix has changed between lines 1 and 2" in failure(*GREEDY, "--prefix", "prefix", "--resume")


def test_work_before_a_broken_line_is_kept_until_it_is_fixed(failure: Callable[..., str]) -> None:
    good = Path("in").read_bytes()
    Path("in").write_bytes(good.replace(b"runs 6.", b"runs \xff."))
    told = failure(*GREEDY, code=1)
    assert "the first 6 lines are kept. After fixing the cause" in told and "in, line 7: broken UTF-8" in told
    Path("in").write_bytes(good)
    assert main([*GREEDY, "--resume"]) == 0
    assert main([*GREEDY[:-1], "whole"]) == 0
    assert Path("out").read_bytes() == Path("whole").read_bytes()


def test_a_full_disk_loses_no_committed_work(failure: Callable[..., str]) -> None:
    """With a real limit on file sizes, above the size of the journal's database."""
    command = [*COMMAND, "--sample", "--nbest", "120", "-o", "out"]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        told = failure(*command, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "Free some space" in told and "resume with the same command and --resume" in told
    assert main([*command, "--resume"]) == 0
    assert main([*command[:-1], "whole"]) == 0
    assert Path("out").stat().st_size > 60_000
    assert Path("out").read_bytes() == Path("whole").read_bytes()


def test_translations_that_cannot_be_resumed_are_refused(
    failure: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "name it with --output" in failure(*GREEDY[:-2], "--resume")
    os.mkfifo("pipe")
    again = "can be read only once: store the text in a file"
    piped = ["pipe" if word == "in" else word for word in GREEDY]
    assert f"pipe {again}" in failure(*piped, "--resume", code=1)
    assert f"pipe {again}" in failure(*GREEDY, "--prefix", "pipe", "--resume", code=1)
    without = [word for word in GREEDY if word not in ("-i", "in")]
    assert f"the standard input {again}" in failure(*without, "--resume", code=1)
    assert "not a regular file" in failure(*GREEDY[:-1], "/dev/full", code=1)
    assert "create its folder first" in failure(*GREEDY[:-1], "nowhere/out", code=1)
    assert not list(Path().glob("*partial"))


def test_a_stopped_translation_of_a_pipe_keeps_nothing(stop: Callable[..., None], failure: Callable[..., str]) -> None:
    stop(5)
    with open("in") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", file)
        told = failure(*[word for word in GREEDY if word not in ("-i", "in")], code=130)
    assert "a pipe cannot be read again" in told and not list(Path().glob("out*"))


def test_a_foreign_folder_is_not_touched(failure: Callable[..., str]) -> None:
    Path("out.partial").mkdir()
    Path("out.partial/mine").touch()
    assert "out.partial contains mine, which dragoman did not write" in failure(*GREEDY)
    assert Path("out.partial/mine").exists()


@pytest.mark.usefixtures("half")
def test_two_processes_and_lost_text_are_reported(failure: Callable[..., str]) -> None:
    text = Path("out.partial/text")
    os.truncate(text, text.stat().st_size - 1)
    assert "text was truncated: delete" in failure(*GREEDY, "--resume", code=1)
    shutil.rmtree("out.partial")
    with OutputJournal(Path("out").resolve(), {}):
        assert "another process is working" in failure(*GREEDY, "--resume")
    assert main(GREEDY) == 0


class Killed(BaseException):
    """Raised in place of a kill."""


@pytest.mark.parametrize("resume", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_kill_around_the_last_rename(resume: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((journals.os, "replace"), (journals.shutil, "rmtree")):  # before it, and after it
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, lambda *paths: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                main([*GREEDY, "--resume"])
    assert len(list(open_lines(Path("out")))) == LINES
    if resume:
        assert main([*GREEDY, "--resume"]) == 0
    else:
        assert main(GREEDY) == 2  # the file is complete
        Path("out").unlink()
        assert main(GREEDY) == 0
    assert len(list(open_lines(Path("out")))) == LINES
    assert not list(Path().glob("*partial"))


def test_an_empty_file_is_rejected_and_an_empty_standard_input_is_an_empty_file_of_its_format(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("in").write_text("")
    assert main([*GREEDY[:-1], "out.gz"]) == 1
    assert "in is empty: give a file with at least one line" in capsys.readouterr().err
    assert not Path("out.gz").exists()
    with Path("in").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        position = GREEDY.index("in")
        assert main([*GREEDY[: position - 1], *GREEDY[position + 1 : -1], "out.gz"]) == 0
    assert Path("out.gz").stat().st_size and not list(open_lines(Path("out.gz")))
