"""Hard attention: the positions it attends to, its reports to the objective, and its refusals."""

from typing import Any

import pytest
import torch
from random_parameters import perturb
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.hard import HardAttention, HardAttentionConfig, sample_positions
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.auxiliary import Decisions, collecting
from dragoman.nn.mask import Mask
from dragoman.nn.positions.sinusoidal import SinusoidalConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy

WIDTH, HEADS = 8, 2
KEEP = torch.tensor([[True] * 6, [True, True, True, False, False, False], [True] + [False] * 5])
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)


def attention(**settings: Any) -> HardAttention:
    torch.manual_seed(3)
    built = HardAttentionConfig.model_validate({"kind": "hard", "gradient": "reinforce", **settings}).build(SIZES)
    assert isinstance(built, HardAttention)
    return perturb(built)


def inputs(length: int = 4) -> tuple[Tensor, Tensor]:
    torch.manual_seed(7)
    return torch.randn(len(KEEP), length, WIDTH), torch.randn(len(KEEP), KEEP.size(1), WIDTH)


def looked(built: SoftAttention, queries: Tensor, states: Tensor, keep: Tensor = KEEP) -> tuple[Tensor, Tensor]:
    """Return the result, and the weights (B, h, T, S) behind it."""
    padding = Mask.padding(keep)
    with recording() as recorded:
        result = built.cross_attend(queries, built.project_memory(states, padding), padding)
    return result, recorded[built][0]


def soft_twin(built: HardAttention) -> SoftAttention:
    """Soft attention with the same parameters."""
    twin = SoftAttentionConfig().build(SIZES)
    twin.load_state_dict(built.state_dict(), strict=False)
    assert isinstance(twin, SoftAttention)
    return twin.eval()


@pytest.mark.parametrize("looks", [1, 2, 4])
@torch.no_grad()
def test_translation_attends_to_the_most_probable_positions(looks: int) -> None:
    built = attention(max_positions=looks).eval()
    _, soft = looked(soft_twin(built), *inputs())
    result, weights = looked(built, *inputs())
    for row, head, place in [(r, h, p) for r in range(3) for h in range(HEADS) for p in range(4)]:
        number = min(looks, int(KEEP[row].sum()))
        best = soft[row, head, place].topk(number).indices
        expected = torch.zeros(6).index_fill_(0, best, 1 / number)
        assert torch.equal(weights[row, head, place], expected)
    assert torch.equal(looked(built, *inputs())[0], result), "the same again, whatever the random state"


@torch.no_grad()
def test_training_samples_positions_by_their_weights() -> None:
    built = attention().train()
    _, states = inputs()
    queries = torch.randn(3, 1, WIDTH).expand(3, 5000, WIDTH)
    _, soft = looked(soft_twin(built), queries, states)
    _, weights = looked(built, queries, states)
    assert bool(((weights == 0) | (weights == 1)).all()) and bool((weights.sum(-1) == 1).all())
    torch.testing.assert_close(weights.mean(2), soft[:, :, 0], rtol=0, atol=0.03)


@torch.no_grad()
def test_later_positions_are_drawn_from_the_rest() -> None:
    """P(second = j) = Σ_{i≠j} α_i α_j / (1 − α_i)."""
    built = attention(max_positions=2).train()
    _, states = inputs()
    queries = torch.randn(3, 1, WIDTH).expand(3, 5000, WIDTH)
    _, soft = looked(soft_twin(built), queries, states)
    _, weights = looked(built, queries, states)
    assert bool((weights[:2].max(-1).values == 0.5).all()), "two different positions"
    assert bool((weights[2, :, :, 0] == 1).all()), "there is one position only"
    for row in range(2):
        for head in range(HEADS):
            alpha = soft[row, head, 0].double()
            second = (alpha / (1 - alpha)).sum() - alpha / (1 - alpha)
            expected = alpha + second * alpha
            found = 2 * weights[row, head].double().mean(0)
            torch.testing.assert_close(found, expected, rtol=0, atol=0.03)


def test_samples_come_from_the_seed() -> None:
    built = attention().train()
    queries, states = inputs(40)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(looked(built, queries, states)[1])
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_a_position_without_probability_is_never_drawn() -> None:
    probabilities = torch.tensor([0.0, 0.3, 0.0, 0.7, 0.0]).expand(20_000, 5)
    places = sample_positions(probabilities).bincount(minlength=5)
    assert places[[0, 2, 4]].tolist() == [0, 0, 0]
    assert float(places[1]) / 20_000 == pytest.approx(0.3, abs=0.02)


def test_no_gradient_flows_through_the_sample() -> None:
    built = attention(max_positions=3, adaptive=True).train()
    looked(built, *inputs())[0].square().sum().backward()
    untouched = [built.query, built.key, built.baseline, built.again]
    assert all(parameter.grad is None for module in untouched for parameter in module.parameters())  # type: ignore[union-attr]
    assert built.value.weight.grad is not None and bool((built.value.weight.grad != 0).any())


def told(
    built: HardAttention, keep: Tensor | None = None, length: int = 4
) -> tuple[Decisions, Tensor, dict[str, Tensor]]:
    padding = Mask.padding(KEEP)
    queries, states = inputs(length)
    with collecting() as auxiliary, recording() as recorded:
        built.cross_attend(queries, built.project_memory(states, padding), padding, keep)
    return auxiliary.decisions[built][0], recorded[built][0], auxiliary.counts


