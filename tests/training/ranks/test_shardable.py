"""FSDP shards modules separately that are called once per pass and whose parameters only they read."""

import pytest
import torch

from dragoman.data.batches.batch import collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.tasks.translation.objectives.scheduled_sampling import ConstantRatioConfig, ScheduledSampling
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.ranks import shardable as module

LAYERS = {"layers": 2, "heads": 2, "feedforward": 8}


def names(model: Seq2Seq, ratio: float = 1.0) -> list[str]:
    named = {part: name for name, part in model.named_modules()}
    objective = CrossEntropy(predict=ScheduledSampling(ConstantRatioConfig(value=ratio)))
    found = module.shardable_modules(model, objective, collate([[4, 4, 4], [4]], [[4, 4, 4, 4], [4]], [0, 1]))
    return sorted(named[part] for part in found)


def built(**settings: object) -> Seq2Seq:
    return ModelConfig.model_validate({"preset": None, "width": 8, **settings}).build(12, 12)


@pytest.fixture(autouse=True)
def _small_parts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MIN_PARAMETERS", 100)


def test_encoder_layers_and_parts_that_do_not_project_the_memory() -> None:
    """A decoder layer's attention reads the memory before the layer runs, so the layer is not sharded as a whole."""
    model = built(encoder={"kind": "transformer", **LAYERS}, decoder={"kind": "transformer", **LAYERS})
    assert names(model) == [
        *("decoder.layers.0.feedforward", "decoder.layers.1.feedforward"),
        *("encoder.layers.0", "encoder.layers.1"),
    ]


def test_modules_called_once_per_token_stay_together() -> None:
    model = built(encoder={"kind": "transformer", **LAYERS}, decoder={"kind": "transformer", **LAYERS})
    assert names(model, 0.0) == ["encoder.layers.0", "encoder.layers.1"]
    assert names(built(encoder={"kind": "recurrent"}, decoder={"kind": "recurrent"})) == []


def test_observing_leaves_no_trace() -> None:
    model = built(encoder={"kind": "transformer", **LAYERS}, decoder={"kind": "transformer", **LAYERS})
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    model.eval()
    names(model)
    assert not model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(hooks for part in model.modules() for hooks in (part._forward_hooks, part._forward_pre_hooks))
    assert all(parameter.grad is None for parameter in model.parameters())
