"""Sequence-reward fine-tuning: the gradient estimate against the exact expectation, the rewards, the baselines."""

from collections.abc import Callable, Iterable
from itertools import product

import pytest
import torch
from sacrebleu import sentence_bleu, sentence_chrf
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import parse_settings
from dragoman.data.batches.batch import Batch, collate
from dragoman.decode.sampling import SamplingConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.tasks.translation.objectives.sequence_reward import (
    SequenceReward,
    SequenceRewardConfig,
    leave_one_out,
    sentence_rewards,
)
from dragoman.text.symbols import BOS, EOS
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.fused_cross_entropy import projected_cross_entropy
from dragoman.training.objectives.reinforce import policy_loss

SIZE = 6
LENGTH = 3
WORDS = {4: "dog", 5: "runs"}


class Words:
    """A vocabulary of two words; special symbols are empty."""

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        return [" ".join(WORDS[number] for number in ids if number in WORDS) for ids in batch]


def model() -> Seq2Seq:
    torch.manual_seed(2)
    stack = {"layers": 1, "heads": 2, "feedforward": 6}
    settings = {"preset": None, "width": 4, "encoder": stack, "decoder": stack, "dropout": 0.3}
    built = ModelConfig.model_validate(settings).build(SIZE, SIZE)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.5)
    return built.train()


def batch() -> Batch:
    return collate([[4, 5], [5]], [[4, 5], [5, 5]], range(2))


def objective(**changes: object) -> SequenceReward:
    reward = SequenceRewardConfig.model_validate(changes)
    drawn = SamplingConfig(length_factor=0, length_margin=LENGTH, forbid=())
    return SequenceReward(CrossEntropy(), reward, Words(), sampling=drawn)  # type: ignore[arg-type]


def outputs() -> list[list[int]]:
    """All outputs up to the maximum length: complete, or cut off."""
    others = [token for token in range(SIZE) if token != EOS]
    ended = [[*tokens, EOS] for length in range(LENGTH) for tokens in product(others, repeat=length)]
    return ended + [list(tokens) for tokens in product(others, repeat=LENGTH)]


def expected_reward(model: Seq2Seq, pairs: Batch, reward: Callable[[str, str], float]) -> Tensor:
    """Σ over pairs and all outputs of p(output) · r(output), by teacher forcing."""
    model.eval()
    references = Words().decode_batch([[4, 5], [5, 5]])
    total, share = torch.zeros(()), torch.zeros(2)
    for tokens in outputs():
        inputs = torch.tensor([[BOS, *tokens[:-1]]]).expand(2, -1)
        logits = model(pairs.source, pairs.source_mask, inputs).logits()
        each = logits.log_softmax(2).gather(2, torch.tensor(tokens).expand(2, -1)[..., None]).sum((1, 2)).exp()
        text = Words().decode_batch([tokens])[0]
        total = total + sum(p * reward(text, reference) for p, reference in zip(each, references, strict=True))
        share += each.detach()
    torch.testing.assert_close(share, torch.ones(2))
    model.train()
    return total


def rewards(kind: str) -> Callable[[str, str], float]:
    def bleu(hypothesis: str, reference: str) -> float:
        return sentence_bleu(hypothesis, [reference], use_effective_order=True).score / 100

    def chrf(hypothesis: str, reference: str) -> float:
        return sentence_chrf(hypothesis, [reference]).score / 100

    return bleu if kind == "bleu" else chrf


@pytest.mark.parametrize(
    ("kind", "baseline"),
    [
        ("chrf", "leave_one_out"),
        ("bleu", "greedy"),
        pytest.param("bleu", "leave_one_out", marks=pytest.mark.slow),
    ],
)
def test_the_estimate_is_unbiased(kind: str, baseline: str) -> None:
    """The mean of 60 estimates is within its standard error of the exact gradient, in 40 directions."""
    net, pairs = model(), batch()
    chosen = list(net.parameters())
    exact = torch.cat(
        [each.flatten() for each in torch.autograd.grad(expected_reward(net, pairs, rewards(kind)), chosen)]
    )
    sampled = objective(metric=kind, baseline=baseline, samples=20)
    torch.manual_seed(4)
    net.eval()
    estimates = []
    for _ in range(60):
        total, _ = sampled.minus_expected_reward(net, pairs)
        estimates.append(torch.cat([each.flatten() for each in torch.autograd.grad(-total, chosen)]))
    directions = torch.randn(len(exact), 40, generator=torch.Generator().manual_seed(1))
    found = torch.stack(estimates) @ directions
    error = found.std(0) / len(estimates) ** 0.5
    deviations = (found.mean(0) - exact @ directions) / error
    assert deviations.abs().max() < 3.6
    assert (exact @ directions / error).abs().max() > 8  # detects a wrong sign or scale


