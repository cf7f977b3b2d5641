"""`dragoman inspect lines`, `tree` and `curves` draw what Python returns."""

import csv
import json
from pathlib import Path

import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import tiny_config, write_tiny_model

from dragoman import Translator, inspect
from dragoman.cli.commands.inspection.options import figure_file, named_after
from dragoman.cli.main import main
from dragoman.training.progress.training_curves import run_curves

TRANSFORMER = {"kind": "transformer", "layers": 2}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_tiny_model(folder, config=tiny_config(encoder=TRANSFORMER, decoder=TRANSFORMER))
    return folder


def test_lines_of_a_head(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lines.json"
    command = ["inspect", "lines", str(model), "a dog", "--target", "ein hund", "--out", str(out)]
    assert main([*command, "--kind", "encoder.self_attention", "--layer", "1", "--head", "2", "--token", "1"]) == 0
    figure = json.loads(out.read_text("utf-8"))
    maps = inspect(Translator.load(model, engine="torch"), "a dog", target="ein hund").maps
    (first,) = [each for each in maps if each.name == "encoder.layers.0.self_attention"]
    assert figure["values"]["weights"] == [first.weights[1].tolist()]
    assert (figure["query"], figure["headings"], figure["rows"]) == (0, ["head 2"], list(first.queries))
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err
    new = [*command[:-1], str(tmp_path / "new.svg")]
    for arguments, message in (
        (["--layer", "3"], "has layers 1 to 2"),
        (["--kind", "decoder.attention"], "no weights of kind decoder.attention"),
        (["--head", "9"], "heads 1 to"),
        (["--token", "99"], "the text has the tokens 1 to"),
    ):
        assert main([*new, *arguments]) == 2
        assert message in capsys.readouterr().err


def test_the_tree_is_that_of_the_translation(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tree.json"
    assert main(["inspect", "tree", str(model), "a dog", "--beam", "2", "--nbest", "2", "--out", str(out)]) == 0
    figure = json.loads(out.read_text("utf-8"))
    translator = Translator.load(model, engine="torch")
    (expected,) = translator.translate_nbest(["a dog"], translator.request(beam=2, nbest=2))
    assert [each["text"] for each in figure["outcomes"]] == [each.text for each in expected]
    best = "".join(figure["pieces"][node] for node in figure["best_path"])
    assert best and figure["outcomes"][0]["score"] == pytest.approx(expected[0].score, abs=1e-5)
    write_tiny_language_model(tmp_path / "lm")
    assert main(["inspect", "tree", str(tmp_path / "lm"), "a dog", "--out", str(tmp_path / "x.svg")]) == 1
    assert "cannot translate" in capsys.readouterr().err


def test_the_curves_of_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [tmp_path / "first" / "run", tmp_path / "second" / "run"]
    for number, run in enumerate(runs):
        run.mkdir(parents=True)
        (run / "log.jsonl").write_text(json.dumps({"step": 5, "loss": 1.5 + number}) + '\n{"step": 6, "lo')
    assert main(["inspect", "curves", *map(str, runs), "--out", str(tmp_path / "curves.csv")]) == 0
    rows = list(csv.DictReader((tmp_path / "curves.csv").open()))
    assert [(row["curve"], row["step"], row["value"]) for row in rows] == [
        (str(runs[0]), "5.0", "1.5"),
        (str(runs[1]), "5.0", "2.5"),
    ]
    assert run_curves(runs[:1]).title == "step 5"
    for arguments, message in (([runs[0], runs[0]], "give each folder once"), ([tmp_path], "log.jsonl")):
        assert main(["inspect", "curves", *map(str, arguments), "--out", str(tmp_path / "new.svg")]) != 0
        assert message in capsys.readouterr().err


def test_files_without_out_are_named_after_the_command(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second file has a number; a file without a suffix is an SVG file; other formats are refused."""
    monkeypatch.chdir(tmp_path)
    for command in (["lines"], ["lines"], []):
        assert main(["inspect", *command, str(model), "a dog: 狗?", "--target", "ein hund", "--device", "cpu"]) == 0
    files = ["lines-model-a-dog-狗.svg", "lines-model-a-dog-狗-2.svg", "attention-model-a-dog-狗"]
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(files)
    said = capsys.readouterr().err
    assert all(each in said for each in files)
    assert Path(files[0]).read_text("utf-8").startswith("<?xml")
    assert named_after("tree", model, 20 * "very long ", suffix=".svg") == Path(
        "tree-model-very-long-very-long-very-long-very-long.svg"
    )
    assert figure_file(Path("named"), "tree") == Path("named.svg")
    Path("named.svg").write_text("mine", "utf-8")
    for out, message in (("named", "named.svg already exists"), ("tree.pdf", "not as .pdf")):
        assert main(["inspect", "tree", str(model), "a", "--out", out]) == 2
        assert message in capsys.readouterr().err
