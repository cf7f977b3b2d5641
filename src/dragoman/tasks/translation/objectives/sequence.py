"""The objective of sequence-reward fine-tuning: translations are sampled, scored, and made more or less probable."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from dragoman.data.batches.batch import Batch, pad
from dragoman.decode.prompts import Prompts
from dragoman.decode.sampling import SamplingConfig, sample
from dragoman.decode.search import Hypothesis
from dragoman.models.interface import source_mask
from dragoman.models.seq2seq import Seq2Seq
from dragoman.tasks.translation.objectives.reward import RewardConfig, leave_one_out, sentence_rewards
from dragoman.tasks.translation.objectives.scheduled_sampling import ALWAYS, TeacherForced, TeacherRatio
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import projected_cross_entropy
from dragoman.training.objectives.loss import FIRST, Loss, Moment
from dragoman.training.objectives.objective import ObjectiveConfig

# Nothing is forbidden: what is drawn from must be the very distribution whose gradient is taken.
_DRAWN = SamplingConfig(length_factor=1.5, length_margin=10, forbid=())


class SequenceObjective(TeacherForced):
    """α times the usual loss minus the expected reward, summed over the batch's pairs (GNMT, equation 9).

    The samples, and the pass that gives their probabilities, are made in evaluation mode: without dropout, and with
    hard decisions taken as in translation. So the estimate of the expected reward's gradient has no bias.
    """

    divisible = False  # it switches the model's mode

    def __init__(
        self,
        config: ObjectiveConfig,
        reward: RewardConfig,
        target: Tokenizer,
        prior: Tensor | None = None,
        teacher: TeacherRatio = ALWAYS,
        drawn: SamplingConfig = _DRAWN,
    ) -> None:
        super().__init__(config, prior, teacher)
        self.reward, self.target, self.drawn = reward, target, drawn

    def __call__(self, model: Seq2Seq, batch: Batch, moment: Moment = FIRST) -> Loss:
        """One batch; auxiliary holds the samples' mean `reward`, from 0 to 1."""
        usual = super().__call__(model, batch, moment)
        with _evaluating(model):
            expected, mean = self.minus_expected_reward(model, batch)
        return Loss(
            self.reward.likelihood * usual.total + expected,
            usual.cross_entropy,
            usual.tokens,
            {**usual.auxiliary, "reward": mean},
            usual.counts,
        )

    def minus_expected_reward(self, model: Seq2Seq, batch: Batch) -> tuple[Tensor, float]:
        """A scalar whose gradient estimates that of −Σ over pairs of E[r], and the mean reward of the samples."""
        count = self.reward.samples
        memory = model.encode(batch.source, batch.source_mask)
        longest = self.drawn.max_length(int(source_mask(memory).sum(1).max()))
        numbers = torch.rand(len(batch.rows), count, longest, dtype=torch.float64)
        found = sample(model.decoder, Prompts.of(model.decoder, memory, self.drawn), self.drawn, numbers)
        references = self.target.decode_batch(
            row[keep].tolist()[:-1] for row, keep in zip(batch.labels, batch.target_mask, strict=True)
        )
        rewards = self._rewards(found, references).to(batch.labels.device)
        if self.reward.baseline == "greedy":
            greedy = self.drawn.model_copy(update={"top_k": 1})
            best = sample(model.decoder, Prompts.of(model.decoder, memory, greedy), greedy, numbers[:, :1])
            baseline = self._rewards(best, references).to(rewards.device)
        else:
            baseline = leave_one_out(rewards)
        # REINFORCE, −Σ (r − b) · log p: each token's loss is weighted by what its translation gained over the baseline.
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
        """(B, n) float32."""
        texts = self.target.decode_batch(each.tokens for row in found for each in row)
        own = [reference for reference, row in zip(references, found, strict=True) for _ in row]
        return torch.tensor(sentence_rewards(self.reward.kind, texts, own)).view(len(found), -1)


def _targets(found: Sequence[Sequence[Hypothesis]]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels (B · n, T) int64 and keep, of samples that may lack their end."""
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
