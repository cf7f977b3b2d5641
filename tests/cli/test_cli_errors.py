"""Mistakes at the command line give one clear message on stderr and an exit code, without a traceback."""

import io
import shutil
from pathlib import Path

import pytest
from tiny_model import tiny_config, tiny_tokenizers, write_tiny_model

import dragoman.cli.main as command_line
from dragoman.cli.main import main


@pytest.fixture(scope="module")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    write_tiny_model(folder)
    return folder


@pytest.fixture
def model(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the model that a test may damage."""
    return Path(shutil.copytree(tiny_model_folder, tmp_path / "model"))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text("a dog runs\ntwo dogs sleep\n")
    return path


@pytest.fixture
def failure(capfd: pytest.CaptureFixture):
    """Run a command that must fail; returns its exit code and its message."""

    def run(*arguments: object) -> tuple[int, str]:
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        assert code != 0
        assert captured.out == ""
        assert "Traceback" not in captured.err
        _, error, message = f"\n{captured.err}".rpartition("\nerror: ")  # progress lines may precede it
        assert error
        assert "unexpected" not in message
        return code, message

    return run


def test_a_missing_file_is_named(failure, model: Path, tmp_path: Path, text: Path) -> None:
    assert "nothing.en" in failure("translate", model, "-i", tmp_path / "nothing.en")[1]
    assert "nothing.en" in failure("score", model, "--source", tmp_path / "nothing.en", "--target", text)[1]
    assert "nothing.en" in failure("evaluate", "--reference", text, "--hypothesis", tmp_path / "nothing.en")[1]
    assert "nothing.en" in failure("data", "check", "--source", tmp_path / "nothing.en", "--target", text)[1]
    assert "recipe.yaml" in failure("train", tmp_path / "recipe.yaml")[1]


def test_an_empty_corpus_is_named(failure, tmp_path: Path, text: Path, model: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    files = ["--source", empty, "--target", empty]
    assert str(empty) in failure("data", "check", *files)[1]
    assert str(empty) in failure("score", model, *files)[1]
    valid = ["--valid-source", text, "--valid-target", text]
    assert str(empty) in failure("train", *files, *valid, "--out", tmp_path / "run")[1]


def test_unequal_sides_name_both_counts(failure, tmp_path: Path, text: Path, model: Path) -> None:
    short = tmp_path / "short"
    short.write_text("one\n")
    for command in (["score", model], ["data", "check"]):
        message = failure(*command, "--source", text, "--target", short)[1]
        assert "2" in message
        assert "1" in message
        assert str(short) in message
    assert "2 lines" in failure("evaluate", "--reference", text, "--hypothesis", short)[1]


def test_a_mistyped_key_suggests_the_right_one(failure, tmp_path: Path, text: Path) -> None:
    files = ["--source", text, "--target", text, "--valid-source", text, "--valid-target", text]
    code, message = failure("train", *files, "--out", tmp_path / "run", "train.max_stps=3")
    assert code == 2
    assert "train.max_stps" in message
    assert "did you mean train.max_steps?" in message
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("train:\n  max_steps: 3\n  max_steps: 4\n")
    assert "max_steps" in failure("train", recipe)[1]
    assert not (tmp_path / "run").exists()


def test_arguments_that_are_neither_recipe_nor_setting_are_refused(failure, text: Path) -> None:
    assert failure("train", "fast")[0] == 2
    assert "nothing to train on" in failure("train")[1]
    assert "must be given together" in failure("train", "--source", text)[1]


def test_resume_needs_a_run(failure, tmp_path: Path) -> None:
    assert "no run to resume" in failure("train", "--resume", "--out", tmp_path / "run")[1]
    assert "--out" in failure("train", "--resume")[1]


def test_a_wrong_model_folder_is_reported(failure, tmp_path: Path, text: Path) -> None:
    assert "nowhere does not exist" in failure("translate", tmp_path / "nowhere", "-i", text)[1]
    (tmp_path / "other").mkdir()
    message = failure("translate", tmp_path / "other", "-i", text)[1]
    assert "model.safetensors" in message
    assert "config.yaml" in message
    assert str(text) in failure("translate", text, "-i", text)[1]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_parameter_file_is_reported(failure, model: Path, text: Path, share: float) -> None:
    path = model / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "model.safetensors" in failure("translate", model, "-i", text)[1]
    path.write_bytes(whole)
    assert main(["translate", str(model), "-i", str(text), "--beam", "1"]) == 0


def test_garbage_instead_of_parameters_is_reported(failure, model: Path, text: Path) -> None:
    (model / "model.safetensors").write_bytes(b"\xff" * 4096)
    assert "model.safetensors" in failure("score", model, "--source", text, "--target", text)[1]


def test_a_tokenizer_of_another_vocabulary_is_reported(failure, model: Path, text: Path) -> None:
    tiny_tokenizers(size=275).save(model)
    message = failure("translate", model, "-i", text)[1]
    assert "280" in message
    assert "275" in message


def test_averaging_different_models_is_refused(failure, model: Path, tmp_path: Path) -> None:
    stack = {"layers": 2, "heads": 2, "feedforward": 16}
    write_tiny_model(tmp_path / "deeper", config=tiny_config(encoder=stack))
    assert "different models" in failure("average", model, tmp_path / "deeper", "-o", tmp_path / "mean")[1]
    assert not (tmp_path / "mean").exists()


def test_broken_utf8_is_named_with_its_line_and_leaves_no_output(failure, model: Path, tmp_path: Path) -> None:
    broken, out = tmp_path / "latin1", tmp_path / "out"
    broken.write_bytes("fine\nGr\u00fc\u00dfe\n".encode("latin-1"))
    out.touch()
    message = failure("translate", model, "-i", broken, "-o", out)[1]
    assert "line 2" in message
    assert out.read_text() == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latin1", "model", "out"]


def test_search_settings_are_checked(failure, model: Path, text: Path) -> None:
    assert failure("translate", model, "-i", text, "--beam", 2, "--nbest", 3)[0] == 2
    assert "length penalty" in failure("translate", model, "-i", text, "--length-penalty", "much")[1]
    assert "device" in failure("translate", model, "-i", text, "--device", "gpu")[1]


def test_evaluate_needs_something_to_evaluate(failure, model: Path, text: Path) -> None:
    assert "--hypothesis" in failure("evaluate", "--reference", text)[1]
    assert "--source" in failure("evaluate", model, "--reference", text)[1]


@pytest.mark.parametrize("option", ["--to", "--tags", "--beam", "--length-penalty", "--unknown"])
def test_translation_options_are_refused_with_given_translations(failure, text: Path, option: str) -> None:
    told = failure("evaluate", "--reference", text, "--hypothesis", text, option, "1")[1]
    assert f"{option} can only be used with a model to translate with" in told


def test_unknown_options_and_commands_exit_with_2(capfd: pytest.CaptureFixture) -> None:
    assert main(["translate", "model", "--bean", "5"]) == 2
    assert main(["trnslate"]) == 2
    assert "Traceback" not in capfd.readouterr().err


def _train(out: Path, source: Path, valid: Path, *more: object) -> list[object]:
    """Training that would end at once if nothing were wrong."""
    files = ["--source", source, "--target", source, "--valid-source", valid, "--valid-target", valid]
    tiny = ["model.preset=null", "model.width=8", "text.subword.size=270", "train.max_steps=1"]
    return ["train", *files, "--out", out, *tiny, *more]


def test_cheap_checks_come_before_anything_is_written(failure, tmp_path: Path, text: Path) -> None:
    run, blank, empty = tmp_path / "run", tmp_path / "blank", tmp_path / "empty"
    blank.write_text("\n \n")
    empty.write_text("")
    latin = tmp_path / "latin"
    latin.write_bytes(b"Gr\xfc\xdfe\n")
    assert "nothing.en" in failure(*_train(run, text, tmp_path / "nothing.en"))[1]
    assert "nothing.en" in failure(*_train(run, tmp_path / "nothing.en", text))[1]
    assert str(empty) in failure(*_train(run, empty, text))[1]
    assert str(empty) in failure(*_train(run, text, empty))[1]
    assert "every line of the source side is blank" in failure(*_train(run, text, blank))[1]
    assert "line 1" in failure(*_train(run, text, latin))[1]
    assert "is a folder, not a file" in failure(*_train(run, tmp_path, text))[1]
    code, message = failure(*_train(run, text, text, "train.device=gpu"))
    assert code == 2
    assert "expected auto, cpu, cuda" in message
    assert "train.threads" in failure(*_train(run, text, text, "train.threads=1000000000000"))[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blank", "empty", "latin", "text"]


def test_missing_training_inputs_are_named_by_their_options(failure, text: Path, tmp_path: Path) -> None:
    files = ["--source", text, "--target", text]
    assert "--valid-source" in failure("train", *files, "--out", tmp_path / "run")[1]
    assert "--out" in failure("train", *files, "--valid-pairs", text)[1]
    assert "--pairs" in failure("train", *files, "--pairs", text, "--valid-pairs", text, "--out", tmp_path / "run")[1]
    for wrong in ([], [*files, "--pairs", text], ["--source", text]):
        code, message = failure("data", "check", *wrong)
        assert code == 2
        assert "--source" in message and "--pairs" in message


def test_tied_embeddings_of_two_vocabularies_are_refused(failure, text: Path, tmp_path: Path) -> None:
    both = ["text.shared=false", "model.tie_embeddings=true"]
    code, message = failure(*_train(tmp_path / "run", text, text, *both))
    assert code == 2
    assert "model.tie_embeddings" in message
    assert not (tmp_path / "run").exists()


def test_an_impossible_run_folder_is_reported(failure, text: Path, tmp_path: Path) -> None:
    for out in (text, text / "below"):
        message = failure(*_train(out, text, text))[1]
        assert str(out) in message
        assert "choose another path" in message
    assert text.read_text() == "a dog runs\ntwo dogs sleep\n"


def test_no_input_is_overwritten(failure, model: Path, text: Path) -> None:
    before = (model / "model.safetensors").read_bytes()
    assert "choose another name" in failure("average", model, model, "-o", model)[1]
    assert (model / "model.safetensors").read_bytes() == before
    assert "choose another name" in failure("translate", model, "-i", text, "-o", text)[1]
    assert text.read_text() == "a dog runs\ntwo dogs sleep\n"


def test_an_endless_line_of_standard_input_is_refused(
    failure, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.data.files.lines.LONGEST_LINE", 1000)
    path = tmp_path / "long"
    path.write_bytes(b"short\n" + b"x" * 2000)
    with path.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert "standard input, line 2" in failure("translate", model)[1]


def test_more_threads_than_any_machine_has_are_refused(model: Path, text: Path) -> None:
    for threads in ("0", "1000000000"):
        assert main(["translate", str(model), "-i", str(text), "--threads", threads]) == 2


def _failing(error: BaseException):
    def run(*args: object, **kwargs: object) -> None:
        raise error

    return run


def test_an_unexpected_failure_is_one_message(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    monkeypatch.delenv("DRAGOMAN_TRACEBACK", raising=False)
    monkeypatch.setattr(command_line, "root_command", lambda: _failing(ZeroDivisionError("oh")))
    assert main([]) == 1
    err = capfd.readouterr().err
    assert "unexpected ZeroDivisionError" in err
    assert "DRAGOMAN_TRACEBACK=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("DRAGOMAN_TRACEBACK", "1")
    assert main([]) == 1
    assert "Traceback" in capfd.readouterr().err


def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "root_command", lambda: _failing(KeyboardInterrupt()))
    assert main([]) == 130


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_colour", "start"), [("", "\x1b[31m\x1b[1merror\x1b[0m: "), ("1", "error: ")])
def test_on_a_terminal_the_word_error_is_red_unless_colours_are_unwanted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_colour: str, start: str
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setattr("sys.stderr", terminal := _Terminal())
    assert main(["describe", str(tmp_path / "missing")]) == 2
    assert terminal.getvalue().startswith(start)
