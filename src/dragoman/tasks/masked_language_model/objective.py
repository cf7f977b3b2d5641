"""The losses of a masked language model: masked tokens, and the relation of the two texts of a pair."""

from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn import functional

from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import MaskedBatch
from dragoman.models.heads.masked_language_model import MaskedOutput
from dragoman.training.objectives.objective import FIRST, Loss, Objective, TrainingPoint


class NextSentenceObjective:
    """The loss of masked tokens plus the weighted loss of next-sentence prediction. Implements `Objective`."""

    def __init__(self, tokens: Objective, weight: float, tokens_per_pair: float) -> None:
        """tokens: the loss of masked tokens. weight: weight of the mean loss of a pair.

        tokens_per_pair: mean number of masked tokens of a pair. The loss of an update is divided by its number of
        masked tokens, so the sum over pairs is multiplied by this number. The result does not depend on how batches are
        cut.
        """
        self._tokens, self._factor = tokens, weight * tokens_per_pair

    @property
    def divisible(self) -> bool:
        """Whether threads may compute parts of a batch; see `Objective`."""
        return self._tokens.divisible

    def __call__(self, model: Any, batch: MaskedBatch, point: TrainingPoint = FIRST) -> Loss:
        """Compute the loss of one batch."""
        kept = KeptOutput(model)
        loss = self._tokens(kept, batch, point)
        total, pairs = next_sentence_loss(kept.output, batch)
        mean = float(total.detach()) / max(1, pairs)
        return replace(
            loss, total=loss.total + self._factor * total, auxiliary={**loss.auxiliary, "next_sentence": mean}
        )


class KeptOutput:
    """Runs a model and keeps its output, which several losses need."""

    output: MaskedOutput

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, *inputs: Any) -> MaskedOutput:
        """Return the output of the model, which is also the attribute `output`."""
        self.output = self._model(*inputs)
        return self.output


def next_sentence_loss(output: MaskedOutput, batch: MaskedBatch) -> tuple[Tensor, int]:
    """Return the summed cross-entropy of next-sentence prediction, and the number of pairs."""
    assert batch.continues is not None
    positions = batch.continues != NO_LABEL
    labels = batch.continues[positions]
    return functional.cross_entropy(output.next_sentence_logits(positions), labels, reduction="sum"), len(labels)
