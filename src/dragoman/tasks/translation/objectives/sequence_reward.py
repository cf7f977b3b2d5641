"""Fine-tuning on a sequence-level reward, which raises or lowers the probability of sampled translations."""

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
from dragoman.metrics.bleu_tokenizer import AUTO, choose_tokenizer
from dragoman.metrics.registry import SentenceMetricName, ngram_metrics
from dragoman.models.interface import source_mask
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropy, LabelSmoothingConfig
from dragoman.training.objectives.fused_cross_entropy import projected_cross_entropy
from dragoman.training.objectives.objective import FIRST, Loss, LossContext, TrainingPoint


class SequenceRewardConfig(LabelSmoothingConfig):
    """Fine-tuning on a sequence-level reward: O = α · O_ML + O_RL (Wu et al. 2016, "GNMT", equations 8 and 9).

    O_RL = Σ over pairs of E[r(Y, Y*)], with Y sampled from the model; its gradient is estimated by REINFORCE. O_ML is
    the log-likelihood, with label smoothing.
    YAML: `train: {start: runs/trained, objective: {kind: sequence_reward, metric: bleu, samples: 5}}`.
    """

    kind: Literal["sequence_reward"] = "sequence_reward"
    metric: SentenceMetricName = Field(
        "bleu",
        description="Reward r, from 0 to 1, computed by sacreBLEU on plain text: sentence BLEU with exponential "
        "smoothing and the tokeniser train.bleu_tokenizer, or chrF2.",
    )
    samples: int = Field(
        5,
        ge=1,
        description="Number of translations sampled per sentence pair. The time and memory of an update grow with it.",
    )
    likelihood: float = Field(0.017, ge=0, description="α, weight of the likelihood objective (GNMT: 0.017).")
    baseline: Literal["leave_one_out", "greedy"] = Field(
        "leave_one_out",
        description="Baseline of the reward: the mean reward of the pair's other samples (Kool et al. 2019), or the "
        "reward of the greedy translation (Rennie et al. 2017).",
    )

    @model_validator(mode="after")
    def _check_samples(self) -> "SequenceRewardConfig":
        if self.baseline == "leave_one_out" and self.samples < 2:
            raise ValueError("baseline=leave_one_out compares each sample with the others: set samples to 2 or more")
        return self

    @property
    def decodes(self) -> bool:
        """True, because translations are sampled token by token."""
        return True

    def build(self, context: LossContext) -> "SequenceReward":
        """Build the objective. The tokenizer `context.target` decodes the samples."""
        return SequenceReward(self.cross_entropy(context), self, context.target, tokenizer=context.bleu_tokenizer)


def sentence_rewards(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    tokenizer: str = AUTO,
) -> list[float]:
    """Return the reward of each hypothesis against its reference, from 0 to 1. metric: the key of an `NgramMetric`.

    BLEU uses effective n-gram order and exponential smoothing (Chen and Cherry 2014, method 3), sacreBLEU's defaults
    for sentences. language, tokenizer: determine the tokeniser of each reference, as in `choose_tokenizer`.
    """
    tokenizers = {each: choose_tokenizer(language, [[each]], tokenizer).name for each in dict.fromkeys(references)}
    rewards = [0.0] * len(hypotheses)
    for name in dict.fromkeys(tokenizers.values()):
        rows = [row for row, reference in enumerate(references) if tokenizers[reference] == name]
        scorer = ngram_metrics()[metric].with_tokenizer(name)
        scores = scorer.sentence_scores([hypotheses[row] for row in rows], [references[row] for row in rows])
        for row, score in zip(rows, scores, strict=True):
            rewards[row] = score / 100
    return rewards


def leave_one_out(rewards: Tensor) -> Tensor:
    """Return, as a baseline for each of the rewards (B, n), n ≥ 2, the mean of the other rewards in its row."""
    return (rewards.sum(1, keepdim=True) - rewards) / (rewards.size(1) - 1)


# No symbol is forbidden, because samples must come from the distribution whose gradient is computed.
_SAMPLING = SamplingConfig(length_factor=1.5, length_margin=10, forbid=())


