"""The validation loss: what forced decoding says, whatever the batches and the padding."""

from math import exp
from pathlib import Path

import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers

from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.batch import collate
from dragoman.data.batches.plan import BatchConfig
from dragoman.decode.forced import force
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine
from dragoman.train.objectives.objective import Objective, ObjectiveConfig
from dragoman.train.validation import validator
from dragoman.train.validation.validator import Validation, Validator
from dragoman.translator import Translator

CPU = torch.device("cpu")


def judged(folder: Path) -> tuple[Validation, float]:
    """The validation, and the loss by forced decoding of one sentence at a time. With dropout, which must be off."""
    tokenizers = tiny_tokenizers()
    config = tiny_config(dropout=0.5)
    model = tiny_model(config, tokenizers)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    objective = Objective(ObjectiveConfig(label_smoothing=0.3))
    engine = Engine(model, objective, optimiser, Decisions(folder / "d"), CPU, torch.float32, None, 1)
    translator = Translator(LoadedModel(model, tokenizers, Meta(step=0), {}), CPU)
    sources, targets = [*SOURCES, "a"], [*TARGETS, ""]
    model.train()
    found = Validator(sources, targets, tokenizers, translator, beam=1).run(engine)
    total, tokens = 0.0, 0
    with torch.no_grad():
        for source, target in zip(sources, targets, strict=True):
            pair = collate([tokenizers.source.encode(source)], [tokenizers.target.encode(target)], [0])
            memory = model.encode(pair.source, pair.source_keep)
            total -= float(force(model.decoder, memory, pair.inputs, pair.labels, pair.target_keep).sum())
            tokens += len(tokenizers.target.encode(target)) + 1
    return found, total / tokens


@pytest.mark.parametrize("budget", [1, 60, 4096])
def test_the_loss_equals_forced_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(validator, "_BATCH", BatchConfig(tokens=budget))
    found, expected = judged(tmp_path)
    assert found.loss == pytest.approx(expected, rel=1e-5)
    assert found.perplexity == pytest.approx(exp(expected), rel=1e-4)


def test_better_is_higher(tmp_path: Path) -> None:
    found, _ = judged(tmp_path)
    assert found.measure("loss") == (-found.loss, found.bleu.value)
    assert found.measure("bleu") == (found.bleu.value, -found.loss)
