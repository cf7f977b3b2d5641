"""`dragoman train`: settings from options, recipes and overrides, and a complete run that is resumed."""

import json
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.tasks.translation.config import TranslationRun
from dragoman.training.task import OpenJob

FAST = [
    "model.preset=tiny",
    *("model.width=32", "model.encoder.layers=1", "model.decoder.layers=1"),
    "text.subword.size=280",
    "train.validate_every=2",
    "train.checkpoint_every=2",
    "train.log_every=1",
    "train.threads=1",
    "train.precision=float32",
]


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    lines = [
        f"the {size} {animal} {verb}"
        for size in ("big", "old")
        for animal in ("dog", "cat")
        for verb in ("runs", "eats")
    ]
    (tmp_path / "a").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "b").write_text("".join(line[::-1] + "\n" for line in lines))
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    return ["--source", a, "--target", b, "--valid-source", a, "--valid-target", b]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    """Run the command without training; returns the settings and whether to resume."""
    seen: list[tuple[TranslationRun, bool]] = []

    def run(config: TranslationRun, open_job: OpenJob, resume: bool, profile: bool):
        seen.append((config, resume))
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.tasks.train.run", run)

    def call(*arguments: str) -> tuple[TranslationRun, bool]:
        assert main(["train", *arguments]) == 130
        return seen[-1]

    return call


def test_options_overrides_and_recipe_meet(given, corpus: list[str], tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("model: {preset: base}\ntrain: {max_steps: 5, seed: 7}\nout: elsewhere\n")
    config, resume = given(str(recipe), "train.max_steps=9", *corpus, "--out", str(tmp_path / "run"))
    assert config.train.max_steps == 9
    assert config.train.seed == 7
    assert config.model.width == 512
    assert config.out == tmp_path / "run"
    assert config.data.train.source == tmp_path / "a"
    assert config.data.valid.target == tmp_path / "b"
    assert not resume


def test_odd_file_names_are_used_unchanged(given, tmp_path: Path) -> None:
    config, _ = given("--pairs", "1e3", "--valid-pairs", "a: b", "--out", "null")
    assert config.data.train.pairs == Path("1e3")
    assert config.data.valid.pairs == Path("a: b")
    assert config.out == Path("null")


@pytest.mark.slow
@pytest.mark.real_reports
def test_a_run_resumes_with_its_folder_alone(corpus: list[str], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "run"
    assert main(["train", *corpus, "--out", str(out), *FAST, "train.max_steps=2"]) == 0
    assert "BLEU = " in capsys.readouterr().out
    assert main(["train", *corpus, "--out", str(out), *FAST]) == 2  # the folder contains a run
    assert main(["train", "--resume", "--out", str(out), "train.max_steps=4"]) == 0
    steps = [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()]
    assert sorted(set(steps)) == [1, 2, 3, 4]
    assert (out / "curves.png").stat().st_size > 1000
    assert main(["translate", str(out), "-i", str(tmp_path / "a"), "-o", str(tmp_path / "c"), "--beam", "1"]) == 0
    assert len((tmp_path / "c").read_bytes().split(b"\n")) == 9


def test_dropout_rises_over_the_first_epochs(corpus: list[str], tmp_path: Path) -> None:
    """An epoch is one update here: the first has no dropout, the third half of its rate, the fifth all of it."""

    def losses(name: str, *settings: str) -> list[float]:
        command = ["train", *corpus, "--out", str(tmp_path / name), *FAST, "train.max_steps=5", *settings]
        command += ["train.validate_every=5", "train.checkpoint_every=5"]
        assert main([*command, "train.schedule.kind=constant", "train.schedule.peak=1e-9"]) == 0
        lines = map(json.loads, (tmp_path / name / "log.jsonl").read_text().splitlines())
        return [line["loss"] for line in lines if "loss" in line]

    rising = losses("rising", "model.dropout=0.5", "train.dropout_epochs=4")
    assert rising[0] == losses("none", "model.dropout=0")[0]
    assert rising[2] == pytest.approx(losses("half", "model.dropout=0.25", "train.dropout_epochs=0")[2], rel=1e-6)
    full = losses("full", "model.dropout=0.5", "train.dropout_epochs=0")
    assert rising[4] == pytest.approx(full[4], rel=1e-6)
    assert rising[2] != pytest.approx(full[2], rel=1e-6)
