"""Validation of a masked language model on held-out text, whose masks are the same in every validation."""

import time
from collections.abc import Mapping
from math import exp
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from dragoman.base.cancellation import until_cancelled
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import document_blocks
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import SPECIAL, MaskedCollator, content
from dragoman.data.batches.masking import Masker
from dragoman.data.batches.plan import plan_epoch
from dragoman.data.batches.sentence_pairs import PairMaker
from dragoman.metrics.score import Score
from dragoman.tasks.corpora.held_out_text import BATCH, HeldOutText
from dragoman.tasks.masked_language_model.replaced_tokens import Detection, Detector
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation

_CHUNK = 1024
"""Number of tokens whose logits are computed at once."""


class MaskedTextValidator:
    """Validates a model on the blocks of one validation set, which are masked only once.

    block: maximum number of tokens of a row. pairs: whether the model also predicts next sentences. detector: measures
    the detection of the tokens that the model's generator replaces, whose loss has the weight `weight`; None: the model
    has no generator.
    """

    def __init__(
        self,
        held_out: HeldOutText,
        tokenizer: Tokenizer,
        masker: Masker,
        block: int,
        *,
        model: Any,
        pairs: bool = False,
        detector: Detector | None = None,
        weight: float = 0.0,
    ) -> None:
        self._model, self._detector, self._weight = model, detector, weight
        documents = tokenizer.encode_batch(held_out.documents)
        divided = [document_blocks(ids, block - SPECIAL - pairs) for ids in documents]
        rows = [each for parts in divided for each in parts]
        owners = [number for number, parts in enumerate(divided) for _ in parts]
        lengths = np.array([[len(each) - 1] for each in rows], np.int32)
        plan = plan_epoch(lengths, BATCH, seed=0, epoch=0, special=SPECIAL)
        maker = PairMaker(tokenizer, lambda row: content(np.array(rows[row])), owners, 0) if pairs else None
        collate = MaskedCollator(masker, pairs=maker)
        self._batches = [collate([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the batches, and all return the same result."""
        started = time.monotonic()
        total = correct = tokens = right = pairs = 0.0
        detection = Detection()
        masked_model = self._model if self._detector is None else self._model.generator
        batches = list(enumerate(self._batches))[runtime.ranks.rank :: runtime.ranks.size]
        with Progress("Validating", "batches", len(batches)) as progress:
            for count, (number, batch) in enumerate(until_cancelled(batches), 1):
                batch = batch.to(runtime.device)
                with runtime.autocast():
                    output = masked_model(*batch.model_inputs)
                    positions = batch.target_mask.flatten().nonzero()[:, 0]
                    for part in torch.split(positions, _CHUNK):
                        logits, labels = output.logits(part), batch.labels.flatten()[part]
                        total += float(functional.cross_entropy(logits, labels, reduction="sum"))
                        correct += int((logits.argmax(1) == labels).sum())
                    if batch.continues is not None:
                        places = batch.continues != NO_LABEL
                        choices = output.next_sentence_logits(places).argmax(1)
                        right += int((choices == batch.continues[places]).sum())
                        pairs += len(choices)
                    if self._detector is not None:
                        detection += self._detector.count(self._model, output, batch, number)
                tokens += batch.target_tokens
                progress.update(count)
        sums = runtime.ranks.sum([total, correct, tokens, right, pairs, *detection.values])
        total, correct, tokens, right, pairs = sums[:5]
        detection = Detection(*sums[5:])
        values = {"loss": total / tokens, "accuracy": 100 * correct / tokens}
        if pairs:
            values["next_sentence"] = 100 * right / pairs
        if self._detector is not None:
            weighted = self._weight * detection.loss / detection.tokens
            values |= {"masked_loss": values["loss"], "loss": values["loss"] + weighted}
            values |= {"detection_accuracy": detection.accuracy, "detection_f1": detection.f1}
        return Validation(scores(values), time.monotonic() - started)


class MaskedValidationSets:
    """Validates a model on one or more validation sets."""

    def __init__(self, validators: dict[str, MaskedTextValidator]) -> None:
        """validators: one validator per set, by the set's name."""
        self._validators = validators

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on each set. For several sets, returns the unweighted means of loss and accuracy."""
        results = {name: validator.run(runtime) for name, validator in self._validators.items()}
        if len(results) == 1:
            return next(iter(results.values()))
        keys = [each.key for each in next(iter(results.values())).scores if each.key != "perplexity"]
        means = {key: fmean(each[key].value for each in results.values()) for key in keys}
        return Validation(scores(means), sum(each.seconds for each in results.values()), results)


_ACCURACIES = {
    "accuracy": "accuracy of masked tokens",
    "next_sentence": "accuracy of next sentences",
    "detection_accuracy": "accuracy of detection",
    "detection_f1": "F1 of replaced tokens",
}
"""The names of metrics in percent."""


def scores(values: Mapping[str, float]) -> tuple[Score, ...]:
    """Return the scores of a validation.

    values: by key. loss: cross-entropy per masked token (nats), to which the weighted loss of detection is added if
    tokens are replaced; masked_loss is then the loss without this term. Accuracies and F1 are in percent.
    """
    masked = values.get("masked_loss")
    perplexity = exp(min(values["loss"] if masked is None else masked, 700.0))
    return (
        Score("loss", values["loss"], key="loss", better="lower", digits=4),
        *(
            ()
            if masked is None
            else (Score("loss of masked tokens", masked, key="masked_loss", better="lower", digits=4),)
        ),
        Score("perplexity of masked tokens", perplexity, key="perplexity"),
        *(Score(name, values[key], key=key, better="higher") for key, name in _ACCURACIES.items() if key in values),
    )
