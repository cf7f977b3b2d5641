"""The command line for users: streams, files and formats."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_model import write_tiny_model
from training_runs import Server
from waiting import wait_until

from dragoman import Translator, __version__
from dragoman.cli.main import main
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.stream import LineStream

SOURCES = ["A dog runs .", "", "Two men sleep over the grass .", "  ", "A child"]


@pytest.fixture(scope="module")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    write_tiny_model(folder)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.en"
    path.write_text("".join(line + "\n" for line in SOURCES))
    return path


def test_the_version_is_printed(capsys: pytest.CaptureFixture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dragoman {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in ("translate", "train", "describe"))])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    heavy = "{'torch', 'numpy', 'matplotlib', 'tokenizers', 'sacrebleu'}"
    code = (
        f"import sys, dragoman.cli.main as m\nm.main({arguments})\nprint({heavy} & {{*sys.modules}}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"


def test_translate_reads_stdin_and_writes_as_many_lines(
    tiny_model_folder: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with source.open(encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["translate", str(tiny_model_folder)]) == 0
    lines = capfdbinary.readouterr().out.decode().split("\n")
    assert lines.pop() == ""
    expected = [line.replace("\n", " ") for line in Translator.load(tiny_model_folder).translate(SOURCES)]
    assert lines == expected
    assert [not line for line in lines] == [not line.strip() for line in SOURCES]


def test_translate_answers_before_the_pipe_is_closed(server: Server, tiny_model_folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = ["translate", str(tiny_model_folder), "--beam", "1", "--threads", "1"]
    written = tmp_path / "stdout"
    process = server.start(tmp_path, *command, stdin=str(tmp_path / "pipe"))
    with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
        for number, sentence in enumerate((b"A dog runs .\n", b"Two men sleep .\n"), 1):
            pipe.write(sentence)
            wait_until(lambda count=number: written.read_bytes().count(b"\n") == count, "no translation of a line")
    assert process.wait() == 0, process.said
    assert all(line.strip() for line in written.read_bytes().splitlines())


def test_translate_reads_and_writes_files(
    tiny_model_folder: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    out = tmp_path / "out.de"
    assert main(["translate", str(tiny_model_folder), "--input", str(source), "--output", str(out)]) == 0
    assert main(["translate", str(tiny_model_folder), "-i", str(source), "--batch-size", "2"]) == 0
    assert out.read_text() == capfd.readouterr().out
    assert len(out.read_text().split("\n")) == len(SOURCES) + 1


def test_nbest_lines_carry_index_text_and_score(
    tiny_model_folder: Path, source: Path, capfd: pytest.CaptureFixture
) -> None:
    assert main(["translate", str(tiny_model_folder), "-i", str(source), "--nbest", "3", "--beam", "4"]) == 0
    rows = [line.split(" ||| ") for line in capfd.readouterr().out.removesuffix("\n").split("\n")]
    assert [int(row[0]) for row in rows] == [0, 0, 0, 1, 2, 2, 2, 3, 4, 4, 4]
    assert all(math.isfinite(float(row[-1])) for row in rows)


def test_scores_precede_the_text(tiny_model_folder: Path, source: Path, capfd: pytest.CaptureFixture) -> None:
    assert main(["translate", str(tiny_model_folder), "-i", str(source), "--scores"]) == 0
    rows = [line.split("\t", 1) for line in capfd.readouterr().out.removesuffix("\n").split("\n")]
    assert len(rows) == len(SOURCES)
    assert all(float(row[0]) < 0 for row, line in zip(rows, SOURCES, strict=True) if line.strip())


def test_search_settings_follow_the_model(tiny_model_folder: Path, source: Path, capfd: pytest.CaptureFixture) -> None:
    command = ["translate", str(tiny_model_folder), "-i", str(source), "--nbest", "2"]
    translator = Translator.load(tiny_model_folder)
    for setting, search in [("minimum_length=9", {"minimum_length": 9}), ("length_penalty=mean", {})]:
        assert main([*command, f"search.{setting}"]) == 0
        request = translator.request(nbest=2, search=search or {"length_penalty.kind": "mean"})
        expected = [each.text for found in translator.translate_nbest(SOURCES, request) for each in found]
        assert [line.split(" ||| ")[1] for line in capfd.readouterr().out.removesuffix("\n").split("\n")] == expected
        assert translator.request(nbest=2, search=[f"search.{setting}"]) == request
    for setting, told in [
        ("search.minimum_lenght=9", "did you mean search.minimum_length"),
        ("minimum_length=9", "did you mean search.minimum_length"),
        ("search.nbest=2", "--nbest"),
        ("search.minimum_length", "is not a setting"),
        ("search.beam=1", "raise beam"),
    ]:
        assert main([*command, setting]) == 2
        assert told in " ".join(capfd.readouterr().err.split())
    assert main([*command[:-2], "--sample", "search.beam=2"]) == 2
    assert "unknown setting search.beam" in capfd.readouterr().err


def test_translations_start_with_the_lines_of_the_prefix_file(
    server: Server, tiny_model_folder: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    prefixes = ["Ein", "", "", "nichts", "Das Kind"]
    prefix = tmp_path / "prefix.de"
    prefix.write_text("".join(line + "\n" for line in prefixes))
    command = ["translate", str(tiny_model_folder), "--prefix", str(prefix), "search.coverage_penalty=0.2"]
    assert main([*command, "-i", str(source), "--batch-size", "1"]) == 0
    lines = capfd.readouterr().out.removesuffix("\n").split("\n")
    assert len(lines) == len(SOURCES)
    assert all(line.startswith(start) for line, start in zip(lines, prefixes, strict=True))
    assert lines[1] == ""
    assert lines[3] == "nichts"
    piped = server.start(tmp_path, *command, "--threads", "1", stdin=str(source))
    assert piped.wait() == 0, piped.said
    assert (tmp_path / "stdout").read_text().removesuffix("\n").split("\n") == lines


def test_unequal_numbers_of_lines_and_prefixes_are_reported(
    server: Server, tiny_model_folder: Path, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    prefix = tmp_path / "prefix.de"
    for count in (2, 9):
        prefix.write_text("Ein\n" * count)
        command = ["translate", str(tiny_model_folder), "--prefix", str(prefix)]
        assert main([*command, "-i", str(source)]) == 1
        captured = capfd.readouterr()
        assert captured.out == ""
        told = " ".join(captured.err.split())
        assert f"{len(SOURCES)} line(s)" in told and f"has {count}:" in told and "source.en" in told
        piped = server.start(tmp_path, *command, "--threads", "1", stdin=str(source))
        assert piped.wait() == 1
        told = " ".join(piped.said.split())
        lines = "at least" if count < len(SOURCES) else f"has {len(SOURCES)} line(s)"  # a pipe is not read to its end
        assert lines in told and f"has {count}:" in told and "standard input" in told


def test_score_prints_one_line_per_pair_and_the_perplexity(
    tiny_model_folder: Path, source: Path, capfd: pytest.CaptureFixture
) -> None:
    assert main(["score", str(tiny_model_folder), "--source", str(source), "--target", str(source)]) == 0
    captured = capfd.readouterr()
    values = [float(line) for line in captured.out.split()]
    expected = Translator.load(tiny_model_folder).score(SOURCES, SOURCES)
    assert values == pytest.approx([pair.log_probability for pair in expected], abs=1e-4)
    tokens = sum(pair.tokens for pair in expected)
    stated = float(captured.err.split("perplexity per token ")[1].split()[0])
    assert stated == pytest.approx(math.exp(-sum(values) / tokens), rel=1e-4)
    assert f"({tokens} tokens)" in captured.err
    size = sum(len(text.encode()) + 1 for text in SOURCES)
    assert f"per byte {math.exp(-sum(values) / size):.4f} ({size} bytes)" in " ".join(captured.err.split())


@pytest.fixture
def systems(tmp_path: Path) -> dict[str, Path]:
    reference = [
        f"the {size} dog runs over {count} green hills" for size in ("big", "small", "old") for count in range(9)
    ]
    texts = {
        "reference": reference,
        "good": [line.replace("runs", "jumps") if row % 5 == 0 else line for row, line in enumerate(reference)],
        "bad": [line.replace("dog", "cat").replace("green hills", "grass") for line in reference],
    }
    for name, lines in texts.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return {name: tmp_path / name for name in texts}


def test_evaluate_prints_scores_with_signatures(systems: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    assert main(["evaluate", "--reference", str(systems["reference"]), "--hypothesis", str(systems["reference"])]) == 0
    out = capsys.readouterr().out
    assert re.search(r"BLEU = 100\.00 \(95% .*; nrefs:1\|case:mixed\|eff:no\|tok:13a", out)
    assert "chrF2 = 100.00" in out
    assert "TER = 0.00" in out
    assert "lecture BLEU (non-standard) = 100.00" in out


def test_evaluate_compares_two_systems(systems: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    files = ["--reference", systems["reference"], "--hypothesis", systems["bad"], "--hypothesis", systems["good"]]
    assert main(["evaluate", *map(str, files), "--metric", "bleu", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    bad, good = (system["scores"][0]["value"] for system in result["systems"])
    comparison = result["comparisons"][0]
    assert comparison["second"] == str(systems["good"])
    assert comparison["metrics"][0]["difference"] == pytest.approx(good - bad)
    assert comparison["metrics"][0]["p_value"] < 0.05
    assert main(["evaluate", *map(str, files), "--metric", "bleu"]) == 0
    assert f"BLEU: {good - bad:+.2f}" in capsys.readouterr().out


def test_evaluate_shows_bleu_by_source_length(systems: dict[str, Path], capsys: pytest.CaptureFixture) -> None:
    files = ["--reference", systems["reference"], "--hypothesis", systems["good"], "--source", systems["reference"]]
    assert main(["evaluate", *map(str, files), "--metric", "bleu"]) == 0
    assert "(27 sentences)" in capsys.readouterr().out


def test_evaluate_translates_with_a_model(
    tiny_model_folder: Path, systems: dict[str, Path], capsys: pytest.CaptureFixture
) -> None:
    files = ["--reference", systems["reference"], "--source", systems["reference"]]
    assert (
        main(["evaluate", str(tiny_model_folder), *map(str, files), "--json", "--metric", "chrf", "--beam", "1"]) == 0
    )
    system = json.loads(capsys.readouterr().out)["systems"][0]
    assert system["system"] == str(tiny_model_folder)
    assert 0 <= system["scores"][0]["value"] < 50


OF_SEARCH = ("beam", "length_penalty", "coverage_penalty", "unknown")


def test_evaluate_translates_like_translate(
    tiny_model_folder: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs: list[Any] = []
    translations = LineStream.translations

    def spy(self: LineStream, windows: Iterable[Sequence[TextRequest]], *given: Any) -> Iterator[Any]:
        first, *others = windows
        configs.append(first[0][1].decoding)
        return translations(self, [first, *others], *given)

    monkeypatch.setattr(LineStream, "translations", spy)
    model, output = str(tiny_model_folder), str(tmp_path / "output")
    options = ["--beam", "2", "search.coverage_penalty=0.5", "--length-penalty", "none", "--unknown", "forbid"]
    assert main(["translate", model, "-i", str(source), "-o", output, *options]) == 0
    assert main(["evaluate", model, "--reference", output, "--source", str(source), "--metric", "chrf", *options]) == 0
    default = Translator.load(tiny_model_folder).search_config()
    assert configs[0] == configs[1]
    assert all(getattr(configs[0], name) != getattr(default, name) for name in OF_SEARCH)


def test_the_average_of_one_model_is_that_model(tiny_model_folder: Path, tmp_path: Path, source: Path) -> None:
    out = tmp_path / "mean"
    assert main(["average", str(tiny_model_folder), str(tiny_model_folder), "-o", str(out)]) == 0
    assert Translator.load(out).translate(SOURCES) == Translator.load(tiny_model_folder).translate(SOURCES)
