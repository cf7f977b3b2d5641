"""Mixture of experts against a plain loop over tokens; capacity and balance."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.models.build import ModelConfig, build_model, count_active_parameters, count_parameters
from dragoman.nn.auxiliary import Auxiliary, collecting
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.mixture import Mixture, MixtureConfig

WIDTH, INNER = 6, 10


def mixture(seed: int = 1, **settings: object) -> Mixture:
    torch.manual_seed(seed)
    return MixtureConfig.model_validate(settings).build(WIDTH, lambda: FeedForward(WIDTH, INNER, "relu", 0.0))


def tokens(rows: int = 4, length: int = 9, seed: int = 2) -> Tensor:
    return torch.randn(rows, length, WIDTH, generator=torch.Generator().manual_seed(seed))


def some_padding(rows: int = 4, length: int = 9) -> Tensor:
    return torch.arange(length) < torch.tensor([9, 4, 1, 7])[:rows, None]


def plain(block: Mixture, states: Tensor, keep: Tensor, capacity: float | None) -> Tensor:
    """One token after another: first choices of all tokens take their places, then second ones."""
    count, active = block.config.count, block.config.active
    result, taken = torch.zeros_like(states), [0] * count
    limit = float("inf")
    if capacity is not None:
        limit = max(1, -(-capacity * active * int(keep.sum()) // count))
    for rank in range(active):
        for row in range(len(states)):
            for place in range(states.size(1)):
                if not keep[row, place]:
                    continue
                probabilities = (states[row, place] @ block.router.T).softmax(0)
                best = sorted(range(count), key=lambda expert: -probabilities[expert].item())[:active]
                whole = sum(probabilities[expert] for expert in best) if active > 1 else 1.0
                expert = best[rank]
                if taken[expert] < limit:
                    taken[expert] += 1
                    read = block.experts[expert](states[row, place])
                    result[row, place] += probabilities[expert] / whole * read
    return result


@pytest.mark.parametrize("active", [1, 2, 3])
@pytest.mark.parametrize("capacity", [None, 0.6, 1.0, 1.25])
def test_equals_a_loop_over_tokens(active: int, capacity: float | None) -> None:
    block, states, keep = mixture(count=4, active=active, capacity=capacity), tokens(), some_padding()
    with collecting() as auxiliary:
        found = block(states, keep)
    expected = plain(block, states, keep, capacity)
    torch.testing.assert_close(found, expected)
    assert not found[~keep].any()
    over = int(auxiliary.counts["over_capacity"])
    assert int(auxiliary.counts["experts"].sum()) == active * int(keep.sum())
    assert (over > 0) == (not torch.allclose(expected, plain(block, states, keep, None)))
    if capacity == 0.6:
        assert over
    block.eval()
    for context in (block(states, keep), _while_collecting(block, states, keep)[0]):
        torch.testing.assert_close(context, plain(block, states, keep, None))


def _while_collecting(block: Mixture, states: Tensor, keep: Tensor | None = None) -> tuple[Tensor, Auxiliary]:
    with collecting() as auxiliary:
        return block(states, keep), auxiliary


def test_all_experts_active_is_the_weighted_sum_of_all() -> None:
    block, states = mixture(count=5, active=5, capacity=None), tokens()
    gates = functional.linear(states, block.router).softmax(-1)
    expected = sum(gates[..., [number]] * expert(states) for number, expert in enumerate(block.experts))
    torch.testing.assert_close(block(states), expected)


def test_padding_changes_nothing_even_under_capacity() -> None:
    block, states = mixture(count=4, capacity=0.7), tokens()
    keep = torch.ones(4, 9, dtype=torch.bool)
    expected, alone = _while_collecting(block, states, keep)
    wide = functional.pad(states, (0, 0, 0, 5), value=3.0)
    found, padded = _while_collecting(block, wide, functional.pad(keep, (0, 5)))
    torch.testing.assert_close(found[:, :9], expected)
    assert not found[:, 9:].any()
    assert padded.penalty(1)[1] == pytest.approx(alone.penalty(1)[1])
    assert torch.equal(padded.counts["experts"], alone.counts["experts"])
    assert not block(states, torch.zeros_like(keep)).any()


def test_balance_is_least_where_experts_read_alike_and_its_gradient_leads_there() -> None:
    block = mixture(count=4, active=1, balance=1.0, capacity=None)
    corners = torch.eye(WIDTH)[:4].repeat(5, 1)[None]  # each expert's own tokens
    with torch.no_grad():
        block.router.zero_()
        block.router[:, :4] = 50 * torch.eye(4)
    _, even = _while_collecting(block, corners)
    assert float(even.penalty(1)[0]) == pytest.approx(1.0, abs=1e-4)
    assert even.counts["experts"].tolist() == [5, 5, 5, 5]
    with torch.no_grad():
        block.router.copy_(torch.randn(4, WIDTH))
        block.router[2, :] += 3  # one expert takes nearly all of positive tokens
    states = tokens(rows=20).abs()
    before = _while_collecting(block, states)[1].counts["experts"]
    assert int(before.max()) > 0.9 * int(before.sum())
    for _ in range(500):
        loss = _while_collecting(block, states)[1].penalty(1)[0]
        assert isinstance(loss, Tensor)
        (gradient,) = torch.autograd.grad(loss, block.router)
        with torch.no_grad():
            block.router -= 0.3 * gradient
    after = _while_collecting(block, states)[1].counts["experts"]
    assert int(after.max()) < 0.4 * int(after.sum())


def test_gradients_in_double() -> None:
    block = mixture(count=3, active=2).double()
    states = tokens(2, 3).double().requires_grad_()

    def run(states: Tensor, *parameters: Tensor) -> Tensor:
        with collecting() as auxiliary:
            named = dict(zip(dict(block.named_parameters()), parameters, strict=True))
            result = torch.func.functional_call(block, named, (states,))
        return torch.cat((result.flatten(), torch.as_tensor(auxiliary.penalty(1)[0]).view(1)))

    assert torch.autograd.gradcheck(run, (states, *block.parameters()))


def test_counts_of_mixtures_of_different_sizes_add_up() -> None:
    small, large = mixture(count=2, active=1), mixture(count=3, active=1)
    with collecting() as auxiliary:
        small(tokens())
        large(tokens())
        small(tokens())
    assert len(auxiliary.counts["experts"]) == 3
    assert int(auxiliary.counts["experts"].sum()) == 3 * 36


def test_a_transformer_of_experts_and_its_parameters() -> None:
    stack = {"layers": 2, "heads": 2, "feedforward": 12, "experts": {"count": 4, "active": 1}}
    given = {"preset": None, "width": 8, "encoder": stack, "decoder": {**stack, "experts": None}}
    model = build_model(ModelConfig.model_validate(given), 20, 20)
    one = 2 * 8 * 12 + 12 + 8
    assert count_parameters(model) - count_active_parameters(model) == 2 * 3 * one
    assert sum(isinstance(module, Mixture) for module in model.modules()) == 2
    assert isinstance(model.decoder.layers[0].feedforward, FeedForward)
    assert all(isinstance(expert, nn.Module) for expert in model.encoder.layers[0].feedforward.experts)


def test_more_active_experts_than_there_are_is_refused() -> None:
    with pytest.raises(ConfigError, match="experts.active = 3 is more than experts.count = 2"):
        mixture(count=2, active=3)
