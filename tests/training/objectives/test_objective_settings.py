"""Losses as settings: kinds, their defaults, and the former sections."""

from pathlib import Path
from typing import Any

import pytest
import torch
from training_runs import SETTINGS, write_corpus

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.train import train as run
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.objectives.sequence_reward import SequenceRewardConfig
from dragoman.training.objectives import objective
from dragoman.training.objectives.cross_entropy import CrossEntropyConfig
from dragoman.training.objectives.r_drop import RDropConfig

CORPORA: dict[str, Any] = {part: {"source": "train.a", "target": "train.b"} for part in ("train", "valid")}
TEXTS: dict[str, Any] = {part: {"text": "train.a"} for part in ("train", "valid")}


def translation(loss: Any, *overrides: str) -> Any:
    recipe = {"data": CORPORA, "out": "run", "train": {} if loss is None else {"objective": loss}}
    return load_settings(recipe, overrides, TranslationRun).train.objective


def language_model(loss: Any) -> Any:
    recipe = {"task": {"kind": "language_model"}, "data": TEXTS, "out": "run", "train": {"objective": loss}}
    return load_settings(recipe, [], LanguageModelRun).train.objective


@pytest.fixture(autouse=True)
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    objective._warn_of_former_section.cache_clear()
    monkeypatch.setattr(objective, "warn", found.append)
    return found


def test_the_kind_may_be_left_out(warnings: list[str]) -> None:
    assert translation(None) == CrossEntropyConfig(label_smoothing=0.1)
    assert translation({"prior": "unigram"}) == CrossEntropyConfig(prior="unigram")
    assert translation({"kind": "r_drop"}) == RDropConfig(alpha=5, label_smoothing=0.1)
    assert warnings == []


def test_a_language_model_does_not_smooth_labels_by_default() -> None:
    assert language_model({"prior": "unigram"}).label_smoothing == 0
    assert language_model({"kind": "r_drop", "alpha": 1}).label_smoothing == 0
    assert language_model({"r_drop": {"alpha": 1}}).label_smoothing == 0


@pytest.mark.parametrize(
    ("former", "expected", "note"),
    [
        ({"label_smoothing": 0.2, "r_drop": None, "reward": None}, CrossEntropyConfig(label_smoothing=0.2), None),
        ({"label_smoothing": 0.2, "r_drop": {"alpha": 3}}, RDropConfig(label_smoothing=0.2, alpha=3), "kind: r_drop"),
        ({"r_drop": {}, "reward": None}, RDropConfig(), "kind: r_drop"),
        (
            {"prior": "unigram", "reward": {"kind": "chrf", "samples": 3}},
            SequenceRewardConfig(prior="unigram", metric="chrf", samples=3),
            "kind: sequence_reward",
        ),
        ({"reward": {}, "r_drop": None}, SequenceRewardConfig(), "kind: sequence_reward"),
    ],
)
def test_former_sections_are_read(former: dict[str, Any], expected: Any, note: str | None, warnings: list[str]) -> None:
    assert translation(former) == expected
    assert translation(former) == expected
    assert [note in warning for warning in warnings if note is not None] == ([] if note is None else [True])


def test_former_sections_are_read_from_the_command_line() -> None:
    assert translation(None, "train.objective.r_drop.alpha=1") == RDropConfig(alpha=1)
    assert translation({"r_drop": {"alpha": 2}}, "train.objective.r_drop=null") == CrossEntropyConfig()
    assert translation({"kind": "r_drop", "alpha": 2}, "train.objective.r_drop.alpha=1") == RDropConfig(alpha=1)
    chosen = translation(None, "train.objective.reward.kind=chrf", "train.objective.reward.samples=2")
    assert chosen == SequenceRewardConfig(metric="chrf", samples=2)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({"r_drop": {}, "reward": {}}, "r_drop cannot be combined with kind sequence_reward"),
        ({"kind": "sequence_reward", "r_drop": {}}, "r_drop cannot be combined with kind sequence_reward"),
        ({"r_drop": 5}, "r_drop must be a group of settings or null, not 5"),
        ({"r_drop": {"alpha": -1}}, r"train\.objective\.alpha: should be greater than or equal to 0"),
        ({"reward": {"kind": "ter"}}, r"train\.objective\.metric"),
        ({"kind": "focus"}, "train.objective.kind: unknown kind 'focus'.*'cross_entropy', 'r_drop', 'sequence_reward'"),
        ({"alpha": 1}, "unknown setting train.objective.alpha.*belongs to another kind"),
    ],
)
def test_wrong_losses_are_refused(loss: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translation(loss)


def test_a_former_section_trains_and_resumes_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run started with the former spelling is resumed with the new one, and ends like an uninterrupted run."""
    monkeypatch.chdir(tmp_path)
    corpus = [f"data.{part}.{side}={part}.{end}" for part in ("train", "valid") for side, end in SIDES]
    write_corpus(tmp_path, 60)
    rhythm = ["train.validate_every=4", "train.checkpoint_every=2", "train.average.count=0"]
    threads = torch.get_num_threads()

    def train(out: str, steps: int, *loss: str, resume: bool = False) -> bytes:
        settings = [*corpus, *SETTINGS, *rhythm, f"train.max_steps={steps}", f"out={out}", *loss]
        run(load_settings(None, settings, TranslationRun), resume=resume)
        return (tmp_path / out / "model.safetensors").read_bytes()

    try:
        former, new = ["train.objective.r_drop.alpha=1"], ["train.objective.kind=r_drop", "train.objective.alpha=1"]
        whole = train("whole", 4, *former)
        assert train("new", 4, *new) == whole
        plain = train("plain", 4)
        train("parts", 2, *former)
        settings = tmp_path / "parts" / "config.yaml"
        text = settings.read_text("utf-8")
        assert NEW in text
        settings.write_text(text.replace(NEW, FORMER), "utf-8")  # as stored by former versions
        assert train("parts", 4, *new, resume=True) == whole != plain
    finally:
        torch.set_num_threads(threads)


SIDES = (("source", "a"), ("target", "b"))
NEW = "    label_smoothing: 0.1\n    prior: uniform\n    kind: r_drop\n    alpha: 1.0\n"
FORMER = "    label_smoothing: 0.1\n    prior: uniform\n    r_drop:\n      alpha: 1.0\n    reward: null\n"
