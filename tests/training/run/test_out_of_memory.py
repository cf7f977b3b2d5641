"""Too little memory outside of forward and backward pass: a clear message, and saved files remain."""

from pathlib import Path

import pytest
import torch
from training_runs import RUN, SETTINGS, write_corpus

from dragoman.base.errors import ResourceError
from dragoman.base.settings.load import load_settings
from dragoman.checkpoint.store import CheckpointStore
from dragoman.metrics.bleu import BLEU
from dragoman.tasks.train import train
from dragoman.tasks.translation.config import TranslationRun

FULL = (
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "8589934592 bytes."
)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TranslationRun:
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    data = [f"data.{part}.{side}={part}.{name}" for part in ("train", "valid") for side, name in SIDES]
    limits = ["train.max_steps=4", "train.validate_every=4", "train.checkpoint_every=2"]
    return load_settings(None, [*data, f"out={RUN}", *SETTINGS, *limits], TranslationRun)


SIDES = (("source", "a"), ("target", "b"))


def test_the_optimisers_first_step(config: TranslationRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(FULL)

    monkeypatch.setattr(torch.optim.AdamW, "step", fail)
    with pytest.raises(ResourceError, match="not enough memory for the optimiser's state at step 1: choose a smaller"):
        train(config)


def test_validation(config: TranslationRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> float:
        raise MemoryError

    monkeypatch.setattr(BLEU, "value", fail)
    with pytest.raises(ResourceError, match="not enough memory to validate at step 4: remove the longest examples"):
        train(config)
    with CheckpointStore(Path(RUN)) as store:
        snapshot = store.latest_training()
        assert snapshot is not None
        assert snapshot.step == 2
