"""A9: attention with constructed relative positions computes the same as torch's convolutions, to 1e-5."""

import pytest
import torch
from closeness import assert_close
from torch.nn import functional

from dragoman.nn.attention.recording import recording
from dragoman.nn.mask import CausalSpan
from lecture_code.attention_as_convolution import (
    AttentionConvolution1d,
    AttentionConvolution2d,
    attention_as_convolution,
)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize(
    ("inputs", "outputs", "size", "dilation", "length"),
    [(3, 5, 3, 1, 20), (4, 2, 5, 1, 9), (1, 1, 1, 1, 7), (2, 3, 4, 1, 11), (3, 3, 3, 4, 30), (8, 8, 7, 1, 300)],
)
def test_one_dimension(inputs: int, outputs: int, size: int, dilation: int, length: int) -> None:
    torch.manual_seed(1)
    weight, bias = torch.randn(outputs, inputs, size), torch.randn(outputs)
    states = torch.randn(2, inputs, length)
    expected = functional.conv1d(states, weight, bias, padding="same", dilation=dilation)
    found = AttentionConvolution1d(weight, bias, dilation)(states)
    assert_close(found, expected)


@pytest.mark.parametrize(("rows", "across"), [(3, 3), (1, 5), (2, 3)])
def test_two_dimensions(rows: int, across: int) -> None:
    torch.manual_seed(2)
    weight, bias = torch.randn(4, 3, rows, across), torch.randn(4)
    images = torch.randn(2, 3, 6, 8)
    expected = functional.conv2d(images, weight, bias, padding="same")
    found = AttentionConvolution2d(weight, bias, columns=8)(images)
    assert_close(found, expected)


def test_a_causal_convolution_is_attention_with_a_cache() -> None:
    """Offsets into the past run in a decoder's self-attention, one token per step."""
    torch.manual_seed(3)
    weight, states = torch.randn(5, 4, 3), torch.randn(2, 4, 10)
    padded = functional.pad(states, (2, 0))
    expected = functional.conv1d(padded, weight)
    attention, cache, found = attention_as_convolution([-2, -1, 0], weight), None, []
    for place in range(12):
        token = padded[:, :, place : place + 1].transpose(1, 2)
        result, cache = attention.causal_self_attend(token, cache, CausalSpan(place, 1, token.device))
        found.append(result)
    assert_close(torch.cat(found[2:], 1).transpose(1, 2), expected)


def test_each_head_attends_to_one_distance() -> None:
    attention = AttentionConvolution1d(torch.randn(2, 2, 3))
    with recording() as weights:
        attention(torch.randn(1, 2, 6))
    (found,) = weights[attention.attention]
    for head, offset in enumerate((-1, 0, 1)):
        assert torch.equal(found[0, head, 1:-1], torch.eye(8)[1 + offset : 7 + offset])


def test_attention_can_be_what_no_convolution_is() -> None:
    """Deck 002 calls the two equivalent; Cordonnier et al. show one direction. Weights of attention can move
    with the content, those of a convolution cannot."""
    torch.manual_seed(4)
    weight, states = torch.randn(2, 2, 3), torch.randn(1, 2, 9)
    attention = AttentionConvolution1d(weight)
    twice = attention(2 * states)
    assert_close(twice, 2 * attention(states))
    with torch.no_grad():
        attention.attention.key.weight.normal_()
        attention.attention.query.weight.normal_()
        attention.attention.query.bias.zero_()
    assert not torch.allclose(attention(2 * states), 2 * attention(states), atol=1e-2)
