"""Each of the four dropout rates acts on the values that it is named after, on both sides of a model, and no others."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.soft import SoftAttention
from dragoman.nn.dropout import Dropout
from dragoman.nn.embedding import Embedding
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.residual import Residual

OWNERS: dict[str, tuple[type[nn.Module], int]] = {
    "embedding": (Embedding, 2),
    "residual": (Residual, 2 * 2 + 2 * 3),
    "attention": (SoftAttention, 2 * 1 + 2 * 2),
    "feedforward": (FeedForward, 2 + 2),
}
"""The module that each rate belongs to, and the number of such modules with two layers per side."""
RATES = dict.fromkeys(OWNERS, 0.0)
SOURCE, TARGET = torch.tensor([[5, 9, 4, 2, 7, 2]]), torch.tensor([[1, 6, 8, 5]])


def model_with(rates: dict[str, float], **stack: Any) -> Seq2Seq:
    layers = {"layers": 2, "heads": 2, "feedforward": 32, "norm": "pre", **stack}
    torch.manual_seed(1)
    config = {"preset": None, "width": 16, "encoder": layers, "decoder": layers, "dropout": {**RATES, **rates}}
    return ModelConfig.model_validate(config).build(12, 12).train()


def record(model: nn.Module, kind: type[nn.Module]) -> dict[str, tuple[tuple[Any, ...], Tensor]]:
    """Return a dictionary that a forward pass fills with the arguments and the output of each module of a kind."""
    recorded: dict[str, tuple[tuple[Any, ...], Tensor]] = {}
    for name, module in model.named_modules():
        if isinstance(module, kind):
            module.register_forward_hook(
                lambda _, given, result, name=name: recorded.__setitem__(name, (given, result))
            )
    return recorded


def read(model: Seq2Seq) -> None:
    model(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool), TARGET)


@pytest.mark.parametrize("place", OWNERS)
def test_each_rate_applies_at_its_place_only(place: str) -> None:
    model = model_with({place: 0.5})
    owner, count = OWNERS[place]
    dropouts = record(model, Dropout)
    read(model)
    changed = {name for name, ((values,), result) in dropouts.items() if not torch.equal(values, result)}
    owners = {f"{name}.dropout" for name, module in model.named_modules() if isinstance(module, owner)}
    assert len(owners) == count
    assert changed == owners
    for name in changed:
        (values,), result = dropouts[name]
        share = float((result == 0).float().mean())
        assert 0.1 < share < 0.9, f"{name}: {share:.0%} are zero"
        torch.testing.assert_close(result, 2 * values * (result != 0))


def test_embeddings_are_dropped_after_positions_are_added() -> None:
    model = model_with({"embedding": 0.5})
    dropouts, embeddings = record(model, Dropout), record(model, Embedding)
    read(model)
    for name, (given, result) in embeddings.items():
        module = model.get_submodule(name).eval()
        (values,), dropped = dropouts[f"{name}.dropout"]
        torch.testing.assert_close(values, module(*given))
        assert torch.equal(dropped, result)


def test_residual_connections_add_the_dropped_output_of_a_sublayer() -> None:
    model = model_with({"residual": 0.5})
    dropouts, residuals = record(model, Dropout), record(model, Residual)
    networks = record(model, FeedForward)
    read(model)
    for name, (given, result) in residuals.items():
        torch.testing.assert_close(result - given[0], dropouts[f"{name}.dropout"][1])
    inputs = [dropouts[f"{name}.dropout"][0][0] for name in residuals]
    for _, output in networks.values():  # the dropped values are those that a sublayer returned
        assert any(output.shape == values.shape and torch.equal(output, values) for values in inputs)


def test_attention_weights_are_dropped_after_the_softmax() -> None:
    model = model_with({"attention": 0.5})
    dropouts = record(model, Dropout)
    read(model)
    found = [values for name, ((values,), result) in dropouts.items() if not torch.equal(values, result)]
    assert len(found) == 6
    for weights in found:
        assert bool((weights >= 0).all())
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_feedforward_states_are_dropped_after_the_activation() -> None:
    model = model_with({"feedforward": 0.5}, activation="relu")
    dropouts, networks = record(model, Dropout), record(model, FeedForward)
    read(model)
    for name, (given, _) in networks.items():
        module = model.get_submodule(name)
        assert isinstance(module, FeedForward)
        torch.testing.assert_close(dropouts[f"{name}.dropout"][0][0], module.inner(given[0]).relu())


def test_translation_drops_nothing() -> None:
    model = model_with(dict.fromkeys(OWNERS, 0.5)).eval()
    dropouts = record(model, Dropout)
    read(model)
    assert len(dropouts) == sum(count for _, count in OWNERS.values())
    assert all(torch.equal(values, result) for (values,), result in dropouts.values())
