"""`dragoman translate` with constraints, a glossary and protected spans."""

from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from dragoman import Sampling, Translator
from dragoman.base.errors import ConfigError
from dragoman.cli.main import main

SHORT = ["search.length_factor=0.5", "search.length_margin=3"]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a command that translates `in`, four lines of which the third is blank, two lines at a time."""
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)
    monkeypatch.chdir(tmp_path)
    write_tiny_model(tmp_path / "model")
    Path("in").write_text("a dog\nsee www.a.de 7\n\nthe man\n")
    return ["translate", "model", *SHORT, "-i", "in", "--batch-size", "2", "--beam", "2"]


def test_all_options_together(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("phrases").write_text("Katze|Kater\tein Haus\n\n\na\\|b\n")
    Path("terms").write_text("dog\tHund\tHunde\nman\n")
    arguments = ["--constraints", "phrases", "--glossary", "terms", "--keep", "url,number", "--keep-pattern", "see"]
    assert main([*command, *arguments, "-o", "out"]) == 0
    assert "native engine" not in capsys.readouterr().err, "nobody asked for it"
    first, second, third, fourth = Path("out").read_text(encoding="utf-8").split("\n")[:-1]
    assert ("Katze" in first or "Kater" in first) and "ein Haus" in first and "Hund" in first
    assert all(second.count(span) == 1 for span in ("see", "www.a.de"))
    assert third == ""
    assert "a|b" in fourth and "man" in fourth
    translator = Translator.load("model", "cpu", engine="torch")
    asked = {"glossary": "terms", "keep": ["url", "number"], "keep_patterns": ["see"], "beam": 2, "search": SHORT}
    assert translator.translate(["see www.a.de 7"], **asked) == [second]
    request = translator.request(constraints=[["Katze", "Kater"], "ein Haus"], **asked)
    assert [each.text for (each,) in translator.translate_nbest(["a dog"], request)] == [first]


def test_constraints_are_part_of_the_journal(command: list[str]) -> None:
    translator = Translator.load("model", "cpu", engine="torch")
    Path("terms").write_text("dog\tHund\n")
    before = translator.request(glossary="terms").settings()
    Path("terms").write_text("dog\tKatze\n")
    assert translator.request(glossary="terms").settings() != before
    assert translator.request(keep=["url"]).settings() != translator.request(keep_patterns=["url"]).settings()
    assert translator.request().settings()["control"] is None


@pytest.mark.parametrize(
    ("arguments", "content", "code", "message"),
    [
        (["--constraints", "file"], "x\n", 1, "in has 4 line(s) and file has 1: line n of --constraints must contain"),
        (["--constraints", "file"], "x\na||b\n\n\n", 1, "file, line 2"),
        (["--constraints", "file"], "\n\nx\n\n", 1, "in, line 3: a blank line cannot have required phrases"),
        (["--glossary", "file"], "a\tb\n\tc\n", 1, "file, line 2"),
        (["--glossary", "none"], "", 1, "There is no file none"),
        (["--keep", "urls"], "", 2, "unknown kind 'urls' to keep: choose among number, url"),
        (["--keep-pattern", "(("], "", 2, "'((' is not a regular expression"),
        (["--engine", "ctranslate2", "--keep", "url"], "", 2, "several constraints"),
    ],
)
def test_invalid_constraints_are_reported(
    command: list[str],
    arguments: list[str],
    content: str,
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "ctranslate2" in arguments:
        pytest.importorskip("ctranslate2")
    Path("file").write_text(content)
    assert main([*command, *arguments, "-o", "out"]) == code
    assert message in capsys.readouterr().err
    assert not Path("out").exists()


def test_constraints_and_sampling_are_refused_together(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "model", "-i", "in", "--sample", "--keep", "url"]) == 2
    assert "--keep can only be used without --sample" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="leave out sampling"):
        Translator.load("model", "cpu", engine="torch").request(sampling=Sampling(), constraints=["Hund"])
