"""The inspector's weights of a Transformer against those that torch's own attention modules return."""

from typing import Any

import pytest
import torch
from closeness import assert_close
from test_torch_transformer import small_model, torch_twin
from torch import Tensor, nn

from dragoman.models.attention_weights import capture
from dragoman.text.symbols import BOS, EOS

SOURCE, TARGET = [5, 9, 4, 11], [8, 20, 6]
PLACES = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}


@pytest.mark.parametrize("order", ["post", "pre"])
def test_every_layers_weights_are_torchs(order: str) -> None:
    model = small_model(order)
    twin = torch_twin(model, order)
    told: dict[str, Tensor] = {}

    def ask(module: nn.Module, given: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return given, {**named, "need_weights": True, "average_attn_weights": False}

    for name, module in twin.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            side, _, layer, kind = name.split(".")
            key = f"{side}.layers.{layer}.{PLACES[kind]}"
            module.register_forward_pre_hook(ask, with_kwargs=True)
            module.register_forward_hook(lambda _, __, result, key=key: told.update({key: result[1]}))
    source, inputs = torch.tensor([[*SOURCE, EOS]]), torch.tensor([[BOS, *TARGET]])
    later = torch.ones(inputs.size(1), inputs.size(1), dtype=torch.bool).triu(1)
    twin(model.encoder.embedding(source), model.encoder.embedding(inputs), tgt_mask=later)

    found = capture(model, TARGET, SOURCE)
    assert set(found) == set(told)
    assert len(found) == 6
    for name, weights in found.items():
        assert_close(torch.from_numpy(weights), told[name][0].detach())
