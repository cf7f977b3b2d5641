"""SSRU and average attention, which are purely recurrent, against their papers' formulas as plain loops in float64."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from dragoman.base.errors import ConfigError
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.attention.average import AverageAttention, AverageAttentionConfig
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.ssru import SSRU, SSRUConfig, recurrence
from dragoman.nn.mask import CausalSpan

WIDTH, ROWS, LENGTH = 6, 3, 7
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, 2)
CONFIGS = {
    "ssru": SSRUConfig(),
    "average": AverageAttentionConfig(),
    "average with its network": AverageAttentionConfig(inner=5),
}


def built(name: str) -> Attention:
    torch.manual_seed(1)
    module = CONFIGS[name].build(SIZES).double()  # type: ignore[attr-defined]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module


def plain_ssru(module: Attention, text: Tensor) -> Tensor:
    """Kim et al. 2019, for one text (T, d), one token and one number at a time."""
    assert isinstance(module, SSRU)
    cell = [0.0] * WIDTH
    rows = []
    for x in text:
        row = []
        for i in range(WIDTH):
            forget = 1 / (1 + torch.exp(-(sum(module.forget.weight[i] * x) + module.forget.bias[i])))
            cell[i] = forget * cell[i] + (1 - forget) * sum(module.candidate.weight[i] * x)  # type: ignore[call-overload]
            row.append(cell[i] * (cell[i] > 0))  # type: ignore[operator]
        rows.append(torch.stack(row))  # type: ignore[arg-type]
    return torch.stack(rows)


def plain_average(module: Attention, text: Tensor) -> Tensor:
    """Zhang et al. 2018, equations 1 and 2."""
    assert isinstance(module, AverageAttention)
    rows = []
    for place, x in enumerate(text):
        g = sum(text[: place + 1]) / (place + 1)
        if module.network is not None:
            inner, outer = module.network.inner, module.network.outer
            g = outer.weight @ (inner.weight @ g + inner.bias).clamp_min(0) + outer.bias
        gates = 1 / (1 + torch.exp(-(module.gates.weight @ torch.cat((x, g)) + module.gates.bias)))
        rows.append(gates[:WIDTH] * x + gates[WIDTH:] * g)
    return torch.stack(rows)


PLAIN: dict[str, Callable[[Attention, Tensor], Tensor]] = {
    "ssru": plain_ssru,
    "average": plain_average,
    "average with its network": plain_average,
}


def causal(start: int, new: int, left_padding: Tensor | None = None) -> CausalSpan:
    return CausalSpan(start, new, torch.device("cpu"), left_padding=left_padding)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_formula_with_its_gradients(name: str) -> None:
    module = built(name)
    states = torch.randn(ROWS, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    expected = torch.stack([PLAIN[name](module, text) for text in states])
    found, _ = module.causal_self_attend(states, None, causal(0, LENGTH))
    assert_close(found, expected)
    with torch.no_grad():
        assert_close(module.causal_self_attend(states, None, causal(0, LENGTH))[0], expected)
    inputs, cotangent = [states, *module.parameters()], torch.randn_like(found)
    for one, two in zip(
        torch.autograd.grad(found, inputs, cotangent), torch.autograd.grad(expected, inputs, cotangent), strict=True
    ):
        assert_close(one, two)


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_a_beam_and_padding_on_the_left(name: str) -> None:
    """Expanded and shuffled hypotheses continue as if each had been read alone; padding before a text is ignored."""
    module = built(name)
    states = torch.randn(ROWS, 4, WIDTH, dtype=torch.float64)
    left_padding = torch.tensor([0, 2, 1])
    _, cache = module.causal_self_attend(states, None, causal(0, 4, left_padding))
    rows = torch.tensor([2, 2, 0, 1])
    cache, left_padding, read = cache[rows], left_padding[rows], states[rows]
    for place in (4, 5):
        new = torch.randn(len(rows), 1, WIDTH, dtype=torch.float64)
        found, cache = module.causal_self_attend(new, cache, causal(place, 1, left_padding))
        read = torch.cat((read, new), 1)
        for row, ahead in enumerate(left_padding.tolist()):
            assert_close(found[row, -1], PLAIN[name](module, read[row, ahead:])[-1])


def test_the_recurrence_can_start_anywhere() -> None:
    """Includes gradients with respect to the state before the first token."""
    given = [torch.rand(ROWS, LENGTH, 2, dtype=torch.float64), torch.randn(ROWS, LENGTH, 2, dtype=torch.float64)]
    given.append(torch.randn(ROWS, 2, dtype=torch.float64))
    assert torch.autograd.gradcheck(recurrence, [each.requires_grad_() for each in given])


@pytest.mark.parametrize("name", CONFIGS)
def test_sums_keep_their_precision_in_bfloat16(name: str) -> None:
    module = built(name).float()
    states = torch.randn(ROWS, 60, WIDTH)
    exact, _ = module.causal_self_attend(states, None, causal(0, 60))
    with torch.autocast("cpu", torch.bfloat16):
        found, cache = module.causal_self_attend(states, None, causal(0, 60))
    assert found.dtype == torch.float32
    assert cache.dtype == torch.float32
    assert_close(found, exact, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("kind", ["ssru", "average"])
@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative"])
def test_positions_inside_attention_are_refused(kind: str, positions: str) -> None:
    settings: dict[str, Any] = {"width": 32, "preset": None, "decoder": {"attention": {"kind": kind}}}
    message = f"decoder: positions of kind {positions} act inside .* attention of kind {kind} has no self-attention"
    with pytest.raises(ValueError, match=message):
        ModelConfig.model_validate({**settings, "positions": {"kind": positions}})
    config = ModelConfig.model_validate(
        {**settings, "positions": {"kind": positions}, "target_positions": {"kind": "none"}}
    )
    assert config.build(9, 9).decoder.layers[0].compilable == (kind == "average")
    with pytest.raises(ConfigError, match=rf"{kind}"):
        CONFIGS[kind].build(SIZES, config.positions)  # type: ignore[attr-defined]


def test_encoders_do_not_support_them() -> None:
    with pytest.raises(ValueError, match="ssru"):
        ModelConfig.model_validate({"encoder": {"attention": {"kind": "ssru"}}})
