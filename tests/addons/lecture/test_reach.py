"""Computed path lengths and receptive fields, compared with the gradients of real encoders."""

from typing import Any

import pytest
import torch
from torch import nn

from dragoman.addons.lecture.reach import (
    Mechanism,
    attention,
    convolution,
    dilated_convolution,
    influence,
    reach_table,
    recurrence,
    windowed_attention,
)
from dragoman.models.kinds.encoder_decoder import ModelConfig

LENGTH = 41
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward": 8}
ENCODERS: dict[str, tuple[dict[str, Any], Mechanism]] = {
    "recurrent": ({"kind": "recurrent", "cell": "gru"}, recurrence()),
    "convolutional": ({"kind": "convolutional", "kernel": 5}, convolution(5)),
    "bytenet": ({"kind": "bytenet", "kernel": 3, "dilations": [1, 2, 4]}, dilated_convolution(3, (1, 2, 4))),
    "attention": (TRANSFORMER, attention()),
    "linear": ({**TRANSFORMER, "attention": {"kind": "linear"}}, attention()),
    "window": ({**TRANSFORMER, "attention": {"kind": "window", "window": 3}}, windowed_attention(3)),
}


def built(encoder: dict[str, Any], layers: int) -> tuple[nn.Module, torch.Tensor]:
    """Return an encoder, and the embeddings that it reads."""
    torch.manual_seed(1)
    config = {"preset": None, "width": 8, "encoder": {**encoder, "layers": layers}, "dropout": 0}
    decoder = {"layers": 1, "heads": 2, "feedforward": 8}
    model = ModelConfig.model_validate({**config, "decoder": decoder}).build(LENGTH, LENGTH).eval().double()
    return model.encoder, model.encoder.embedding.tokens.weight


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("layers", [1, 3])
def test_receptive_fields_agree_with_gradients(kind: str, layers: int) -> None:
    encoder, mechanism = ENCODERS[kind]
    found = influence(*built(encoder, layers), torch.randperm(LENGTH), LENGTH // 2)
    assert int(found.sum()) == mechanism.receptive_field(layers, LENGTH)
    places = found.nonzero().flatten()
    assert places[-1] - places[0] + 1 == len(places) and places[0] + places[-1] == LENGTH - 1


@pytest.mark.parametrize("kind", ["convolutional", "bytenet", "attention", "linear", "window"])
def test_path_lengths_are_the_required_numbers_of_layers(kind: str) -> None:
    encoder, mechanism = ENCODERS[kind]
    distance = 9
    layers = mechanism.path_length(distance)
    for depth in {max(1, layers - 1), layers}:
        reached = bool(influence(*built(encoder, depth), torch.arange(LENGTH), 20)[20 + distance])
        assert reached == (depth == layers)


def test_a_recurrence_passes_a_signal_from_token_to_token() -> None:
    """A token's effect reaches the state `distance` tokens later after exactly `distance` applications of one cell."""
    cell, states = torch.nn.GRUCell(3, 4).double(), torch.zeros(1, 4, dtype=torch.float64)
    first = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    distance, applications = 7, 0
    states = cell(first, states)
    for _ in range(distance):
        states, applications = cell(torch.randn(1, 3, dtype=torch.float64), states), applications + 1
    states.sum().backward()
    assert first.grad is not None and bool((first.grad != 0).all())
    assert recurrence().path_length(distance) == applications


def test_counts_by_hand() -> None:
    assert [convolution(3).path_length(distance) for distance in (1, 2, 10)] == [1, 2, 10]
    assert [dilated_convolution(3, (1, 2, 4, 8)).path_length(distance) for distance in (1, 3, 15, 16)] == [1, 2, 4, 5]
    assert windowed_attention(8).path_length(99) == 13
    # docs/lecture/decks.md: from the first to the last of 100 tokens
    ways = (recurrence(), convolution(3), dilated_convolution(3, (1, 2, 4, 8, 16)), attention())
    assert [mechanism.path_length(99) for mechanism in ways] == [99, 99, 18, 1]
    assert attention().path_length(10**6) == 1
    assert convolution(3).receptive_field(6, 100) == 13
    assert dilated_convolution(3, (1, 2, 4)).receptive_field(3, 100) == 15
    assert windowed_attention(8).receptive_field(2, 10) == 10


def test_the_table_has_one_line_per_mechanism() -> None:
    lines = reach_table(6, 64).split("\n")
    assert lines[0].split("  ")[0] == "kind of layer" and "of 64 tokens" in lines[0] and "6 layers" in lines[0]
    assert [line.split()[-3:-1] for line in lines[1:3]] == [["63", "64"], ["63", "13"]]