def test_baselines_reduce_the_variance() -> None:
    net, pairs = model().eval(), batch()
    chosen = list(net.decoder.parameters())

    def spread(sampled: SequenceReward) -> float:
        torch.manual_seed(9)
        drawn = [
            torch.cat(
                [each.flatten() for each in torch.autograd.grad(sampled.minus_expected_reward(net, pairs)[0], chosen)]
            )
            for _ in range(40)
        ]
        return float(torch.stack(drawn).var(0).sum())

    plain = objective(samples=4)
    plain._rewards = lambda found, references, of=plain._rewards: of(found, references) + 1  # type: ignore[method-assign]
    constant = objective(samples=4, baseline="greedy")
    constant._rewards = lambda found, references, of=constant._rewards: (  # type: ignore[method-assign]
        of(found, references) + 1 if len(found[0]) > 1 else torch.zeros(len(found), 1)
    )
    assert spread(plain) < 0.5 * spread(constant)


def test_the_mixed_objective_adds_both_and_restores_the_mode() -> None:
    net, pairs = model(), batch()
    mixed = objective(samples=3, likelihood=0.25)
    torch.manual_seed(1)
    loss = mixed(net, pairs)
    assert net.training
    torch.manual_seed(1)
    usual = CrossEntropy()(net, pairs)
    net.eval()
    reward, mean = mixed.minus_expected_reward(net, pairs)
    torch.testing.assert_close(loss.total, 0.25 * usual.total + reward)
    assert loss.cross_entropy == usual.cross_entropy
    assert loss.auxiliary["reward"] == mean
    assert 0 <= mean <= 1


def test_rewards_are_sacrebleus() -> None:
    hypotheses = ["a dog runs in the park", "dog", "", "a dog runs in a park ."]
    references = ["a dog runs in the park", "a dog runs", "a dog", "a dog runs in the park ."]
    for kind in ("bleu", "chrf"):
        expected = [rewards(kind)(*pair) for pair in zip(hypotheses, references, strict=True)]
        assert sentence_rewards(kind, hypotheses, references) == pytest.approx(expected)  # type: ignore[arg-type]
        assert expected[0] == pytest.approx(1)
        assert expected[2] == 0


def test_leave_one_out_is_the_mean_of_the_others() -> None:
    found = leave_one_out(torch.tensor([[1.0, 2.0, 6.0]]))
    torch.testing.assert_close(found, torch.tensor([[4.0, 3.5, 1.5]]))
    with pytest.raises(ConfigError, match="samples to 2"):
        parse_settings({"samples": 1}, SequenceRewardConfig, "here")
    assert parse_settings({"samples": 1, "baseline": "greedy"}, SequenceRewardConfig, "here").samples == 1


def test_factors_weigh_each_tokens_loss() -> None:
    torch.manual_seed(5)
    hidden, weight = torch.randn(2500, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    labels, factors = torch.randint(9, (2500,)), torch.randn(2500)
    total, plain = projected_cross_entropy(hidden, weight, labels, factors=factors)
    log_probabilities = (hidden @ weight.T).log_softmax(1).gather(1, labels[:, None])[:, 0]
    expected = policy_loss(log_probabilities, factors)
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(plain, -log_probabilities.sum().detach())
    for found, wanted in zip(
        torch.autograd.grad(total, (hidden, weight)), torch.autograd.grad(expected, (hidden, weight)), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="smoothing"):
        projected_cross_entropy(hidden, weight, labels, 0.1, factors=factors)
