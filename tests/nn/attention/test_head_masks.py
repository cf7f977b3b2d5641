"""Heads that are switched off, for every mechanism with heads, against zeros in W_O and finite differences."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from closeness import assert_close
from pydantic import TypeAdapter
from torch import Tensor

from dragoman.nn.attention.graph import GraphAttention
from dragoman.nn.attention.heads import masking_heads
from dragoman.nn.attention.interface import Attention, AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.scorers import AdditiveConfig
from dragoman.nn.attention.union import CausalAttentionConfig, SelfAttentionConfig, SourceAttentionConfig
from dragoman.nn.mask import CausalSpan, Mask

WIDTH, HEADS = 24, 4
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)
MECHANISMS: dict[str, dict[str, Any]] = {
    "soft": {"kind": "soft"},
    "concatenated": {"kind": "soft", "combine": "concatenate"},
    "averaged": {"kind": "soft", "combine": "mean"},
    "without projections": {"kind": "soft", "projections": False},
    "additive": {"kind": "soft", "scorer": {"kind": "additive"}},
    "sum": {"kind": "soft", "normaliser": "sum"},
    "grouped queries": {"kind": "soft", "kv_heads": 2},
    "window": {"kind": "window", "window": 2},
    "linear": {"kind": "linear"},
    "linear, concatenated": {"kind": "linear", "combine": "concatenate"},
    "hard": {"kind": "hard"},
    "hard, two positions": {"kind": "hard", "max_positions": 2},
}
SELF = [name for name in MECHANISMS if not name.startswith("hard")]
SOURCE = [name for name in MECHANISMS if name != "window"]

Use = Callable[[Attention, Tensor], Tensor]


def self_attend(attention: Attention, states: Tensor) -> Tensor:
    mask = torch.arange(states.size(1)) < torch.tensor([[states.size(1)], [states.size(1) - 2]])
    return attention.self_attend(states, Mask.padding(mask))


def causal_self_attend(attention: Attention, states: Tensor) -> Tensor:
    """A step of several tokens, and one of a single token that uses the cache."""
    length = states.size(1) - 1
    first, cache = attention.causal_self_attend(states[:, :-1], None, CausalSpan(0, length, states.device))
    last, _ = attention.causal_self_attend(states[:, -1:], cache, CausalSpan(length, 1, states.device))
    return torch.cat((first, last), 1)


def cross_attend(attention: Attention, states: Tensor) -> Tensor:
    """Two rows per sentence."""
    padding = Mask.padding(torch.ones(states.shape[:2], dtype=torch.bool))
    memory = attention.project_memory(states, padding)
    return attention.cross_attend(states.flip(2).repeat_interleave(2, 0), memory, padding)


CASES: list[tuple[str, Any, Use]] = [
    *((name, SelfAttentionConfig, self_attend) for name in SELF),
    *((name, CausalAttentionConfig, causal_self_attend) for name in SELF),
    *((name, SourceAttentionConfig, cross_attend) for name in SOURCE),
]


def built(name: str, union: Any) -> Attention:
    torch.manual_seed(3)
    return TypeAdapter(union).validate_python(MECHANISMS[name]).build(SIZES).double().eval()  # type: ignore[no-any-return]


def states_of(length: int) -> Tensor:
    return torch.randn(2, length, WIDTH, dtype=torch.double, generator=torch.Generator().manual_seed(5))


def mask_without(*heads: int) -> Tensor:
    return torch.tensor([float(head not in heads) for head in range(HEADS)])


@pytest.mark.parametrize(("name", "union", "use"), CASES, ids=[f"{name}, {use.__name__}" for name, _, use in CASES])
def test_a_head_switched_off_equals_zeros_in_its_columns_of_the_output_matrix(name: str, union: Any, use: Use) -> None:
    attention, states = built(name, union), states_of(70 if name == "window" else 6)
    whole = use(attention, states)
    for head in range(HEADS):
        with masking_heads({attention: mask_without(head)}):
            masked = use(attention, states)
        if attention.combine == "project":
            other = deepcopy(attention)
            columns = other.output.weight.size(1) // HEADS
            with torch.no_grad():
                other.output.weight[:, head * columns : (head + 1) * columns] = 0
            expected = use(other, states)
        elif attention.combine == "concatenate":
            expected = whole.unflatten(2, (HEADS, -1)).clone()
            expected[:, :, head] = 0
            expected = expected.flatten(2)
        else:  # the heads are averaged: what remains is the mean, in which the head counts as zero
            with masking_heads({attention: mask_without(*set(range(HEADS)) - {head})}):
                expected = whole - use(attention, states)
        assert_close(masked, expected)
        assert not torch.allclose(masked, whole, atol=1e-4)


@pytest.mark.parametrize(("name", "union", "use"), CASES, ids=[f"{name}, {use.__name__}" for name, _, use in CASES])
def test_a_mask_of_ones_and_a_mask_of_another_module_change_no_bit(name: str, union: Any, use: Use) -> None:
    attention, states = built(name, union).float(), states_of(6).float()
    whole = use(attention, states)
    with masking_heads({attention: torch.ones(HEADS), built(name, union): torch.zeros(HEADS)}):
        assert torch.equal(use(attention, states), whole)
    assert torch.equal(use(attention, states), whole)


def test_the_fused_kernel_is_masked_like_the_explicit_path() -> None:
    attention, states = built("soft", SelfAttentionConfig), states_of(300)
    with masking_heads({attention: mask_without(1, 3)}):
        fused = self_attend(attention, states)
        with recording() as weights:
            explicit = self_attend(attention, states)
    assert_close(fused, explicit)
    assert weights[attention][0][:, 1].sum() > 0  # the weights are those of the head, although it is off


@pytest.mark.parametrize("combine", ["concatenate", "mean"])
def test_heads_of_graph_attention_are_switched_off(combine: Any) -> None:
    torch.manual_seed(1)
    layer = GraphAttention(8, 3, 5, scorer=AdditiveConfig(), combine=combine, dropout=0.0, attention_dropout=0.0).eval()
    nodes, edges = torch.randn(4, 8), torch.tensor([[0, 0, 1, 2, 3, 3], [1, 2, 0, 3, 3, 1]])
    whole = layer(nodes, edges)
    with masking_heads({layer: torch.tensor([1.0, 0.0, 1.0])}):
        masked = layer(nodes, edges)
    if combine == "concatenate":
        expected = whole.clone()
        expected[:, 5:10] = layer.bias[5:10]
        assert torch.equal(masked, expected)
    else:
        with masking_heads({layer: torch.tensor([0.0, 1.0, 0.0])}):
            assert_close(masked, whole - layer(nodes, edges) + layer.bias)


def test_the_gradient_of_a_mask_equals_finite_differences() -> None:
    attention, states = built("soft", SelfAttentionConfig), states_of(6)

    def loss(mask: Tensor) -> Tensor:
        with masking_heads({attention: mask}):
            return self_attend(attention, states).square().sum()

    assert torch.autograd.gradcheck(loss, torch.ones(HEADS, dtype=torch.double, requires_grad=True))


def test_masks_of_nested_contexts_and_of_an_exception_end_with_their_context() -> None:
    first, second = built("soft", SelfAttentionConfig), built("linear", SelfAttentionConfig)
    states = states_of(6)
    whole = self_attend(first, states)
    with masking_heads({first: mask_without(0)}):
        outer = self_attend(first, states)
        with masking_heads({second: mask_without(1)}):
            assert torch.equal(self_attend(first, states), outer)
        with pytest.raises(RuntimeError), masking_heads({first: torch.zeros(HEADS + 1)}):
            self_attend(first, states)
        with masking_heads({first: mask_without(1)}):
            assert not torch.equal(self_attend(first, states), outer)
        assert torch.equal(self_attend(first, states), outer)
    assert torch.equal(self_attend(first, states), whole)
