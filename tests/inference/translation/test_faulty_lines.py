"""`--on-error` and `--alignments` of `dragoman translate`: N lines in, N lines out, whatever the lines contain."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import write_tiny_model

from dragoman import Translator, translate_file
from dragoman.cli.main import main
from dragoman.models.attention_weights import AttentionChoice
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.statistical.alignment.links import format_pharaoh
from dragoman.text.sentences.division import divide

LIMITED = {"preset": "tiny", "width": 16, "positions": {"kind": "learned", "limit": 24}}
COMMAND = ["translate", "model", "-i", "in", "--beam", "1", "--batch-size", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with twelve positions."""
    folder = tmp_path_factory.mktemp("faulty") / "model"
    write_tiny_model(folder, config=ModelConfig.model_validate(LIMITED))
    return folder


@pytest.fixture(autouse=True)
def working_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman.inference.translation.translator.WINDOW_BATCHES", 1)


def test_broken_lines_stop_are_repaired_or_left_blank(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_bytes(b"a dog\na \xff dog\n\nthe \xc3 park \xe2\x82\ntwo men\n")
    Path("repaired").write_text("a dog\na \ufffd dog\n\nthe \ufffd park \ufffd\ntwo men\n")
    assert main(COMMAND) == 1
    assert "in, line 2: broken UTF-8" in " ".join(capfd.readouterr().err.split())
    assert main([*COMMAND[:3], "repaired", *COMMAND[4:]]) == 0
    expected = capfd.readouterr().out
    assert main([*COMMAND, "--on-error", "replace"]) == 0
    told = capfd.readouterr()
    assert told.out == expected
    assert "2 line(s) with broken UTF-8 were repaired: line 2, 4" in told.err
    assert main([*COMMAND, "--on-error", "blank", "--nbest", "1"]) == 0
    told = capfd.readouterr()
    assert told.out.split("\n") == [*expected.split("\n")[:1], "", "", "", *expected.split("\n")[4:]]
    assert "2 line(s) with broken UTF-8 were left blank: line 2, 4" in told.err
    assert main([*COMMAND, "--on-error", "skip"]) == 2
    assert "stop, replace or blank" in capfd.readouterr().err


def test_blank_lines_have_no_prefix(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_bytes(b"a dog\na \xff dog\n" + b"a dog " * 60 + b"\n")
    Path("prefix").write_text("Ein\nEin\nEin\n")
    assert main([*COMMAND, "--on-error", "blank", "--prefix", "prefix"]) == 0
    first, *rest = capfd.readouterr().out.split("\n")
    assert first.startswith("Ein") and rest == ["", "", ""]


def test_long_lines_stop_are_divided_or_left_blank(capfd: pytest.CaptureFixture[str]) -> None:
    long = "the dog, " * 50 + "ran.  Two men sleep"
    lines = ["a dog", long, "two men", "", long, "a man"]
    Path("in").write_text("".join(f"{line}\n" for line in lines))
    assert main(COMMAND) == 1
    assert "in, line 2:" in " ".join(capfd.readouterr().err.split())
    assert main([*COMMAND, "--on-error", "blank"]) == 0
    blank = capfd.readouterr()
    assert [bool(line) for line in blank.out.split("\n")[:-1]] == [True, False, True, False, False, True]
    assert "2 line(s) exceeding the model's maximum length were left blank: line 2, 5" in blank.err
    assert main([*COMMAND, "--on-error", "replace", "--scores"]) == 0
    told = capfd.readouterr()
    assert "2 line(s) exceeding the model's maximum length were translated in parts: line 2, 5" in told.err
    scores, found = zip(*(line.split("\t") for line in told.out.split("\n")[:-1]), strict=True)
    translator = Translator.load("model", "cpu")
    sentence, *others = long.split("  ")
    parts = [*divide(sentence, lambda part: len(translator.tokenizers.source.encode(part)) <= 23), *others]
    alone = translator.translate([part.strip() for part in parts], beam=1)
    assert len(parts) > 10
    assert found[1] == found[4] and "".join(found[1].split()) == "".join("".join(alone).split())
    assert float(scores[1]) < float(scores[0])
    assert [found[0], *found[2:4], found[5]] == translator.translate(["a dog", "two men", "", "a man"], beam=1)


def test_requirements_of_a_line_apply_to_its_parts(capfd: pytest.CaptureFixture[str]) -> None:
    """Phrases and the prefix belong to the first part; protected spans and the guard apply to every part."""
    long = "the dog, " * 20 + "ran to http://a.de/b.  Two men sleep"
    Path("in").write_bytes(f"a dog\n{long}\n".encode() + b"a \xff dog\n")
    Path("phrases").write_text("Hund\nHund\nHund\n")
    Path("prefix").write_text("Ein\nEin\nEin\n")
    wanted = ["--constraints", "phrases", "--prefix", "prefix", "--keep", "url"]
    assert main([*COMMAND, *wanted, "--on-error", "replace"]) == 0
    found = capfd.readouterr().out.split("\n")
    assert all("Hund" in line and line.startswith("Ein") for line in found[:3])
    assert found[1].count("http://a.de/b") == 1
    assert main([*COMMAND, *wanted, "--on-error", "blank"]) == 0
    blank = capfd.readouterr().out.split("\n")
    assert blank == [found[0], "", "", ""]
    assert main([*COMMAND, "--on-error", "replace", "--nbest", "3", "--beam", "3", "--mbr", "chrf"]) == 0
    assert len(capfd.readouterr().out.split("\n")) == 4


def test_only_lines_that_are_too_long_are_left_blank(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_text("a dog\n\na dog\n")
    Path("phrases").write_text("Hund\nHund\nHund\n")
    for on_error in ("blank", "replace"):
        assert main([*COMMAND, "--constraints", "phrases", "--on-error", on_error]) == 1
        assert "line 2: a blank line cannot have required phrases" in " ".join(capfd.readouterr().err.split())


def test_each_token_of_a_line_in_parts_has_its_score(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_text("the dog, " * 20 + "ran\na dog\n")
    short = ["search.length_factor=1", "search.length_margin=3"]
    for more in ([], short):
        command = [*COMMAND, *more, "--on-error", "replace", "--scores", "--token-scores", "--tree", "tree"]
        assert main(command) == 0
        trees = Path("tree").read_text().splitlines()
        Path("tree").unlink()
        for line in capfd.readouterr().out.split("\n")[:-1]:
            score, _, tokens, scores = line.split("\t")
            assert len(tokens.split(" ")) == len(scores.split(" "))
            assert sum(map(float, scores.split())) == pytest.approx(float(score), abs=1e-3)
    divided, whole = map(json.loads, trees)
    assert divided["nodes"] == [] and whole["nodes"] != []


def test_several_models_have_no_alignment(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_text("a dog\n")
    assert main([*COMMAND, "--ensemble", "model", "--alignments", "links"]) == 2
    assert "ensembles and exported models do not show attention" in " ".join(capfd.readouterr().err.split())
    assert not Path("links").exists()


def test_alignments_are_written_next_to_the_translations(capfd: pytest.CaptureFixture[str]) -> None:
    Path("in").write_bytes(b"a dog\n\n  \nthe man sees a\xff dog\n" + b"a dog " * 60 + b"\ntwo men\n")
    short = ["search.length_factor=1", "search.length_margin=3"]  # an untrained model does not end by itself
    command = [*COMMAND, *short, "--on-error", "replace", "--alignments"]
    assert main([*command, "links"]) == 0
    told = capfd.readouterr()
    found, links = told.out.split("\n")[:-1], Path("links").read_text().split("\n")
    assert links.pop() == "" and len(links) == len(found) == 6
    translator = Translator.load("model", "cpu")
    for line in (0, 1, 2, 3, 5):
        source = Path("in").read_text(errors="replace").split("\n")[line]
        if len(translator.tokenizers.target.encode(found[line])) > 23:  # its last token was never read
            assert links[line] == ""
            continue
        assert links[line] == format_pharaoh(translator.align([source], [found[line]])[0])
    assert links[0] and links[3] and links[4] and links[5]
    assert links[1] == links[2] == ""
    assert main([*command, "links.gz", "-o", "out.gz"]) == 0
    assert gzip.decompress(Path("links.gz").read_bytes()) == Path("links").read_bytes()
    assert main([*command, "other", "--alignment-layer", "1", "--alignment-head", "2"]) == 0
    source, target = "the man sees a\ufffd dog", found[3]
    expected = translator.align([source], [target], attention=AttentionChoice(1, 2))[0]
    assert Path("other").read_text().split("\n")[3] == format_pharaoh(expected)
    for options, told_of in (
        (["-o", "both"], "is the same file as --output"),
        (["--alignment-layer", "9"], "there is no layer 9"),
    ):
        assert main([*command, "both", *options]) != 0
        assert told_of in " ".join(capfd.readouterr().err.split())
    assert main([*COMMAND, "--alignment-layer", "1"]) == 2


def test_the_alignment_file_is_resumed(
    stop: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("dragoman.inference.translation.files.translated_file.COMMIT_INTERVAL", 0.0)
    lines = [b"the dog %d" % number if number % 3 else b"a \xff dog %d" % number for number in range(15)]
    Path("in").write_bytes(b"\n".join(lines) + b"\n")
    command = [*COMMAND, "--on-error", "replace"]
    assert main([*command, "-o", "whole", "--alignments", "whole.links"]) == 0
    capfd.readouterr()
    stop(7)  # type: ignore[call-arg]
    assert main([*command, "-o", "out", "--alignments", "links"]) == 130
    assert not Path("links").exists()
    kept = Path("out.partial/companion").read_bytes()
    Path("out.partial/companion").write_bytes(b"")
    assert main([*command, "-o", "out", "--alignments", "links", "--resume"]) != 0
    assert "companion was truncated" in " ".join(capfd.readouterr().err.split())
    Path("out.partial/companion").write_bytes(kept)
    with Path("out.partial/companion").open("ab") as file:  # the state after a kill between two writes
        file.write(b"0-0 rubbish\n")
    capfd.readouterr()
    assert main([*command, "-o", "out", "--resume"]) == 2
    assert "alignments" in capfd.readouterr().err
    assert main([*COMMAND, "-o", "out", "--alignments", "links", "--resume"]) == 2
    assert "on_error" in capfd.readouterr().err
    assert main([*command, "-o", "out", "--alignments", "links", "--resume"]) == 0
    assert "5 line(s) with broken UTF-8 were repaired: line 7, 10, 13 …" in capfd.readouterr().err
    assert Path("out").read_bytes() == Path("whole").read_bytes()
    assert Path("links").read_bytes() == Path("whole.links").read_bytes()
    assert not Path("out.partial").exists()


def test_from_python() -> None:
    Path("in").write_bytes(b"a \xff dog\n")
    done = translate_file("model", "in", "out", on_error="blank", alignments="links", beam=1)
    assert done.lines == 1 and Path("out").read_text() == Path("links").read_text() == "\n"


@given(text=st.text(max_size=60) | st.text(alphabet="ab ,.;\u0301\n。", max_size=80), limit=st.integers(1, 12))
def test_the_parts_of_a_text_join_to_the_text(text: str, limit: int) -> None:
    parts = divide(text, lambda part: len(part) <= limit)
    assert "".join(parts) == text
    assert all(len(part.strip()) <= limit for part in parts)
    if len(text.strip()) <= limit:
        assert parts == [text]


def test_a_text_is_divided_at_the_best_position() -> None:
    def parts(text: str, limit: int) -> list[str]:
        return divide(text, lambda part: len(part) <= limit)

    assert parts("one two, three; four five", 16) == ["one two, three;", " four five"]
    assert parts("one two, three four five", 16) == ["one two,", " three four five"]
    assert parts("one two three four", 10) == ["one two", " three four"]
    assert parts("abcdefgh", 4) == ["abcd", "efgh"]
    assert parts("abce\u0301efgh", 5) == ["abce\u0301", "efgh"]
