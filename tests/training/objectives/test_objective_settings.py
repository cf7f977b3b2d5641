"""Losses as settings: kinds, their defaults, and mistakes."""

from typing import Any

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import load_settings
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.translation.config import TranslationRun
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


def test_the_kind_may_be_left_out() -> None:
    assert translation(None) == CrossEntropyConfig(label_smoothing=0.1)
    assert translation({"prior": "unigram"}) == CrossEntropyConfig(prior="unigram")
    assert translation({"kind": "r_drop"}) == RDropConfig(alpha=5, label_smoothing=0.1)


def test_a_language_model_does_not_smooth_labels_by_default() -> None:
    assert language_model({"prior": "unigram"}).label_smoothing == 0
    assert language_model({"kind": "r_drop", "alpha": 1}).label_smoothing == 0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({"kind": "r_drop", "alpha": -1}, r"train\.objective\.alpha: should be greater than or equal to 0"),
        ({"kind": "sequence_reward", "metric": "ter"}, r"train\.objective\.metric"),
        ({"kind": "focus"}, "train.objective.kind: unknown kind 'focus'.*'cross_entropy', 'r_drop', 'sequence_reward'"),
        ({"alpha": 1}, "unknown setting train.objective.alpha.*belongs to another kind"),
    ],
)
def test_wrong_losses_are_refused(loss: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translation(loss)
