"""The validation loss equals that of forced decoding, for any batches and padding."""

from math import exp

import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers

from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.data.batches.batch import collate
from dragoman.data.batches.plan import BatchConfig
from dragoman.decode.forced import force
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.translation import validation
from dragoman.tasks.translation.validation import Validator
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation

CPU = torch.device("cpu")


def judged() -> tuple[Validation, float]:
    """Return the validation, and the loss by forced decoding of single sentences. Dropout is set, and must be off."""
    tokenizers = tiny_tokenizers()
    config = tiny_config(dropout=0.5)
    model = tiny_model(config, tokenizers)
    translator = Translator.of(LoadedModel(model, tokenizers, Meta(step=0), {}), CPU)
    sources, targets = [*SOURCES, "a"], [*TARGETS, ""]
    model.eval()
    found = Validator(sources, targets, model, translator, beam=1).run(Runtime(CPU))
    total, tokens = 0.0, 0
    with torch.no_grad():
        for source, target in zip(sources, targets, strict=True):
            pair = collate([tokenizers.source.encode(source)], [tokenizers.target.encode(target)], [0])
            memory = model.encode(pair.source, pair.source_mask)
            total -= float(force(model.decoder, memory, pair.inputs, pair.labels, pair.target_mask).sum())
            tokens += len(tokenizers.target.encode(target)) + 1
    return found, total / tokens


@pytest.mark.parametrize("budget", [1, 60, 4096])
def test_the_loss_equals_forced_decoding(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(validation, "_BATCH", BatchConfig(tokens=budget))
    found, expected = judged()
    assert found["loss"].value == pytest.approx(expected, rel=1e-5)
    assert found["perplexity"].value == pytest.approx(exp(expected), rel=1e-4)


def test_better_is_higher() -> None:
    found, _ = judged()
    assert found.rank("loss") == (-found["loss"].value, found["bleu"].value, found["chrf"].value)
    assert found.rank("bleu") == (found["bleu"].value, found["chrf"].value, -found["loss"].value)
