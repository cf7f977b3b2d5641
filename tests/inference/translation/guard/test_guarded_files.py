"""`dragoman translate --guard`: its changes and reports, resuming, and its combination with other options."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_model import tiny_config, write_tiny_model

from dragoman import Translator, translate_file
from dragoman.cli.main import main
from dragoman.inference.translation.guard.guard import Guard
from dragoman.models.kinds.encoder_decoder import ModelConfig

LINES = [f"the {noun} sees {number} dogs" for number in (3, 45) for noun in ("man", "dog", "park")] + ["", "a dog ."]
SHORT = ["search.length_factor=1", "search.length_margin=8"]  # an untrained model does not end by itself
COMMAND = ["translate", "model", *SHORT, "-i", "in", "--beam", "2", "--batch-size", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random parameters."""
    folder = tmp_path_factory.mktemp("guarded") / "model"
    write_tiny_model(folder, seed=5)
    return folder


@pytest.fixture(autouse=True)
def working_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)
    monkeypatch.setattr("dragoman.inference.translation.files.translated_file.COMMIT_INTERVAL", 0.0)
    Path("in").write_text("".join(f"{line}\n" for line in LINES))


def reported(text: str) -> dict[str, int]:
    """Return the number of lines by the guard's action."""
    found = re.findall(r"warning: ([\d,]+) line\(s\) (.+?)(?:: line|, all before)", " ".join(text.split()))
    return {what: int(count) for count, what in found if "have unfinished" not in what}


def test_each_kind_is_counted_and_nothing_else_changes(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(COMMAND) == 0
    plain = capfd.readouterr()
    assert main([*COMMAND, "--guard"]) == 0
    guarded = capfd.readouterr()
    assert "search" not in plain.err and guarded.out.count("\n") == len(LINES)
    found = [Guard().findings(*pair) for pair in zip(LINES, plain.out.split("\n"), strict=False)]
    assert any(found)
    for findings, before, after in zip(found, plain.out.split("\n"), guarded.out.split("\n"), strict=False):
        assert findings or after == before
    translator = Translator.load("model", "cpu")
    request = translator.request(beam=2, search=SHORT, guard=True)
    translations = [each[0] for each in translator.translate_nbest(LINES, request)]
    assert [each.text for each in translations] == guarded.out.split("\n")[:-1]
    expected: dict[str, int] = {}
    for each in translations:
        for what, repaired in each.guarded.outcomes().items() if each.guarded else ():
            key = f"{what}: {'repaired by another search' if repaired else 'not repaired by any other search'}"
            expected[key] = expected.get(key, 0) + 1
    assert reported(guarded.err) == expected and len(expected) > 1
    assert main([*COMMAND, "--guard", "--batch-size", "7"]) == 0
    assert capfd.readouterr().out == guarded.out


@pytest.mark.slow
def test_a_guarded_translation_is_resumed(stop: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_text("".join(f"{line}\n" for line in LINES[2:6]))
    command = [*COMMAND, "--guard", "--engine", "torch"]
    assert main([*command, "-o", "whole"]) == 0
    counted = reported(capfd.readouterr().err)
    stop(3)  # type: ignore[call-arg]
    assert main([*command, "-o", "out"]) == 130
    assert not Path("out").exists()
    capfd.readouterr()
    assert main([*COMMAND, "--engine", "torch", "-o", "out", "--resume"]) == 2
    assert "guard" in capfd.readouterr().err
    assert main([*command, "-o", "out", "--resume"]) == 0
    assert Path("out").read_bytes() == Path("whole").read_bytes()
    assert reported(capfd.readouterr().err) == counted


@pytest.mark.slow
def test_guard_with_other_options(capfd: pytest.CaptureFixture[str]) -> None:
    """N lines, alignments of the written translations, and required phrases."""
    lines = [LINES[0], LINES[3], ""]
    Path("in").write_text("".join(f"{line}\n" for line in lines))
    command = [*COMMAND, "--guard"]
    assert main([*command, "--nbest", "2", "--token-scores", "--tree", "tree"]) == 0
    rows = [line.split(" ||| ") for line in capfd.readouterr().out.split("\n")[:-1]]
    assert sorted({int(row[0]) for row in rows}) == list(range(len(lines)))
    trees = [json.loads(line) for line in Path("tree").read_text().splitlines()]
    assert [tree["translations"][0]["text"] for tree in trees] == [
        next(row[1] for row in rows if int(row[0]) == line) for line in range(len(lines))
    ]
    assert main([*command, "--alignments", "links", "--scores"]) == 0
    out = [line.split("\t")[1] for line in capfd.readouterr().out.split("\n")[:-1]]
    translator = Translator.load("model", "cpu")
    links = [" ".join(f"{i}-{j}" for i, j in each) for each in translator.align(lines, out)]
    assert Path("links").read_text().split("\n")[:-1] == links
    Path("phrases").write_text("".join(f"{'Katze' if line else ''}\n" for line in lines))
    assert main([*command, "--constraints", "phrases", "--keep", "number", "--prefix", "phrases"]) == 0
    for source, output in zip(lines, capfd.readouterr().out.split("\n"), strict=False):
        assert ("Katze" in output) == bool(source)
        assert ("45" in output) == ("45" in source)
    for more in (["--mbr", "chrf", "--nbest", "2"], ["--ensemble", "model"]):
        assert main([*command, *more]) == 0
        assert capfd.readouterr().out.count("\n") == len(lines)
    assert main(["translate", "model", "-i", "in", "--guard", "--sample"]) == 2
    assert "--guard can only be used without --sample" in " ".join(capfd.readouterr().err.split())


def test_each_part_of_a_divided_line_is_guarded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    limited = ModelConfig.model_validate({**tiny_config().model_dump(), "positions": {"kind": "learned", "limit": 24}})
    write_tiny_model(tmp_path / "short", config=limited, seed=5)
    Path("in").write_text("the dog, " * 12 + "ran to 45\n\n")
    command = ["translate", "short", "-i", "in", "--beam", "2", "--on-error", "replace", "--guard"]
    assert main(command) == 0
    ran = capfd.readouterr()
    assert ran.out.count("\n") == 2
    counted = reported(ran.err)
    assert counted.pop("exceeding the model's maximum length were translated in parts") == 1
    assert any("repeated a phrase" in what for what in counted) and any("other numbers" in what for what in counted)


@pytest.mark.slow
def test_from_python() -> None:
    assert translate_file("model", "in", "out", beam=2, search=SHORT, guard=True, quiet=True).lines == len(LINES)
    translator = Translator.load("model", "cpu")
    settings = {"beam": 2, "search": SHORT, "guard": True}
    assert Path("out").read_text().split("\n")[:-1] == translator.translate(LINES, **settings)
    assert list(translator.stream(LINES, batch_size=3, **settings)) == translator.translate(LINES, **settings)
