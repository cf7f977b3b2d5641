"""Replaced-token detection: the loss and the metrics of an encoder that detects a generator's replacements
(ELECTRA)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.data.batches.masked import MaskedBatch
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.nn import randomness
from dragoman.nn.auxiliary import collecting
from dragoman.tasks.masked_language_model.objective import KeptOutput
from dragoman.training.objectives.objective import FIRST, Loss, Objective, TrainingPoint

_CHUNK = 1024
"""Number of tokens whose logits are computed at once."""


class Replaced(NamedTuple):
    """A batch with replaced tokens.

    ids: (B, S) int64, the original tokens, except where the generator has drawn another one. labels: (B, S) bool, True
    at tokens that differ from the original. A drawn token that equals the original is not replaced.
    """

    ids: Tensor
    labels: Tensor


@torch.no_grad()
def replace_tokens(
    output: MaskedOutput, batch: MaskedBatch, vocabulary: range, generator: torch.Generator | None = None
) -> Replaced:
    """Replace each predicted token of a batch with a token drawn from the generator's distribution.

    output: the generator's predictions for the masked batch. vocabulary: the ids that can be drawn, without special
    symbols and tags. generator: source of the random numbers; None: that of the thread, or the device's default.
    """
    original = torch.where(batch.target_mask, batch.labels, batch.inputs)
    ids = original.flatten().clone()
    draws = randomness.generator(ids.device) if generator is None else generator
    for positions in torch.split(batch.target_mask.flatten().nonzero()[:, 0], _CHUNK):
        logits = output.logits(positions)[:, vocabulary.start : vocabulary.stop]
        sums = logits.softmax(1).cumsum(1, dtype=torch.float64)  # one draw per token; multinomial makes V
        draw = torch.rand(len(sums), 1, generator=draws, dtype=sums.dtype, device=sums.device) * sums[:, -1:]
        chosen = torch.searchsorted(sums, draw, right=True)[:, 0].clamp_max(len(vocabulary) - 1)
        ids[positions] = chosen + vocabulary.start
    ids = ids.view_as(original)
    return Replaced(ids, ids != original)


def detection_loss(logits: Tensor, replaced: Replaced, mask: Tensor) -> Tensor:
    """Return the cross-entropy of "replaced", summed over all tokens except padding (Clark et al. 2020, section 2).

    logits: (B, S). mask: (B, S) bool, False at padding.
    """
    labels = replaced.labels[mask].to(logits.dtype)
    return functional.binary_cross_entropy_with_logits(logits[mask], labels, reduction="sum")


class ReplacedTokenObjective:
    """The generator's loss of masked tokens plus λ times the encoder's loss of detection. Implements `Objective`.

    The two models share only their embeddings: no gradient passes through the drawn tokens.
    """

    def __init__(self, tokens: Objective, weight: float, predicted: float, vocabulary: range) -> None:
        """tokens: the loss of masked tokens. weight: λ, weight of the mean detection loss of a token.

        predicted: mean number of predicted tokens per token. The loss of an update is divided by its number of
        predicted tokens, so the sum of the detection loss over all tokens is multiplied by this number. The result does
        not depend on how batches are cut. vocabulary: as in `replace_tokens`.
        """
        self._tokens, self._factor, self._vocabulary = tokens, weight * predicted, vocabulary

    @property
    def divisible(self) -> bool:
        """Whether threads may compute parts of a batch; see `Objective`."""
        return self._tokens.divisible

    def __call__(self, model: Any, batch: MaskedBatch, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of one batch."""
        kept = KeptOutput(model.generator)
        loss = self._tokens(kept, batch, point)
        replaced = replace_tokens(kept.output, batch, self._vocabulary)
        with collecting(point.step) as auxiliary:
            logits = model(replaced.ids, batch.mask, batch.packed)
        total = detection_loss(logits, replaced, batch.mask)
        penalty, means = auxiliary.penalty(batch.target_tokens)
        mean = float(total.detach()) / max(1, int(batch.mask.sum()))
        return replace(
            loss,
            total=loss.total + self._factor * total + penalty,
            auxiliary={**loss.auxiliary, **means, "detection": mean},
        )


@dataclass(frozen=True)
class Detection:
    """Sums over the tokens of validation batches.

    tokens: number of tokens. loss: summed cross-entropy (nats). correct: number of tokens that are classified
    correctly. found, predicted, replaced: numbers of tokens that are correctly classified as replaced, classified as
    replaced, and replaced.
    """

    tokens: float = 0.0
    loss: float = 0.0
    correct: float = 0.0
    found: float = 0.0
    predicted: float = 0.0
    replaced: float = 0.0

    def __add__(self, other: "Detection") -> "Detection":
        return Detection(*(a + b for a, b in zip(self.values, other.values, strict=True)))

    @property
    def values(self) -> tuple[float, ...]:
        """All sums, in the order of the fields."""
        return self.tokens, self.loss, self.correct, self.found, self.predicted, self.replaced

    @property
    def accuracy(self) -> float:
        """Fraction of correct tokens in percent."""
        return 100 * self.correct / max(1.0, self.tokens)

    @property
    def f1(self) -> float:
        """F1 of the replaced tokens in percent; 0 if none is found."""
        return 200 * self.found / max(1.0, self.predicted + self.replaced)


class Detector:
    """Counts how well a model detects replaced tokens. The same tokens are drawn in every validation."""

    def __init__(self, vocabulary: range) -> None:
        """vocabulary: as in `replace_tokens`."""
        self._vocabulary = vocabulary

    def count(self, model: Any, output: MaskedOutput, batch: MaskedBatch, number: int) -> Detection:
        """Return the sums over a batch. output: the generator's predictions. number: the number of the batch."""
        draws = torch.Generator(batch.inputs.device).manual_seed(number)
        replaced = replace_tokens(output, batch, self._vocabulary, draws)
        logits = model(replaced.ids, batch.mask, batch.packed)
        predicted, labels = (logits > 0)[batch.mask], replaced.labels[batch.mask]
        sums = [
            predicted == labels,
            predicted & labels,
            predicted,
            labels,
        ]
        loss = float(detection_loss(logits, replaced, batch.mask))
        return Detection(len(labels), loss, *(float(each.sum()) for each in sums))
