"""The feed-forward network against two of torch's convolutions of kernel 1, and against its formula."""

import pytest
import torch
from torch.nn import functional

from dragoman.nn.feedforward import Activation, FeedForward

FUNCTIONS = {"relu": functional.relu, "gelu": functional.gelu, "swish": lambda hidden: hidden * hidden.sigmoid()}


@pytest.mark.parametrize("activation", list(FUNCTIONS))
def test_feedforward_is_two_convolutions_of_kernel_1(activation: Activation) -> None:
    """Vaswani et al. 2017, section 3.3."""
    torch.manual_seed(1)
    network, states = FeedForward(8, 20, activation, 0.0), torch.randn(3, 7, 8)
    hidden = functional.conv1d(states.transpose(1, 2), network.inner.weight[:, :, None], network.inner.bias)
    hidden = FUNCTIONS[activation](hidden)
    expected = functional.conv1d(hidden, network.outer.weight[:, :, None], network.outer.bias).transpose(1, 2)
    torch.testing.assert_close(network(states), expected)


def test_swiglu_is_its_formula() -> None:
    """Shazeer 2020, equation 6, with biases."""
    torch.manual_seed(1)
    network, states = FeedForward(8, 20, "swiglu", 0.0), torch.randn(3, 7, 8)
    assert network.gate is not None
    inner = states @ network.inner.weight.T + network.inner.bias
    swish = inner / (1 + torch.exp(-inner))
    gate = states @ network.gate.weight.T + network.gate.bias
    torch.testing.assert_close(network(states), (swish * gate) @ network.outer.weight.T + network.outer.bias)
