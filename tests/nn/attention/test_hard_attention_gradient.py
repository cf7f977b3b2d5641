"""REINFORCE against the exact gradient, on a model so small that every choice can be enumerated."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention import hard
from dragoman.nn.attention.hard import HardAttention
from dragoman.nn.auxiliary import collecting
from dragoman.training.objectives import fused_cross_entropy, reinforce
from dragoman.training.objectives.cross_entropy import CrossEntropy

SOURCE, TARGET, SIZE, SMOOTHING = 3, 2, 9, 0.1


class Forced:
    """Replaces the sampling of positions and coins: returns given values, and records their probability."""

    def __init__(self, places: list[list[int]], coins: list[list[bool]]) -> None:
        self.places, self.coins = iter(places), iter(coins)
        self.probability = 1.0

    def sample_positions(self, probabilities: Tensor) -> Tensor:
        """Return the given positions: one list per call, one entry per real query, −1 for a query that has stopped."""
        given = next(self.places)
        for query, place in enumerate(given):
            self.probability *= 1.0 if place < 0 else float(probabilities[0, 0, query, place])
        rest = probabilities.size(2) - len(given)
        return torch.tensor([*(max(place, 0) for place in given), *[0] * rest]).view(1, 1, -1)

    def sample_bernoulli(self, probabilities: Tensor) -> Tensor:
        given = next(self.coins)
        for query, coin in enumerate(given):
            self.probability *= float(probabilities[0, query]) if coin else 1 - float(probabilities[0, query])
        rest = probabilities.size(1) - len(given)
        return torch.tensor([*given, *[True] * rest]).view(1, -1)


def model(layers: int, **settings: Any) -> Seq2Seq:
    stack = {"layers": layers, "heads": 1, "feedforward": 8, "norm": "pre"}
    weights = {"entropy_weight": 0.0, "baseline_weight": 0.0}
    attention = {"kind": "hard", "gradient": "reinforce", **weights, "discount": 1.0, **settings}
    config = {"width": 6, "encoder": {**stack, "layers": 1}, "decoder": {**stack, "cross_attention": attention}}
    torch.manual_seed(3)
    built = ModelConfig.model_validate({"preset": None, "dropout": 0.0, **config}).build(SIZE, SIZE).double()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.4)
    return built.train()


def batch(source: int = SOURCE) -> Batch:
    """One pair with `source` and two target tokens, followed by padding, where the samples do not matter."""
    pair = collate([[5, 7][: source - 1], [6, 7, 8]], [[6], [4, 5]], [0, 1])
    names = ("source", "source_mask", "inputs", "labels", "target_mask")
    first: dict[str, Any] = {name: getattr(pair, name)[:1] for name in names}
    return replace(pair, **first, target_tokens=TARGET, rows=(0,))


Choice = tuple[list[list[int]], list[list[bool]]]


def one_step(layers: int, source: int = SOURCE) -> Iterator[Choice]:
    """Every position for every layer and target token."""
    for places in product(range(source), repeat=layers * TARGET):
        yield [list(places[layer * TARGET :][:TARGET]) for layer in range(layers)], []


def two_steps() -> Iterator[Choice]:
    """A first position, whether to attend again, and if so a different second position."""
    ways = [(one, False, -1) for one in range(SOURCE)]
    ways += [(one, True, two) for one in range(SOURCE) for two in range(SOURCE) if two != one]
    for each in product(ways, repeat=TARGET):
        yield [[way[0] for way in each], [way[2] for way in each]], [[way[1] for way in each]]


def loss_of(built: Seq2Seq, pair: Batch) -> Tensor:
    """The smoothed loss written out, in float64."""
    logits = built(pair.source, pair.source_mask, pair.inputs).logits()[pair.target_mask]
    goal = (1 - SMOOTHING) * nn.functional.one_hot(pair.labels[pair.target_mask], SIZE) + SMOOTHING / SIZE
    return -(goal * logits.log_softmax(-1)).sum()


CASES = {
    "one layer": (lambda: model(1), lambda: one_step(1), SOURCE),
    "two layers": (lambda: model(2), lambda: one_step(2, 2), 2),
    "by the sum": (lambda: model(1, normaliser="sum", scorer={"kind": "additive"}), lambda: one_step(1), SOURCE),
    "adaptive looks": (lambda: model(1, max_positions=2, adaptive=True), two_steps, SOURCE),
}


def force(monkeypatch: pytest.MonkeyPatch, choice: Choice) -> Forced:
    forced = Forced(*choice)
    monkeypatch.setattr(hard, "sample_positions", forced.sample_positions)
    monkeypatch.setattr(hard, "sample_bernoulli", forced.sample_bernoulli)
    return forced


def expected_loss(built: Seq2Seq, pair: Batch, choices: list[Choice], monkeypatch: pytest.MonkeyPatch) -> float:
    total = whole = 0.0
    with torch.no_grad():
        for choice in choices:
            forced = force(monkeypatch, choice)
            loss = float(loss_of(built, pair))
            total += forced.probability * loss
            whole += forced.probability
    assert whole == pytest.approx(1.0), "the probabilities of all choices"
    return total


def estimates(
    built: Seq2Seq, pair: Batch, choices: list[Choice], monkeypatch: pytest.MonkeyPatch
) -> tuple[Tensor, float]:
    """Return mean and variance of the estimated gradient, over all possible samples."""
    objective = CrossEntropy(label_smoothing=SMOOTHING)
    policy = [parameter for name, parameter in built.named_parameters() if "baseline" not in name]
    gradients, chances = [], []
    for choice in choices:
        forced = force(monkeypatch, choice)
        loss = objective(built, pair)
        parts = torch.autograd.grad(loss.total, policy, allow_unused=True)
        gradients.append(
            torch.cat(
                [
                    (torch.zeros_like(p) if part is None else part).flatten()
                    for p, part in zip(policy, parts, strict=True)
                ]
            )
        )
        chances.append(forced.probability)
    stacked, weight = torch.stack(gradients), torch.tensor(chances, dtype=torch.float64)[:, None]
    mean = (weight * stacked).sum(0)
    return mean, float((weight * (stacked - mean).square()).sum())


def set_baseline(built: Seq2Seq, value: float) -> None:
    with torch.no_grad():
        for module in built.modules():
            if isinstance(module, HardAttention):
                module.baseline.weight.zero_()
                module.baseline.bias.fill_(value)


@pytest.mark.parametrize("case", [*[*CASES][:-1], pytest.param("adaptive looks", marks=pytest.mark.slow)])
def test_the_estimates_expectation_is_the_gradient_of_the_expected_loss(
    monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    build, possible, source = CASES[case]
    built, choices, pair = build(), list(possible()), batch(source)
    assert pair.source.size(1) > source and pair.inputs.size(1) > TARGET, "there is padding"
    mean, _ = estimates(built, pair, choices, monkeypatch)
    parameters = [parameter for name, parameter in built.named_parameters() if "baseline" not in name]
    torch.manual_seed(1)
    direction = torch.randn_like(mean)
    direction /= direction.norm()
    values = []
    for step in (1e-4, -2e-4):  # there, and from there to the other side
        with torch.no_grad():
            parts = direction.split([parameter.numel() for parameter in parameters])
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.add_(part.view_as(parameter), alpha=step)
        values.append(expected_loss(built, pair, choices, monkeypatch))
    exact = (values[0] - values[1]) / 2e-4
    assert abs(exact) > 0.01
    assert float(mean @ direction) == pytest.approx(exact, abs=1e-5)


def test_a_baseline_leaves_the_expectation_and_lowers_the_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    built, choices, pair = model(1), list(one_step(1)), batch()
    set_baseline(built, 0.0)
    plain, noise = estimates(built, pair, choices, monkeypatch)
    set_baseline(built, -expected_loss(built, pair, choices, monkeypatch) / TARGET)
    with_baseline, less_noise = estimates(built, pair, choices, monkeypatch)
    torch.testing.assert_close(with_baseline, plain, rtol=0, atol=1e-5)
    assert less_noise < 0.5 * noise


@pytest.mark.parametrize("layers", [1, 2])
def test_the_baseline_of_soft_attention_leaves_the_expectation_and_lowers_the_variance(
    monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    source = 4 - layers
    built, choices, pair = model(layers), list(one_step(layers, source)), batch(source)
    set_baseline(built, 0.0)
    plain, noise = estimates(built, pair, choices, monkeypatch)
    for module in built.modules():
        if isinstance(module, HardAttention):
            module.has_soft_baseline = True
    with_baseline, less_noise = estimates(built, pair, choices, monkeypatch)
    torch.testing.assert_close(with_baseline, plain, rtol=0, atol=1e-5)
    assert less_noise < 0.5 * noise


def test_the_baseline_of_soft_attention_is_the_loss_of_the_soft_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward of a sample is the loss of the same parameters with soft attention, minus the loss of the sample."""
    built, pair = model(1, baseline="soft"), batch()
    stack = {"layers": 1, "heads": 1, "feedforward": 8, "norm": "pre"}
    config = {"preset": None, "dropout": 0.0, "width": 6, "encoder": stack, "decoder": stack}
    soft = ModelConfig.model_validate(config).build(SIZE, SIZE).double()
    soft.load_state_dict({name: each for name, each in built.state_dict().items() if "baseline" not in name})
    force(monkeypatch, ([[0, 1]], []))
    loss = CrossEntropy(label_smoothing=SMOOTHING)(built, pair)
    force(monkeypatch, ([[0, 1]], []))
    expected = float(loss_of(soft, pair)) - float(loss_of(built, pair))
    assert loss.auxiliary["hard_attention_reward"] * TARGET == pytest.approx(expected, rel=1e-6)


