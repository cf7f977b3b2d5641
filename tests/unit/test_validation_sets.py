"""Several validation sets: their means, and a resumed run with tagged corpora and sets equals an uninterrupted one."""

import math
from pathlib import Path

import pytest
import torch
from training_runs import RUN, SETTINGS, outcome, write_corpus

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.metrics.metric import Score
from dragoman.metrics.registry import METRICS
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.validation import validation_metrics
from dragoman.training.validation import Measure, Validation, average_validations

CORPORA = """
data:
  train:
  - {source: train.a, target: train.b, target_language: b, name: forward}
  - {source: train.b, target: train.a, target_language: a, tags: [bt], name: backward}
  valid:
  - {source: valid.a, target: valid.b, target_language: b, name: forward}
  - {source: valid.b, target: valid.a, target_language: a, name: backward}
out: run
"""
SHORT = [*SETTINGS, "train.validate_every=4", "train.checkpoint_every=4", "train.log_every=1", "train.average.count=2"]


def validation(loss: float, bleu: float, seconds: float) -> Validation:
    values = {"loss": (loss, ""), "perplexity": (math.exp(loss), "per token"), "bleu": (bleu, "nrefs:1")}
    measures = [Measure.from_score(METRICS[key], Score(key, *value)) for key, value in values.items()]
    return Validation(tuple(measures), seconds)


def test_each_set_has_the_same_weight() -> None:
    one, other = validation(2.0, 10.0, 3.0), validation(4.0, 30.0, 4.0)
    mean = average_validations(validation_metrics("bleu"), {"a": one, "b": other})
    assert mean["perplexity"].value == math.exp(3.0) and mean["perplexity"].signature == "per token"
    assert (mean["loss"].value, mean["bleu"].value, mean.seconds) == (3.0, 20.0, 7.0)
    assert mean["bleu"].signature == "mean of 2 sets, nrefs:1"
    assert mean.score("loss") == (-3.0, 20.0)
    assert mean.score("bleu") == (20.0, -3.0)
    assert mean.log_line()["valid_sets"]["b"] == {"loss": 4.0, "perplexity": other["perplexity"].value, "bleu": 30.0}
    assert "valid_sets" not in one.log_line()


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a run."""
    write_corpus(tmp_path, 60)
    (tmp_path / "recipe.yaml").write_text(CORPORA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(*settings: str) -> TranslationRun:
    return load_settings(Path("recipe.yaml"), [*SHORT, *settings], TranslationRun)


def test_a_resumed_run_equals_an_uninterrupted_one(corpora: Path) -> None:
    threads = torch.get_num_threads()
    try:
        train(config("train.max_steps=8"))
        whole = outcome(corpora)
        (corpora / RUN).rename(corpora / "whole")
        train(config("train.max_steps=4"))
        train(config("train.max_steps=8"), resume=True)
    finally:
        torch.set_num_threads(threads)
    again = outcome(corpora)
    assert again["model.safetensors"] == whole["model.safetensors"]
    assert again["tokenizer.json"] == whole["tokenizer.json"]
    assert [line for line in again["log"] if line["step"] == 8] == [line for line in whole["log"] if line["step"] == 8]
    assert b'"tags"' in whole["tokenizer.json"]


def test_a_changed_second_set_is_noticed(corpora: Path) -> None:
    threads = torch.get_num_threads()
    try:
        train(config("train.max_steps=4"))
        lines = (corpora / "valid.b").read_text().splitlines()
        (corpora / "valid.b").write_text("".join(f"{line}\n" for line in [*lines[:-1], "another line"]))
        with pytest.raises(ConfigError, match="forward, backward has changed since the run started"):
            train(config("train.max_steps=8"), resume=True)
    finally:
        torch.set_num_threads(threads)
