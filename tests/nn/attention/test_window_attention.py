"""Window attention against soft attention under an explicit band mask, results and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from dragoman.base.settings.load import parse_settings
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.attention.window import WindowAttention, WindowAttentionConfig
from dragoman.nn.auxiliary import collecting
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import PositionsConfig

WIDTH, HEADS = 8, 2
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"scorer": {"kind": "additive"}},
    {"scorer": {"kind": "general"}, "query_width": 3, "key_width": 5},
    {"normaliser": "sum", "combine": "mean"},
    {"projections": False},
    {"diversity": 0.5},
]


def scheme(kind: str) -> PositionScheme:
    class Holder(SoftAttentionConfig):
        positions: PositionsConfig

    return parse_settings({"positions": {"kind": kind}}, Holder, "").positions  # type: ignore[no-any-return]


def pair(window: int, options: dict[str, Any], positions: str = "none") -> tuple[SoftAttention, WindowAttention]:
    """Soft and window attention with the same parameters, in float64."""
    torch.manual_seed(window)
    soft = SoftAttentionConfig.model_validate(options).build(SIZES, scheme(positions)).double()
    banded = WindowAttentionConfig.model_validate({**options, "window": window}).build(SIZES, scheme(positions))
    with torch.no_grad():
        for parameter in soft.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    banded.double().load_state_dict(soft.state_dict())
    assert isinstance(soft, SoftAttention) and isinstance(banded, WindowAttention)
    return soft, banded


def band(length: int, left: int, right: int) -> Tensor:
    offsets = torch.arange(length) - torch.arange(length)[:, None]
    return (offsets >= -left) & (offsets <= right)


class Banded(CausalSpan):
    """CausalSpan, limited to the window."""

    def __init__(self, length: int, window: int) -> None:
        super().__init__(0, length, torch.device("cpu"))
        self._band = Mask(band(length, window - 1, 0)[None, None])

    @property
    def mask(self) -> Mask:
        return self._band


def check(soft: SoftAttention, banded: WindowAttention, expected: Tensor, found: Tensor, states: Tensor) -> None:
    """Compare the values, and the gradients of inputs and parameters."""
    assert_close(found, expected)
    cotangent = torch.randn_like(expected)
    inputs = [states, *soft.parameters()]
    one = torch.autograd.grad(expected, inputs, cotangent, retain_graph=True)
    two = torch.autograd.grad(found, [states, *banded.parameters()], cotangent, retain_graph=True)
    for left, right in zip(one, two, strict=True):
        assert_close(left, right)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("window", [1, 5, 40])
def test_an_encoder_equals_soft_attention_in_a_band(window: int, options: dict[str, Any]) -> None:
    soft, banded = pair(window, options)
    states = torch.randn(2, 97, WIDTH, dtype=torch.float64, requires_grad=True)
    keep = torch.arange(97) < torch.tensor([[97], [41]])  # many queries of the second row have no key
    mask = Mask(keep[:, None, None, :] & band(97, window, window))
    with collecting() as expected_penalties:
        expected = soft.cross_attend(states, soft.project_memory(states, mask), mask, keep)
    with collecting() as penalties:
        found = banded.self_attend(states, Mask.padding(keep))
    check(soft, banded, expected, found, states)
    assert_close(torch.as_tensor(penalties.penalty(9)[0]), torch.as_tensor(expected_penalties.penalty(9)[0]))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("window", [1, 5, 40])
def test_a_decoder_equals_soft_attention_in_a_band(window: int, options: dict[str, Any]) -> None:
    soft, banded = pair(window, options)
    states = torch.randn(2, 97, WIDTH, dtype=torch.float64, requires_grad=True)
    expected, _ = soft.causal_self_attend(states, None, Banded(97, window))
    found, cache = banded.causal_self_attend(states, None, CausalSpan(0, 97, states.device))
    check(soft, banded, expected, found, states)
    assert cache.keys.size(2) == cache.values.size(2) == cache.length == window - 1


@pytest.mark.parametrize("kind", ["rotary", "alibi", "relative"])
def test_positions_act_inside_the_window(kind: str) -> None:
    soft, banded = pair(6, {}, kind)
    states = torch.randn(2, 97, WIDTH, dtype=torch.float64, requires_grad=True)
    expected, _ = soft.causal_self_attend(states, None, Banded(97, 6))
    found, _ = banded.causal_self_attend(states, None, CausalSpan(0, 97, states.device))
    check(soft, banded, expected, found, states)


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi", "relative"])
@pytest.mark.parametrize("split", [[97], [1] * 97, [50, 47], [3, 90, 1, 1, 2], [33, 33, 31]])
@torch.no_grad()
def test_the_cache_holds_the_window_and_splits_equal_the_whole(kind: str, split: list[int]) -> None:
    _, banded = pair(7, {}, kind)
    states = torch.randn(2, 97, WIDTH, dtype=torch.float64)
    whole, _ = banded.causal_self_attend(states, None, CausalSpan(0, 97, states.device))
    cache, parts, start = None, [], 0
    for part in states.split(split, 1):
        found, cache = banded.causal_self_attend(part, cache, CausalSpan(start, part.size(1), states.device))
        parts.append(found)
        start += part.size(1)
        assert all(tensor.size(2) == cache.length == min(start, 6) for tensor in (cache.keys, cache.values))
        assert all(tensor.untyped_storage().nbytes() == tensor.numel() * 8 for tensor in (cache.keys, cache.values))
    assert_close(torch.cat(parts, 1), whole)


@torch.no_grad()
def test_recorded_weights_are_zero_outside_the_band() -> None:
    soft, banded = pair(5, {})
    states = torch.randn(2, 70, WIDTH, dtype=torch.float64)
    keep = torch.ones(2, 70, dtype=torch.bool)
    plain = banded.self_attend(states, Mask.padding(keep))
    with recording() as weights:
        shown = banded.self_attend(states, Mask.padding(keep))
    assert_close(shown, plain)
    (encoder,) = weights[banded]
    assert encoder.shape == (2, HEADS, 70, 70)
    assert not encoder[..., ~band(70, 5, 5)].any()
    assert_close(encoder.sum(-1), torch.ones(2, HEADS, 70, dtype=torch.float64))
    with recording() as expected:
        soft.causal_self_attend(states, None, Banded(70, 5))
    with recording() as found:
        cache = None
        for start, part in zip((0, 60, 61), states.split([60, 1, 9], 1), strict=True):
            _, cache = banded.causal_self_attend(part, cache, CausalSpan(start, part.size(1), states.device))
    padded = [torch.nn.functional.pad(call, (0, 70 - call.size(-1))) for call in found[banded]]
    assert_close(torch.cat(padded, 2), expected[soft][0])


@torch.no_grad()
def test_the_fused_kernel_is_used_in_wide_blocks_and_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, banded = pair(100, {}, "alibi")
    states = torch.randn(2, 600, WIDTH, dtype=torch.float64)
    expected, _ = soft.causal_self_attend(states, None, Banded(600, 100))
    calls = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def counted(*arguments: Any, **options: Any) -> Tensor:
        calls.append(arguments[0].shape)
        return kernel(*arguments, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", counted)
    monkeypatch.setattr("dragoman.nn.attention.soft._FUSED_FROM_KEYS", 64)
    found, _ = banded.causal_self_attend(states, None, CausalSpan(0, 600, states.device))
    assert calls == [(2 * 5, HEADS, 128, WIDTH // HEADS)]
    assert_close(found, expected)


def test_padding_rows_give_zeros_and_finite_gradients() -> None:
    _, banded = pair(3, {"combine": "concatenate"})
    states = torch.randn(1, 80, WIDTH, dtype=torch.float64, requires_grad=True)
    keep = torch.zeros(1, 80, dtype=torch.bool)
    keep[0, :10] = True
    found = banded.self_attend(states, Mask.padding(keep))
    assert not found[0, 13:].any() and found[0, :13].any(-1).all()
    (gradient,) = torch.autograd.grad(found.square().sum(), states)
    assert gradient.isfinite().all()