def test_a_decision_is_credited_with_later_rewards_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crediting earlier rewards to a decision would keep the expectation and add noise; too few would bias it."""
    built, choices, pair = model(2), list(one_step(2, 2)), batch(2)
    full, noise = estimates(built, pair, choices, monkeypatch)
    monkeypatch.setattr(reinforce, "rewards_to_go", lambda rewards, discount: rewards.sum(1, True).expand_as(rewards))
    everything, more_noise = estimates(built, pair, choices, monkeypatch)
    torch.testing.assert_close(everything, full, rtol=0, atol=1e-5)
    assert more_noise > noise
    monkeypatch.setattr(reinforce, "rewards_to_go", lambda rewards, discount: rewards)
    biased, _ = estimates(built, pair, choices, monkeypatch)
    assert float((biased - full).abs().max()) > 1e-3


TARGETS = 2, 1, 0
"""Numbers of target tokens of the rows of a batch; the last row has none."""


def rows(longest: int) -> Batch:
    """The first row's source has `source` tokens, the second's 2."""
    pair = collate([[5, 7][: longest - 1], [8], []], [[6], [], [5]], [0, 1, 2])
    keep = torch.arange(2) < torch.tensor(TARGETS)[:, None]
    return replace(pair, target_mask=keep, target_tokens=int(keep.sum()))


def ways(layers: int, longest: int) -> list[Tensor]:
    """Return all positions (layers, rows, targets), 0 where there is no target."""
    sizes = [longest, longest, 2]
    found = []
    for places in product(*map(range, sizes * layers)):
        each = torch.zeros(layers, 3, 2, dtype=torch.int64)
        each[:, torch.arange(2) < torch.tensor(TARGETS)[:, None]] = torch.tensor(places).view(layers, -1)
        found.append(each)
    return found


def sample_as(monkeypatch: pytest.MonkeyPatch, places: Tensor) -> None:
    """Make each layer attend to given positions, in parts of the batch too."""
    layers = iter(places)
    monkeypatch.setattr(hard, "sample_positions", lambda probabilities: next(layers)[:, None, : probabilities.size(2)])


def exact_and_estimated(
    built: Seq2Seq, layers: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Tensor, Tensor]:
    """Return the gradient of Σ P · loss over all possible samples, and the mean of the estimates."""
    longest = 3 if layers == 1 else 2
    whole = rows(longest)
    parts = [whole, None] if how != "parts" else whole.split(2)
    if how == "chunks":
        monkeypatch.setattr(fused_cross_entropy, "_CHUNK_ROWS", 2)
    policy = [parameter for name, parameter in built.named_parameters() if "baseline" not in name]
    objective = CrossEntropy(label_smoothing=SMOOTHING)

    def gradient(value: Tensor) -> Tensor:
        found = torch.autograd.grad(value, policy, allow_unused=True, materialize_grads=True)
        return torch.cat([part.flatten() for part in found])

    exact = estimated = chance = torch.zeros(())
    for places in ways(layers, longest):
        sample_as(monkeypatch, places)
        with collecting() as given:
            loss = loss_of(built, whole)
        logarithms = [call.log_probability[whole.target_mask] for calls in given.decisions.values() for call in calls]
        probability = torch.stack([each.sum() for each in logarithms]).sum().exp()
        exact = exact + gradient(probability * loss)
        estimate, row = torch.zeros(()), 0
        for part in parts:
            if part is not None:
                sample_as(monkeypatch, places[:, row : row + len(part.rows)])
                estimate = estimate + gradient(objective(built, part).total)
                row += len(part.rows)
        estimated = estimated + probability.detach() * estimate
        chance = chance + probability.detach()
    assert float(chance) == pytest.approx(1.0), "the probabilities of all choices"
    return exact, estimated


@pytest.mark.parametrize("how", ["whole", "chunks", "parts"])
def test_rows_of_a_batch_and_parts_of_an_update(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """The baseline is the mean of other rows; one row has no target, and one part of the batch is a single row."""
    exact, estimated = exact_and_estimated(model(1), 1, how, monkeypatch)
    assert float(exact.norm()) > 0.1
    torch.testing.assert_close(estimated, exact, rtol=0, atol=1e-5)


def test_only_the_mean_of_other_rows_is_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over all rows contains the row's own rewards: as a baseline it would bias the estimate."""
    monkeypatch.setattr(reinforce, "_mean_of_others", lambda rewards, real: rewards.sum() / real.sum())
    exact, estimated = exact_and_estimated(model(1), 1, "whole", monkeypatch)
    assert float((estimated - exact).abs().max()) > 1e-2


@pytest.mark.parametrize("discount", [0.0, 0.5])
def test_a_discount_causes_no_bias_if_no_later_state_reads_the_choice(
    monkeypatch: pytest.MonkeyPatch, discount: float
) -> None:
    exact, estimated = exact_and_estimated(model(1, discount=discount), 1, "whole", monkeypatch)
    torch.testing.assert_close(estimated, exact, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_the_bias_of_a_discount_in_two_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two targets the estimate is linear in γ: exact at 1; at 0 it lacks the choice's effect on the second one."""
    (exact, full), (_, half), (_, none) = (
        exact_and_estimated(model(2, discount=discount), 2, "whole", monkeypatch) for discount in (1.0, 0.5, 0.0)
    )
    torch.testing.assert_close(full, exact, rtol=0, atol=1e-5)
    torch.testing.assert_close(half, (full + none) / 2, rtol=0, atol=1e-5)
    assert float((none - exact).abs().max()) > 1e-3
