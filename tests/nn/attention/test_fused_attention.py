"""The fused kernel has the values and gradients of the explicit path, for every mask that models use."""

import pytest
import torch

from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.dropout import scale_dropout
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.alibi import AlibiConfig

LONG = 300
"""Number of keys from which the fused kernel is used on a CPU."""


@pytest.fixture
def attention() -> SoftAttention:
    torch.manual_seed(1)
    built = SoftAttentionConfig().build(AttentionSizes(16, 16, 16, 2, 0.0))
    assert isinstance(built, SoftAttention)
    return built


def states(rows: int, length: int) -> torch.Tensor:
    return torch.randn(rows, length, 16, generator=torch.Generator().manual_seed(length)).requires_grad_()


def both(compute) -> None:  # type: ignore[no-untyped-def]
    """compute() → (result, its inputs), on the usual path and on the explicit one."""
    results = []
    for explicit in (False, True):
        if explicit:
            with recording() as seen:
                result, sources = compute()
            assert seen, "the explicit path was not taken"
        else:
            result, sources = compute()
        results.append((result, *torch.autograd.grad(result.square().sum(), sources)))
    for fused, explicit_one in zip(*results, strict=True):
        torch.testing.assert_close(fused, explicit_one, rtol=1e-4, atol=1e-4)


def test_with_padding(attention: SoftAttention) -> None:
    keep = torch.arange(LONG)[None, :] < torch.tensor([[LONG], [40]])

    def compute():  # type: ignore[no-untyped-def]
        read = states(2, LONG)
        return attention.self_attend(read, Mask.padding(keep))[keep], (read, attention.query.weight)

    both(compute)


@pytest.mark.parametrize("positions", [None, AlibiConfig()], ids=["plain", "biased"])
def test_a_text_without_keys(positions: AlibiConfig | None) -> None:
    """Its queries have the value zero, also if distances are added to the scores."""
    torch.manual_seed(1)
    built = SoftAttentionConfig().build(AttentionSizes(16, 16, 16, 2, 0.0), positions)
    keep = torch.arange(LONG)[None, :] < torch.tensor([[LONG], [0], [7]])

    def compute():  # type: ignore[no-untyped-def]
        read = states(3, LONG)
        return built.self_attend(read, Mask.padding(keep)), (read, built.query.weight)

    both(compute)
    torch.testing.assert_close(compute()[0][1], built.output.bias.expand(LONG, -1))


@pytest.mark.parametrize("before", [0, 1, 120])
def test_causal(attention: SoftAttention, before: int) -> None:
    def compute():  # type: ignore[no-untyped-def]
        read = states(2, LONG)
        cache = None
        if before:
            _, cache = attention.causal_self_attend(read[:, :before], None, CausalSpan(0, before, read.device))
        result, _ = attention.causal_self_attend(
            read[:, before:], cache, CausalSpan(before, LONG - before, read.device)
        )
        return result, (read, attention.key.weight)

    both(compute)


def test_dropout_is_scaled() -> None:
    torch.manual_seed(1)
    built = SoftAttentionConfig().build(AttentionSizes(16, 16, 16, 2, 0.5))
    read, padding = states(1, LONG), Mask.padding(torch.ones(1, LONG, dtype=torch.bool))
    with scale_dropout(0.0):
        found = built.train().self_attend(read, padding)
    torch.testing.assert_close(found, built.eval().self_attend(read, padding))
    assert not torch.equal(found, built.train().self_attend(read, padding))
