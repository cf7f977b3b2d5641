"""Fine-tuning on a sequence-level reward: scores raise or lower the probability of sampled translations."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

from dragoman.data.batches.batch import Batch, pad
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import SamplingConfig, sample
from dragoman.decode.search import Hypothesis
from dragoman.metrics.registry import SentenceMetricName, ngram_metrics
from dragoman.models.interface import source_mask
from dragoman.models.seq2seq import Seq2Seq
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropy, LabelSmoothingConfig
from dragoman.training.objectives.fused_cross_entropy import projected_cross_entropy
from dragoman.training.objectives.objective import FIRST, Loss, LossContext, TrainingPoint


class SequenceRewardConfig(LabelSmoothingConfig):
    """Fine-tuning on a sequence-level reward: O = α · O_ML + O_RL (Wu et al. 2016, "GNMT", equations 8 and 9).

    O_RL = Σ over pairs of E[r(Y, Y*)], with Y sampled from the model; its gradient is estimated by REINFORCE. O_ML is
    the label-smoothed cross-entropy.
    YAML: `train: {start: runs/trained, objective: {kind: sequence_reward, metric: bleu, samples: 5}}`.
    """

    kind: Literal["sequence_reward"] = "sequence_reward"
    metric: SentenceMetricName = Field(
        "bleu",
        description="Reward r: sacreBLEU's sentence BLEU with exponential smoothing, or chrF2, on plain text, from 0 "
        "to 1.",
    )
    samples: int = Field(
        5,
        ge=1,
        description="Number of samples per sentence pair. Time and memory per update increase with this number.",
    )
    likelihood: float = Field(0.017, ge=0, description="α, weight of the likelihood objective (GNMT: 0.017).")
    baseline: Literal["leave_one_out", "greedy"] = Field(
        "leave_one_out",
        description="Baseline of the reward: the mean reward of the pair's other samples (Kool et al. 2019), or the "
        "reward of the greedy translation (Rennie et al. 2017).",
    )

    @model_validator(mode="after")
    def _has_others(self) -> "SequenceRewardConfig":
        if self.baseline == "leave_one_out" and self.samples < 2:
            raise ValueError("baseline=leave_one_out compares a sample with others: set samples to 2 or more")
        return self

    @property
    def decodes(self) -> bool:
        """True: translations are sampled token by token."""
        return True

    def build(self, context: LossContext) -> "SequenceReward":
        """Build the mixture of likelihood and reward; `context.target` decodes the samples."""
        return SequenceReward(self.cross_entropy(context), self, context.target)


def sentence_rewards(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return the reward of each hypothesis against its reference, from 0 to 1. metric: the key of an `NgramMetric`.

    BLEU uses effective n-gram order and exponential smoothing (Chen and Cherry 2014, method 3), sacreBLEU's defaults
    for sentences.
    """
    return [score / 100 for score in ngram_metrics()[metric].sentence_scores(hypotheses, references)]


def leave_one_out(rewards: Tensor) -> Tensor:
    """Return, as a baseline for each of the rewards (B, n), n ≥ 2, the mean of the other rewards in its row."""
    return (rewards.sum(1, keepdim=True) - rewards) / (rewards.size(1) - 1)


# Nothing is forbidden: samples must come from the distribution whose gradient is computed.
_DRAWN = SamplingConfig(length_factor=1.5, length_margin=10, forbid=())


class SequenceReward:
    """Objective: α times the usual loss minus the expected reward, summed over the batch's pairs (GNMT, equation 9).

    Samples are drawn and scored in evaluation mode: without dropout, and with the same hard decisions as in
    translation. The estimate of the expected reward's gradient is therefore unbiased.
    """

    divisible = False  # because it switches the model between training and evaluation mode

    def __init__(
        self,
        likelihood: CrossEntropy,
        config: SequenceRewardConfig,
        target: Tokenizer,
        drawn: SamplingConfig = _DRAWN,
    ) -> None:
        self.likelihood, self.config, self.target, self.drawn = likelihood, config, target, drawn

    def __call__(self, model: Seq2Seq, batch: Batch, point: TrainingPoint = FIRST) -> Loss:
        """Return the loss of one batch; `auxiliary` reports the mean `reward` of the samples, from 0 to 1."""
        usual = self.likelihood(model, batch, point)
        with _evaluating(model):
            expected, mean = self.minus_expected_reward(model, batch)
        return Loss(
            self.config.likelihood * usual.total + expected,
            usual.cross_entropy,
            usual.tokens,
            {**usual.auxiliary, "reward": mean},
            usual.counts,
        )

    def minus_expected_reward(self, model: Seq2Seq, batch: Batch) -> tuple[Tensor, float]:
        """Return a scalar with the estimated gradient of −Σ E[r] over pairs, and the mean reward of the samples."""
        count = self.config.samples
        memory = model.encode(batch.source, batch.source_mask)
        longest = self.drawn.max_length(int(source_mask(memory).sum(1).max()))
        numbers = torch.rand(len(batch.rows), count, longest, dtype=torch.float64)
        found = sample(model.decoder, Prompts.of(model.decoder, memory, self.drawn), self.drawn, numbers)
        references = self.target.decode_batch(
            row[keep].tolist()[:-1] for row, keep in zip(batch.labels, batch.target_mask, strict=True)
        )
        rewards = self._rewards(found, references).to(batch.labels.device)
        if self.config.baseline == "greedy":
            greedy = self.drawn.model_copy(update={"top_k": 1})
            best = sample(model.decoder, Prompts.of(model.decoder, memory, greedy), greedy, numbers[:, :1])
            baseline = self._rewards(best, references).to(rewards.device)
        else:
            baseline = leave_one_out(rewards)
        # REINFORCE, −Σ (r − b) · log p: each token's loss is weighted by its translation's advantage.
        advantage = ((rewards - baseline) / count).flatten()

        inputs, labels, keep = (each.to(batch.labels.device) for each in _targets(found))
        state = model.decoder.start(memory)
        first = torch.arange(len(found), device=inputs.device).repeat_interleave(count)
        output, _ = model.decoder.step(inputs, state.reorder(first, count))
        predictions = output.at(keep)
        total, _ = projected_cross_entropy(
            predictions.hidden,
            predictions.weight,
            labels[keep],
            factors=advantage[:, None].expand(keep.shape)[keep],
            bias=predictions.bias,
        )
        return total, float(rewards.mean())

    def _rewards(self, found: Sequence[Sequence[Hypothesis]], references: Sequence[str]) -> Tensor:
        """Return the rewards (B, n) float32 of the samples."""
        texts = self.target.decode_batch(each.tokens for row in found for each in row)
        own = [reference for reference, row in zip(references, found, strict=True) for _ in row]
        return torch.tensor(sentence_rewards(self.config.metric, texts, own)).view(len(found), -1)


def _targets(found: Sequence[Sequence[Hypothesis]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs and labels (B · n, T) int64, and a mask, of samples; unfinished samples have no end symbol."""
    drawn = [(*each.tokens, EOS) if each.finished else each.tokens for row in found for each in row]
    labels, keep = pad(drawn)
    inputs, _ = pad([(BOS, *tokens[:-1]) for tokens in drawn])
    return inputs, labels, keep


@contextmanager
def _evaluating(model: Seq2Seq) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
