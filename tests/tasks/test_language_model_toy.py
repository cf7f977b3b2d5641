"""A language model learns a toy text: from a recipe to generated text and measured perplexity."""

import json
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.inference.generation.language_model import LanguageModel

RECIPE = """
task: {kind: language_model}
data:
  train: {text: train.txt, documents: file}
  valid: {text: valid.txt, documents: file}
  block: 24
  batch: {tokens: 480}
text: {subword: {kind: character, min_frequency: 1}}
model: {preset: tiny, width: 32, decoder: {layers: 2, heads: 2}, dropout: 0.0}
train: {max_steps: 90, validate_every: 90, schedule: {peak: 0.01}, threads: 1, device: cpu, precision: float32}
out: run
"""
COUNTING = "one, two, three, four, five. "


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    (folder / "train.txt").write_text(COUNTING * 60, encoding="utf-8")
    (folder / "valid.txt").write_text(COUNTING * 6, encoding="utf-8")
    (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "recipe.yaml"]) == 0
    return folder


def test_it_generates_far_beyond_its_window(run: Path) -> None:
    model = LanguageModel.load(run / "run", "cpu")
    assert model.window == 24
    text = "one, two," + model.generate(["one, two,"], top_k=1, max_tokens=100)[0]
    assert text == (COUNTING * 5)[: len(text)]
    assert len(text) > 90
    assert model.generate(["one, two"], top_k=1, stop=["five"])[0] == ", three, four, "


def test_validation_and_score_measure_the_same(run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = LanguageModel.load(run / "run", "cpu")
    recorded = {score.signature: score.value for score in model.meta.scores}
    reference = str(run / "valid.txt")
    arguments = ["evaluate", "perplexity", str(run / "run"), "--text", reference, "--documents", "file", "--json"]
    assert main([*arguments, "--stride", "24"]) == 0
    (found,) = json.loads(capfd.readouterr().out)["texts"]
    for name in ("token", "word", "byte"):
        assert found[f"per_{name}"] == pytest.approx(recorded[f"per {name}"], rel=1e-4)
    assert main([*arguments, "--stride", "4"]) == 0
    (more_context,) = json.loads(capfd.readouterr().out)["texts"]
    assert more_context["per_token"] < found["per_token"]