class SequenceReward:
    """Objective: α times the cross-entropy minus the expected reward, summed over a batch's pairs (GNMT, equation 9).

    Samples are drawn and scored in evaluation mode, without dropout and with the same discrete choices as in
    translation. The estimate of the expected reward's gradient is therefore unbiased.
    """

    divisible = False  # because the objective switches the model between training and evaluation mode

    def __init__(
        self,
        likelihood: CrossEntropy,
        config: SequenceRewardConfig,
        target: Tokenizer,
        sampling: SamplingConfig = _SAMPLING,
        tokenizer: str = AUTO,
    ) -> None:
        """tokenizer: the tokeniser of BLEU; `auto`: by each reference."""
        self._tokenizer = tokenizer
        self.likelihood, self.config, self.target, self.sampling = likelihood, config, target, sampling

    def __call__(self, model: Seq2Seq, batch: Batch, point: TrainingPoint = FIRST) -> Loss:
        """Return the loss of one batch; `auxiliary` contains the mean `reward` of the samples, from 0 to 1."""
        likelihood = self.likelihood(model, batch, point)
        with _evaluation_mode(model):
            minus_reward, mean = self.minus_expected_reward(model, batch)
        return Loss(
            self.config.likelihood * likelihood.total + minus_reward,
            likelihood.cross_entropy,
            likelihood.tokens,
            {**likelihood.auxiliary, "reward": mean},
            likelihood.counts,
        )

    def minus_expected_reward(self, model: Seq2Seq, batch: Batch) -> tuple[Tensor, float]:
        """Return a scalar whose gradient estimates that of −Σ E[r] over pairs, and the mean reward of the samples."""
        count = self.config.samples
        memory = model.encode(batch.source, batch.source_mask)
        max_length = self.sampling.max_length(int(source_mask(memory).sum(1).max()))
        numbers = torch.rand(len(batch.rows), count, max_length, dtype=torch.float64)
        samples = sample(model.decoder, Prompts.of(model.decoder, memory, self.sampling), self.sampling, numbers)
        references = self.target.decode_batch(
            row[mask].tolist()[:-1] for row, mask in zip(batch.labels, batch.target_mask, strict=True)
        )
        rewards = self._rewards(samples, references).to(batch.labels.device)
        if self.config.baseline == "greedy":
            greedy = self.sampling.model_copy(update={"top_k": 1})
            best = sample(model.decoder, Prompts.of(model.decoder, memory, greedy), greedy, numbers[:, :1])
            baseline = self._rewards(best, references).to(rewards.device)
        else:
            baseline = leave_one_out(rewards)
        # REINFORCE, −Σ (r − b) · log p: each token's loss is weighted by its translation's advantage.
        advantage = ((rewards - baseline) / count).flatten()

        inputs, labels, mask = (each.to(batch.labels.device) for each in _training_tensors(samples))
        state = model.decoder.start(memory)
        rows = torch.arange(len(samples), device=inputs.device).repeat_interleave(count)
        output, _ = model.decoder.step(inputs, state.reorder(rows, count))
        predictions = output.at(mask)
        total, _ = projected_cross_entropy(
            predictions.hidden,
            predictions.weight,
            labels[mask],
            factors=advantage[:, None].expand(mask.shape)[mask],
            bias=predictions.bias,
        )
        return total, float(rewards.mean())

    def _rewards(self, samples: Sequence[Sequence[Hypothesis]], references: Sequence[str]) -> Tensor:
        """Return the rewards (B, n) float32 of the samples."""
        texts = self.target.decode_batch(each.tokens for row in samples for each in row)
        repeated = [reference for reference, row in zip(references, samples, strict=True) for _ in row]
        rewards = sentence_rewards(self.config.metric, texts, repeated, tokenizer=self._tokenizer)
        return torch.tensor(rewards).view(len(samples), -1)


def _training_tensors(samples: Sequence[Sequence[Hypothesis]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the samples as inputs and labels (B · n, T) int64, and a mask (B · n, T) bool of their tokens.

    Unfinished samples have no end symbol.
    """
    sequences = [(*each.tokens, EOS) if each.finished else each.tokens for row in samples for each in row]
    labels, mask = pad(sequences)
    inputs, _ = pad([(BOS, *tokens[:-1]) for tokens in sequences])
    return inputs, labels, mask


@contextmanager
def _evaluation_mode(model: Seq2Seq) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
