"""The default training settings, which are kept in resumed runs."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import ConfigError
from dragoman.data.batches.plan import BatchConfig
from dragoman.tasks.translation.config import TranslationLoopConfig, TranslationRun
from dragoman.training.config import LoopConfig
from dragoman.training.run.resumption import check_same_run

DATA = {"train": {"source": "a", "target": "b"}, "valid": {"source": "c", "target": "d"}}


@pytest.mark.parametrize(
    ("given", "patience"),
    [
        ({}, 10),
        ({"max_steps": 5}, None),
        ({"max_epochs": 5}, None),
        ({"max_minutes": 0.5}, None),
        ({"max_steps": None}, 10),
        ({"max_steps": 5, "patience": 3}, 3),
        ({"patience": 4}, 4),
    ],
)
def test_a_run_with_a_limit_continues_to_it(given: dict[str, Any], patience: int | None) -> None:
    for config in (LoopConfig, TranslationLoopConfig):
        assert config.model_validate(given).patience == patience


@pytest.mark.parametrize(
    ("given", "epochs"),
    [
        ({}, 20),
        ({"dropout_epochs": 3}, 3),
        ({"dropout_epochs": 0}, 0),
        ({"start": "runs/trained"}, 0),
        ({"start": "runs/trained", "dropout_epochs": 3}, 3),
    ],
)
def test_dropout_rises_for_a_new_translator(given: dict[str, Any], epochs: float) -> None:
    assert TranslationLoopConfig.model_validate(given).resolve(192).dropout_epochs == epochs
    assert LoopConfig.model_validate(given).resolve(192).dropout_epochs == given.get("dropout_epochs", 0)


@pytest.mark.parametrize(
    ("pairs", "tokens"),
    [
        *((1, 512), (19_999, 512), (20_000, 1024), (99_999, 1024), (100_000, 2048), (299_999, 2048), (300_000, 4096)),
        *((10**8, 4096), (None, 4096)),
    ],
)
def test_batches_of_few_pairs_are_small(pairs: int | None, tokens: int) -> None:
    assert BatchConfig().with_size(pairs).tokens == tokens
    assert BatchConfig(tokens=77, sentences=5).with_size(pairs) == BatchConfig(tokens=77, sentences=5)
    assert BatchConfig(sentences=5).with_size(pairs).sentences == 5


def run(**train: Any) -> TranslationRun:
    return TranslationRun.model_validate({"data": DATA, "train": train, "out": Path("runs/x")})


def test_open_settings_match_the_chosen_ones() -> None:
    given = run(max_steps=5)
    batch = given.data.batch.with_size(50)
    chosen = given.model_copy(
        update={
            "data": given.data.model_copy(update={"batch": batch}),
            "model": given.model.resolve(50),
            "train": given.train.resolve(192),
        }
    )
    assert (chosen.data.batch.tokens, chosen.model.preset, chosen.train.dropout_epochs) == (512, "tiny", 20)
    check_same_run(given, chosen)
    check_same_run(chosen, chosen)
    for other, name in (
        (run(max_steps=5, dropout_epochs=7), "train.dropout_epochs"),
        (run(max_steps=5, ema=0.5), "ema"),
    ):
        with pytest.raises(ConfigError, match=name):
            check_same_run(other, chosen)