def test_decisions_have_log_probability_and_entropy_over_all_heads() -> None:
    built = attention(entropy_weight=0.3, baseline_weight=0.4).train()
    decisions, weights, _ = told(built)
    _, soft = looked(soft_twin(built), *inputs())
    chosen = (soft * weights).sum(-1)
    torch.testing.assert_close(decisions.log_probability, chosen.log().sum(1))
    torch.testing.assert_close(decisions.entropy, -torch.xlogy(soft, soft).sum((1, 3)))
    assert decisions.baseline.shape == (3, 4)
    assert (decisions.entropy_weight, decisions.baseline_weight) == (0.3, 0.4)
    assert bool((decisions.log_probability[2] == 0).all()), "a single position is no choice"


def test_nothing_is_reported_in_translation() -> None:
    with collecting() as auxiliary:
        looked(attention(adaptive=True).eval(), *inputs())
    assert not auxiliary.decisions and not auxiliary.counts


def test_a_query_without_keys_attends_to_nothing() -> None:
    built = attention(max_positions=2, adaptive=True, combine="concatenate").train()
    keep = KEEP & torch.tensor([[True], [False], [True]])
    padding = Mask.padding(keep)
    queries, states = inputs()
    with collecting() as auxiliary:
        result = built.cross_attend(queries, built.project_memory(states, padding), padding)
    decisions = auxiliary.decisions[built][0]
    assert bool((result[1] == 0).all())
    assert bool((decisions.log_probability[1] == 0).all()) and bool((decisions.entropy[1] == 0).all())
    (result.sum() + decisions.log_probability.sum() + decisions.entropy.sum()).backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in built.parameters() if parameter.grad is not None)


@pytest.mark.parametrize(("bias", "number"), [(-100.0, 1), (100.0, 3)])
@pytest.mark.parametrize("training", [True, False])
def test_a_query_decides_how_often_it_attends(bias: float, number: int, training: bool) -> None:
    built = attention(adaptive=True).train(training)
    assert built.again is not None
    with torch.no_grad():
        built.again.bias.fill_(bias)
    _, weights = looked(built, *inputs())
    expected = KEEP.sum(1).clamp_max(number)
    assert torch.equal((weights > 0).sum(-1), expected[:, None, None].expand(3, HEADS, 4))


@torch.no_grad()
def test_translation_attends_again_if_that_is_more_probable() -> None:
    """Each decision after the first step, computed again from the query and the attended value."""
    built = attention(max_positions=2, adaptive=True).eval()
    assert built.again is not None
    queries, states = inputs(40)
    _, weights = looked(built, queries, states)
    _, soft = looked(soft_twin(built), queries, states)
    number = (weights > 0).sum(-1)[0, 0]
    values = built.value(states[0]).view(6, HEADS, -1)
    asked = built.query(queries[0])
    for place in range(40):
        seen = torch.cat([values[soft[0, head, place].argmax(), head] for head in range(HEADS)])
        again = float(built.again(torch.cat([asked[place], seen]))) > 0
        assert int(number[place]) == 1 + again
    assert {1, 2} == set(number.tolist())


def test_attention_steps_are_counted_at_real_targets() -> None:
    keep = torch.tensor([[True, True, True, True], [True, False, False, False], [True, True, False, False]])
    _, weights, counts = told(attention(adaptive=True).train(), keep)
    number = (weights > 0).sum(-1)[:, 0][keep]
    assert counts["looks"].tolist() == [int((number == each).sum()) for each in range(4)]


def model(**settings: Any) -> Seq2Seq:
    stack = {"layers": 2, "heads": 2, "feedforward": 16}
    decoder = {**stack, "cross_attention": {"kind": "hard", **settings}}
    torch.manual_seed(1)
    config = {"preset": None, "width": 8, "encoder": stack, "decoder": decoder}
    return ModelConfig.model_validate(config).build(20, 20)


@pytest.mark.parametrize("gradient", ["straight_through", "reinforce"])
def test_under_autocast_it_trains(gradient: str) -> None:
    built = model(max_positions=2, adaptive=True, gradient=gradient).train()
    pairs = collate([[5, 6, 7], [8, 9, 10, 11]], [[5, 6], [7, 8, 9, 10]], [0, 1])
    with torch.autocast("cpu", torch.bfloat16):
        loss = CrossEntropy()(built, pairs)
    loss.total.backward()
    assert loss.total.dtype == torch.float32
    if gradient == "reinforce":
        reward = loss.auxiliary["hard_attention_reward"]
        assert float(loss.total.detach()) == pytest.approx(-reward * loss.tokens, rel=1e-3)
    assert all(bool(parameter.grad.isfinite().all()) for parameter in built.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("settings", [{}, {"max_positions": 2}, {"adaptive": True}], ids=["one", "two", "adaptive"])
@torch.no_grad()
def test_steps_equal_the_whole_and_padding_changes_nothing(settings: dict[str, Any]) -> None:
    built = model(**settings).eval()
    tokens = torch.randint(4, 20, (3, 5))
    source, keep = torch.randint(4, 20, (3, 6)), KEEP
    whole, _ = built.decoder.step(tokens, built.decoder.start(built.encode(source, keep)))
    more = torch.nn.functional.pad(source, (0, 3), value=9), torch.nn.functional.pad(keep, (0, 3))
    state = built.decoder.start(built.encode(*more))
    rows = torch.arange(3).repeat_interleave(2)
    state = state.reorder(rows, 2)
    for place in range(5):
        output, state = built.decoder.step(tokens[rows, place : place + 1], state)
        torch.testing.assert_close(output.logits()[:, 0], whole.logits()[rows, place], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "positions", "message"),
    [({"adaptive": True, "max_positions": 1}, None, "raise max_positions"), ({}, SinusoidalConfig(), "source only")],
)
def test_incompatible_settings(settings: dict[str, Any], positions: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HardAttentionConfig.model_validate(settings).build(SIZES, positions)
