"""Mixture of experts and its balance loss against Hugging Face's Mixtral, with the same random weights."""

import pytest
import torch
from closeness import assert_close
from torch.nn import functional

from dragoman.nn.auxiliary import collecting
from dragoman.nn.feedforward import FeedForward
from dragoman.nn.mixture import ExpertsConfig

WIDTH, INNER = 6, 10


@pytest.mark.parametrize("active", [1, 2, 4])
def test_equals_mixtral(active: int) -> None:
    """The experts and the router are the same; for one expert Mixtral's gate is 1, where ours is the probability."""
    modeling = pytest.importorskip("transformers.models.mixtral.modeling_mixtral")
    torch.manual_seed(3)
    config = modeling.MixtralConfig(
        hidden_size=WIDTH, intermediate_size=INNER, num_local_experts=4, num_experts_per_tok=active, hidden_act="silu"
    )
    theirs = modeling.MixtralSparseMoeBlock(config)
    ours = ExpertsConfig(count=4, active=active, capacity=None).build(
        WIDTH, lambda: FeedForward(WIDTH, INNER, "swiglu", 0.0)
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_()
        ours.router.copy_(theirs.gate.weight)
        for number, expert in enumerate(ours.experts):
            for linear, weight in (
                (expert.inner, theirs.experts.gate_up_proj[number, :INNER]),
                (expert.gate, theirs.experts.gate_up_proj[number, INNER:]),
                (expert.outer, theirs.experts.down_proj[number]),
            ):
                linear.weight.copy_(weight)
                linear.bias.zero_()
    states, keep = torch.randn(4, 9, WIDTH), torch.arange(9) < torch.tensor([9, 4, 1, 7])[:, None]
    scores = functional.linear(states, ours.router)
    expected = theirs(states)
    if active == 1:
        expected = expected * scores.softmax(-1).amax(-1, keepdim=True)
    assert_close(ours(states), expected)
    with collecting() as auxiliary:
        ours(states, keep)
    theirs_loss = modeling.load_balancing_loss_func((scores.view(-1, 4),), 4, active, keep)
    assert auxiliary.penalty(1)[1]["balance"] == pytest.approx(float(theirs_loss) / active, rel=1e-5)
    assert float(auxiliary.penalty(1)[0]) == pytest.approx(0.01 * float(theirs_loss) / active, rel=1e-5)
