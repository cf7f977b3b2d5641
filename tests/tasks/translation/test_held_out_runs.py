"""Runs without a validation set hold out their own, resume with it, and evaluate on its test set."""

from pathlib import Path

import pytest
from training_runs import SETTINGS, write_corpus

import dragoman
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.folder import CONFIG, read_config
from dragoman.cli.main import main
from dragoman.data.held_out.sets import HeldOutSets
from dragoman.tasks.augmentation.distill import student_recipe
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.verdict.training_pairs import TrainingPairs

SHORT = [*SETTINGS, "train.max_steps=4", "train.validate_every=4", "train.average.count=0"]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the corpus pairs.tsv and a run of it."""
    folder = tmp_path_factory.mktemp("held-out")
    write_corpus(folder, 120)
    pairs = zip(lines(folder / "train.a"), lines(folder / "train.b"), strict=True)
    (folder / "pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "--pairs", "pairs.tsv", "--out", "run", *SHORT]) == 0
    return folder


@pytest.fixture(autouse=True)
def _in_folder(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)


def test_one_file_is_enough(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = load_settings(run / "run" / CONFIG, [], TranslationRun)
    assert settings.data.valid is None
    assert settings.data.held_out is not None
    assert (settings.data.held_out.valid, settings.data.held_out.test) == (12, 12)
    card = (run / "run" / "README.md").read_text()
    assert "12 pairs held out from pairs.tsv" in card
    assert "held out for validation and testing before training (folder `held_out`)" in card
    assert main(["evaluate", "run", "--metric", "chrf", "--beam", "1"]) == 0
    output = capsys.readouterr()
    assert "run/held_out/test.source" in output.err
    assert "chrF2 = " in output.out
    evaluation = dragoman.evaluate("run", metric=["chrf"], beam=1, quiet=True)
    source, reference = (Path(f"run/held_out/test.{side}") for side in ("source", "target"))
    named = dragoman.evaluate("run", source=source, reference=reference, metric=["chrf"], beam=1, quiet=True)
    assert evaluation["chrf"] == named["chrf"]
    assert dragoman.evaluate(sorted(Path("run/checkpoints").iterdir())[0], metric=["chrf"], beam=1, quiet=True).systems


def test_the_dictionary_of_the_verdict_is_not_learned_from_held_out_pairs(run: Path) -> None:
    sets = HeldOutSets.of_model("run")
    assert sets is not None
    keys = sets.keys()
    pairs = TrainingPairs.of_run(read_config(Path("run")), held_out=keys).pairs
    everything = TrainingPairs.of_run(read_config(Path("run"))).pairs
    assert pairs == [pair for pair in everything if not keys.contain(*pair)]
    assert 0 < len(pairs) <= len(everything) - 24
    verdict = dragoman.evaluate("run", metric=["chrf"], beam=1, quiet=True).verdict
    assert verdict is not None and not verdict.missing


def test_a_resumed_run_has_the_same_sets(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in (run / "run" / "held_out").iterdir()}
    assert main(["train", "--pairs", "pairs.tsv", "--out", "run", "--resume", *SHORT, "train.max_steps=6"]) == 0
    assert "Held out: 12 pairs for validation, 12 pairs for testing, in run/held_out" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (run / "run" / "held_out").iterdir()} == before
    assert main(["train", "--resume", "--out", "run", "data.held_out.seed=2"]) == 2
    assert "data.held_out.seed (was 1, now 2)" in capsys.readouterr().err
    path = run / "run" / "held_out" / "valid.source"
    path.write_bytes(path.read_bytes().replace(b"d", b"t"))
    assert main(["train", "--resume", "--out", "run", "train.max_steps=8"]) == 2
    assert "12 pairs held out from pairs.tsv has changed" in capsys.readouterr().err
    path.write_bytes(before["valid.source"])


def test_a_student_is_not_trained_on_the_pairs_that_its_teacher_held_out() -> None:
    student = student_recipe(Path("run"), "tiny", Path("student"))
    sets = HeldOutSets.load(Path("run/held_out"))
    assert sets is not None
    assert (student.data.valid_sets, student.data.test_sets) == (sets.valid, sets.test)
    assert student.data.cleaning.held_out
    assert not student.data.holds_out


def test_pairs_of_a_named_set_are_left_out_if_cleaning_says_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = ["--source", "both.a", "--target", "both.b", "--out", "named", *SHORT]
    for side in "ab":
        (run / f"both.{side}").write_text("".join((run / f"{part}.{side}").read_text() for part in ("train", "valid")))
    valid = ["data.valid={source: valid.a, target: valid.b}", "data.test={source: valid.a, target: valid.b}"]
    assert main(["train", *named, *valid, "data.cleaning.held_out=true", "train.max_steps=1"]) == 0
    output = capsys.readouterr().err
    assert "held out, or alike" in output
    assert "validation pairs are also in the training corpora" not in output
    assert main(["evaluate", "named", "--metric", "chrf", "--beam", "1"]) == 0
    assert "Test set: valid.a + valid.b" in capsys.readouterr().err


def test_statistical_runs_hold_out_pairs(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = ["task.kind=statistical_translation", "model.method.kind=dictionary", "threads=1"]
    assert main(["train", "--pairs", "pairs.tsv", "--out", "dictionary", *recipe]) == 0
    assert "Held out: 12 pairs for validation, 12 pairs for testing, in dictionary/held_out" in capsys.readouterr().err
    for name in ("valid.source", "test.target"):
        assert lines(run / "dictionary/held_out" / name) == lines(run / "run/held_out" / name)
    assert main(["evaluate", "dictionary", "--metric", "chrf"]) == 0
    assert "dictionary/held_out/test.source" in capsys.readouterr().err


def test_folders_without_a_test_set_say_what_to_give(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *write_corpus(run, 60)[:-1], "own", *SHORT, "train.max_steps=1"]) == 0
    assert not (run / "own" / "held_out").exists()
    assert main(["evaluate", "own"]) == 2
    assert "own has no test set of its own" in capsys.readouterr().err


def test_several_languages_need_a_choice(run: Path) -> None:
    sides = lines(run / "train.a"), lines(run / "train.b")
    train = []
    for number, language in enumerate(("de", "fr")):
        pairs = list(zip(*sides, strict=True))[30 * number : 30 * number + 30]
        (run / f"{language}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
        train.append({"pairs": f"{language}.tsv", "target_language": language})
    recipe = {"data": {"train": train, "held_out": {"valid": 4, "test": 6}}, "out": "several"}
    dragoman.train(recipe, [*SHORT, "train.max_steps=1"], quiet=True)
    with pytest.raises(ConfigError, match="has several test sets.*--to de.*--to fr"):
        dragoman.evaluate("several", quiet=True)
    chosen = dragoman.evaluate("several", to="fr", metric=["chrf"], beam=1, quiet=True)
    assert len(chosen.systems[0].translations) == 3
