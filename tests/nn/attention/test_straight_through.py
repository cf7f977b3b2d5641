"""Hard attention with the straight-through estimate: the attended positions and the gradient."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from closeness import assert_close
from test_hard_attention import HEADS, KEEP, SIZES, WIDTH, attention, inputs, looked, model, soft_twin
from torch import Tensor, nn

from dragoman.data.batches.batch import collate
from dragoman.nn.attention.hard import HardAttention, HardAttentionConfig
from dragoman.nn.attention.recording import recording
from dragoman.nn.auxiliary import collecting
from dragoman.nn.mask import Mask
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint


def straight(**settings: Any) -> HardAttention:
    return attention(gradient="straight_through", **settings).train()


def gradients(module: nn.Module, value: Tensor) -> dict[str, Tensor]:
    names, parameters = zip(*module.named_parameters(), strict=True)
    found = torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("settings", [{}, {"max_positions": 3}, {"adaptive": True}])
def test_training_attends_like_translation(settings: dict[str, Any]) -> None:
    built = straight(**settings)
    result, weights = looked(built, *inputs(30))
    expected, wanted = looked(built.eval(), *inputs(30))
    assert torch.equal(weights, wanted), "to the last digit: one position has all of the weight"
    torch.testing.assert_close(result, expected)
    with collecting() as auxiliary:
        looked(built.train(), *inputs())
    assert not auxiliary.decisions, "there is nothing to reward"


@pytest.mark.parametrize("normaliser", ["softmax", "sum"])
def test_queries_and_keys_have_the_gradient_of_soft_attention(normaliser: str) -> None:
    """A loss that is linear in the output has the same gradient with respect to the weights at any weights."""
    built = straight(normaliser=normaliser)
    twin = soft_twin(built)
    twin.config = twin.config.model_copy(update={"normaliser": normaliser})
    direction = torch.randn(3, 4, WIDTH)
    hard, soft = (gradients(each, (looked(each, *inputs())[0] * direction).sum()) for each in (built, twin))
    for name in ("query.weight", "query.bias", "key.weight"):
        assert float(soft[name].abs().max()) > 0.01
        assert_close(hard[name], soft[name])
    assert not torch.allclose(hard["value.weight"], soft["value.weight"], atol=1e-3), "values: those that were seen"


def test_against_torchs_attention() -> None:
    built = straight()
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([built.query.weight, built.key.weight, built.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([built.query.bias, built.key.bias, built.value.bias]))
    theirs.out_proj.load_state_dict(built.output.state_dict())
    queries, states = inputs()
    direction = torch.randn(3, 4, WIDTH)
    expected, weights = theirs(queries, states, states, key_padding_mask=~KEEP, average_attn_weights=False)
    ours = gradients(built, (looked(built, queries, states)[0] * direction).sum())
    wanted = gradients(theirs, (expected * direction).sum())["in_proj_weight"].chunk(3)
    assert_close(ours["query.weight"], wanted[0])
    assert_close(ours["key.weight"], wanted[1])
    assert torch.equal(looked(built, queries, states)[1].argmax(-1), weights.argmax(-1))


def test_values_get_the_gradient_of_the_attended_positions() -> None:
    """Only the attended positions get a gradient."""
    built, (queries, states) = straight(), inputs()
    states.requires_grad_()
    padding = Mask.padding(KEEP)
    keys, values = built.project_memory(states, padding)
    memory = type(built.project_memory(states, padding))(keys.detach(), values)
    _, weights = looked(built, queries, states)
    (found,) = torch.autograd.grad(built.cross_attend(queries, memory, padding).sum(), states)
    seen = weights.sum((1, 2)) > 0
    assert torch.equal(found.abs().sum(-1) > 0, seen)


@pytest.mark.parametrize(("bias", "looks"), [(-3.0, 1), (3.0, 2)])
def test_the_decision_to_attend_again_learns_from_the_step_not_taken(bias: float, looks: int) -> None:
    """With g = 1 for a second step: (first + g · second) / (1 + g) has the slope (second − first) / (1 + g)² in g."""
    built = straight(adaptive=True, max_positions=2)
    assert built.again is not None
    with torch.no_grad():
        built.again.weight.zero_()
        built.again.bias.fill_(bias)
    queries, states = inputs()
    result, weights = looked(built, queries, states)
    assert set((weights[0] > 0).sum(-1).flatten().tolist()) == {looks}
    first, both = (looked(with_looks(built, number), queries, states)[0].detach() for number in (1, 2))
    slope = (2 * both - first - first) / looks**2
    logit = torch.tensor(bias, requires_grad=True)
    (expected,) = torch.autograd.grad(torch.sigmoid(logit) * slope[:2].sum(), logit)  # the third row has one position
    assert float(expected.abs()) > 1e-3
    assert_close(gradients(built, result.sum())["again.bias"][0], expected)


def with_looks(built: HardAttention, looks: int) -> HardAttention:
    """Return the same parameters with `looks` attention steps per query."""
    other = straight(max_positions=looks)
    other.load_state_dict(built.state_dict(), strict=False)
    return other.eval()


@pytest.mark.parametrize("gradient", ["straight_through", "reinforce"])
def test_attended_positions_are_never_dropped(gradient: str) -> None:
    """Inverted dropout would remove the only position, or double it."""
    config = HardAttentionConfig.model_validate({"kind": "hard", "gradient": gradient, "combine": "concatenate"})
    built = config.build(replace(SIZES, dropout=0.9))
    assert isinstance(built, HardAttention)
    built.train()
    queries, states = inputs(20)
    result, weights = looked(built, queries, states)
    values = built.project_memory(states, Mask.padding(KEEP)).values
    expected = torch.matmul(weights, values).transpose(1, 2).flatten(2)
    assert torch.equal(weights.sum(-1), torch.ones_like(weights[..., 0]))
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize(("step", "share"), [(1, 1.0), (51, 0.5), (100, 0.01), (101, 0.0), (10_000, 0.0)])
def test_fewer_and_fewer_queries_use_soft_attention(step: int, share: float) -> None:
    """All heads of a query are soft, or none; in translation, and outside training, no query is."""
    built = straight(soft_updates=100)
    queries, states = torch.randn(3, 4000, WIDTH), inputs()[1]
    _, soft = looked(soft_twin(built), queries, states)
    _, hard = looked(straight(), queries, states)
    with collecting(step):
        _, weights = looked(built, queries, states)
    is_soft, is_hard = ((weights == each).all((1, 3))[:2] for each in (soft, hard))  # the third row has one position
    assert bool((is_soft ^ is_hard).all())
    assert float(is_soft.float().mean()) == pytest.approx(share, abs=0.03)
    for others in (built, built.eval()):
        assert torch.equal(looked(others, queries, states)[1], hard)


@pytest.mark.parametrize("gradient", ["straight_through", "reinforce"])
@pytest.mark.parametrize(("step", "share"), [(1, 1.0), (51, 0.65), (101, 0.3), (10_000, 0.3)])
def test_a_share_of_the_queries_always_uses_soft_attention(gradient: str, step: int, share: float) -> None:
    built = attention(gradient=gradient, soft_updates=100, soft_fraction=0.3).train()
    queries, states = torch.randn(1, 4000, WIDTH), inputs()[1][:1]
    with collecting(step) as auxiliary:
        _, weights = looked(built, queries, states, KEEP[:1])
    is_hard = (weights.amax(-1) == 1).all(1)[0]
    assert float((~is_hard).float().mean()) == pytest.approx(share, abs=0.04)
    if gradient == "reinforce":
        (decisions,) = auxiliary.decisions[built]
        assert torch.equal(decisions.log_probability[0] != 0, is_hard), "soft attention decides nothing"
        assert torch.equal(decisions.entropy[0] != 0, is_hard)


def test_the_objective_passes_the_number_of_the_update() -> None:
    built = model(soft_updates=100).train()
    pairs = collate([[5, 6, 7, 8, 9]], [[5, 6, 7]], [0])
    seen = []
    for step in (1, 500):
        with recording() as recorded:
            CrossEntropy()(built, pairs, TrainingPoint(step))
        seen.append(recorded[built.decoder.layers[0].cross_attention][0])
    assert float(seen[0].max()) < 1
    assert set(seen[1].unique().tolist()) == {0.0, 1.0}


def test_settings_of_reinforce_choose_it() -> None:
    for settings in ({"entropy_weight": 0.1, "baseline_weight": 1.0, "discount": 0.0}, {"discount": 0.5}):
        assert HardAttentionConfig.model_validate({"kind": "hard", **settings}).gradient == "reinforce"
    assert HardAttentionConfig(max_positions=2).gradient == "straight_through"
    whole = HardAttentionConfig().model_dump()
    assert HardAttentionConfig.model_validate(whole).gradient == "straight_through"


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_one_position_has_all_weight_in_half_precision(precision: torch.dtype) -> None:
    built = straight()
    with torch.autocast("cpu", precision):
        result, weights = looked(built, *inputs())
    assert torch.equal(weights.amax(-1), torch.ones_like(weights[..., 0]))
    found = gradients(built, result.float().sum())
    assert all(bool(gradient.isfinite().all()) for gradient in found.values())
    assert float(found["query.weight"].abs().max()) > 0
