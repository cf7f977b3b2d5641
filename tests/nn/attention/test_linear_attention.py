"""Linear attention against Katharopoulos et al. 2020, equation 7, written as plain loops in float64."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.testing import assert_close

from dragoman.base.errors import ConfigError
from dragoman.models.interface import tensors
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.linear import LinearAttention, LinearAttentionConfig
from dragoman.nn.attention.recording import recording
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.alibi import AlibiConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.scheme import PositionScheme

WIDTH, HEADS = 8, 2
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)


def built(options: dict[str, Any] | None = None, positions: PositionScheme | None = None) -> LinearAttention:
    torch.manual_seed(1)
    module = LinearAttentionConfig.model_validate(options or {}).build(SIZES, positions).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    assert isinstance(module, LinearAttention)
    return module


def feature(number: Tensor) -> Tensor:
    """elu(x) + 1, written out."""
    return torch.where(number > 0, number + 1, number.exp())


def plain(module: LinearAttention, asking: Tensor, asked: Tensor, seen: Tensor, output: bool = True) -> Tensor:
    """queries (T, d), keys (S, d), visible (T, S) bool → (T, ·), by a loop over heads, queries and keys."""
    names = ("query", "key", "value")
    queries, keys, values = (
        linear(states, getattr(module, name).weight, getattr(module, name).bias).chunk(HEADS, -1)
        for name, states in zip(names, (asking, asked, asked), strict=True)
    )
    rows = []
    for place in range(len(asking)):
        heads = []
        for head in range(HEADS):
            above: Tensor | float = torch.zeros(values[head].size(-1), dtype=torch.float64)
            below: Tensor | float = 0.0
            for other in range(len(asked)):
                if seen[place, other]:
                    weight = (feature(queries[head][place]) * feature(keys[head][other])).sum()
                    above, below = above + weight * values[head][other], below + weight
            heads.append(above / below if seen[place].any() else above)
        rows.append(torch.cat(heads))
    means = torch.stack(rows)
    return linear(means, module.output.weight, module.output.bias) if output else means


def same_gradients(module: LinearAttention, states: Tensor, found: Tensor, expected: Tensor) -> None:
    assert_close(found, expected)
    cotangent = torch.randn_like(found)
    inputs = [states, *module.parameters()]
    for one, two in zip(
        torch.autograd.grad(found, inputs, cotangent),
        torch.autograd.grad(expected, inputs, cotangent),
        strict=True,
    ):
        assert_close(one, two)


@pytest.mark.parametrize("options", [{}, {"key_width": 3, "value_width": 5}])
def test_an_encoder_equals_the_double_loop(options: dict[str, Any]) -> None:
    module = built(options)
    states = torch.randn(2, 9, WIDTH, dtype=torch.float64, requires_grad=True)
    keep = torch.arange(9) < torch.tensor([[9], [4]])
    expected = torch.stack([plain(module, row, row, real.expand(9, 9)) for row, real in zip(states, keep, strict=True)])
    same_gradients(module, states, module.self_attend(states, Mask.padding(keep)), expected)


@pytest.mark.parametrize("chunk", [1, 4, 64])
def test_a_decoder_equals_the_double_loop(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.nn.attention.linear._CHUNK", chunk)
    module = built()
    states = torch.randn(2, 11, WIDTH, dtype=torch.float64, requires_grad=True)
    seen = torch.ones(11, 11).tril().bool()
    expected = torch.stack([plain(module, row, row, seen) for row in states])
    found, _ = module.causal_self_attend(states, None, CausalSpan(0, 11, states.device))
    same_gradients(module, states, found, expected)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("split", [[1] * 150, [64, 64, 22], [3, 100, 47]])
@torch.no_grad()
def test_running_sums_equal_the_whole_and_have_constant_size(rotary: bool, split: list[int]) -> None:
    module = built(positions=RotaryConfig() if rotary else None)
    states = torch.randn(2, 150, WIDTH, dtype=torch.float64)
    whole, _ = module.causal_self_attend(states, None, CausalSpan(0, 150, states.device))
    cache, parts, start = None, [], 0
    for part in states.split(split, 1):
        found, cache = module.causal_self_attend(part, cache, CausalSpan(start, part.size(1), states.device))
        parts.append(found)
        start += part.size(1)
        assert [tuple(tensor.shape) for tensor in cache] == [(2, HEADS, 4, 4), (2, HEADS, 4)]
        assert all(tensor.untyped_storage().nbytes() == tensor.numel() * 8 for tensor in cache)
    assert_close(torch.cat(parts, 1), whole)


def test_attention_over_the_source_equals_the_double_loop() -> None:
    """Two hypotheses per sentence share the sums of its source."""
    module = built()
    source = torch.randn(2, 6, WIDTH, dtype=torch.float64)
    states = torch.randn(4, 3, WIDTH, dtype=torch.float64, requires_grad=True)
    keep = torch.arange(6) < torch.tensor([[6], [2]])
    padding = Mask.padding(keep)
    expected = torch.stack(
        [plain(module, states[row], source[row // 2], keep[row // 2].expand(3, 6)) for row in range(4)]
    )
    same_gradients(
        module, states, module.cross_attend(states, module.project_memory(source, padding), padding), expected
    )


@torch.no_grad()
def test_rotary_rotates_the_numerator_only() -> None:
    """Su et al. 2021, equation 19, with features as complex numbers."""
    module = built({"combine": "concatenate"}, RotaryConfig())
    states = torch.randn(1, 5, WIDTH, dtype=torch.float64)
    found = module.self_attend(states, Mask.padding(torch.ones(1, 5, dtype=torch.bool)))
    queries, keys = (feature(part(states))[0].view(5, HEADS, 4) for part in (module.query, module.key))
    values = module.value(states)[0].view(5, HEADS, 4)
    for head in range(HEADS):
        for place in range(5):
            above, below = torch.zeros(4, dtype=torch.float64), 0.0
            for other in range(5):
                query, key = (
                    torch.view_as_complex(vectors[at, head].view(2, 2))
                    for vectors, at in ((queries, place), (keys, other))
                )
                turns = torch.tensor([1.0, 0.01], dtype=torch.float64) * (place - other)
                above += (query * key.conj() * torch.polar(torch.ones_like(turns), turns)).real.sum() * values[
                    other, head
                ]
                below += float(queries[place, head] @ keys[other, head])
            assert_close(found[0, place, head * 4 : head * 4 + 4], above / below, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_recorded_weights_reproduce_the_output() -> None:
    module = built({"combine": "concatenate"})
    states = torch.randn(2, 70, WIDTH, dtype=torch.float64)
    keep = torch.arange(70) < torch.tensor([[70], [40]])
    padding = Mask.padding(keep)
    values = module.value(states).view(2, 70, HEADS, 4).transpose(1, 2)
    with recording() as recorded:
        encoded = module.self_attend(states, padding)
        looked = module.cross_attend(states, module.project_memory(states, padding), padding)
        cache, parts, start = None, [], 0
        for part in states.split([1, 66, 3], 1):
            extended, cache = module.causal_self_attend(part, cache, CausalSpan(start, part.size(1), states.device))
            parts.append(extended)
            start += part.size(1)
    encoder, cross, *decoder = recorded[module]
    assert_close(cross, encoder)
    assert_close(encoder.sum(-1), torch.ones(2, HEADS, 70, dtype=torch.float64))
    assert not encoder[1, :, :, 40:].any()
    assert_close((encoder @ values).transpose(1, 2).flatten(2), encoded)
    assert_close(looked, encoded)
    whole = torch.cat([torch.nn.functional.pad(call, (0, 70 - call.size(-1))) for call in decoder], 2)
    assert_close((whole @ values).transpose(1, 2).flatten(2), torch.cat(parts, 1))
    unrecorded, cache = module.causal_self_attend(states, None, CausalSpan(0, 70, states.device))
    assert_close(unrecorded, torch.cat(parts, 1))
    with pytest.raises(ValueError, match="first token"), recording():
        module.causal_self_attend(states[:, :1], cache, CausalSpan(70, 1, states.device))


def test_the_state_of_a_source_does_not_grow_with_its_length() -> None:
    """Unless its weights are requested, which is known when the source is projected."""
    module = built({})
    sizes, padding = [], [Mask.padding(torch.ones(2, length, dtype=torch.bool)) for length in (3, 300)]
    states = [torch.randn(2, length, WIDTH, dtype=torch.float64) for length in (3, 300)]
    for text, mask in zip(states, padding, strict=True):
        sizes.append(sum(part.numel() for part in tensors(module.project_memory(text, mask))))
    assert sizes[0] == sizes[1] == 2 * WIDTH * (WIDTH // HEADS + 1)
    memory = module.project_memory(states[1], padding[1])
    with pytest.raises(ValueError, match="encoding of the source"), recording():
        module.cross_attend(states[0], memory, padding[1])
    with recording():
        memory = module.project_memory(states[1], padding[1])
    with recording() as recorded:
        module.cross_attend(states[0], memory, padding[1])
    assert_close(recorded[module][0].sum(-1), torch.ones(2, HEADS, 3, dtype=torch.float64))


def test_a_source_without_any_token_gives_zeros_and_finite_gradients() -> None:
    module = built({"combine": "concatenate"})
    states = torch.randn(1, 5, WIDTH, dtype=torch.float64, requires_grad=True)
    found = module.self_attend(states, Mask.padding(torch.zeros(1, 5, dtype=torch.bool)))
    assert not found.any()
    (gradient,) = torch.autograd.grad(found.square().sum(), states)
    assert gradient.isfinite().all()


def test_sums_are_float32_where_the_layers_are_bfloat16() -> None:
    """4096 tokens summed in bfloat16, with its 8 bits, would lose most of them."""
    module = built().float()
    states = torch.randn(1, 4096, WIDTH)
    with torch.no_grad():
        exact, _ = module.causal_self_attend(states, None, CausalSpan(0, 4096, states.device))
        with torch.autocast("cpu", torch.bfloat16):
            found, cache = module.causal_self_attend(states, None, CausalSpan(0, 4096, states.device))
            encoded = module.self_attend(states, Mask.padding(torch.ones(1, 4096, dtype=torch.bool)))
    assert cache[0].dtype == cache[1].dtype == torch.float32
    assert_close(found[:, -1].float(), exact[:, -1], rtol=0.02, atol=0.02)
    assert_close(encoded[:, -1].float(), exact[:, -1], rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("options", "sizes", "positions", "message"),
    [
        ({}, AttentionSizes(8, 8, 8, 2, dropout=0.1), None, "dropout.attention"),
        ({}, SIZES, AlibiConfig(), "alibi"),
        ({}, AttentionSizes(8, 8, 8, 3), None, "3 heads"),
    ],
)
def test_incompatible_settings_are_refused(
    options: dict[str, Any], sizes: AttentionSizes, positions: PositionScheme | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        LinearAttentionConfig.model_validate(options).build(sizes, positions)
