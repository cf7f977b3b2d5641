"""Validation of a masked language model on held-out text, whose masks are the same in every validation."""

import time
from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from dragoman.base.progress import Progress
from dragoman.data.batches.batch import excerpts
from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import SPECIAL, MaskedCollator, content
from dragoman.data.batches.masking import Masker
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.batches.sentence_pairs import PairMaker
from dragoman.tasks.language_model.validator import HeldOutText
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Measure, Validation

_BATCH = BatchConfig(tokens=4096)
_CHUNK = 1024
"""Number of tokens whose logits are computed at once."""


class MaskedTextValidator:
    """Validates a model on the excerpts of one validation set, which are masked only once.

    block: maximum number of tokens of a row. pairs: whether the model also predicts next sentences.
    """

    def __init__(
        self, held_out: HeldOutText, tokenizer: Tokenizer, masker: Masker, block: int, model: Any, pairs: bool = False
    ) -> None:
        self._model = model
        documents = tokenizer.encode_batch(held_out.documents)
        divided = [excerpts(ids, block - SPECIAL - pairs) for ids in documents]
        rows = [each for parts in divided for each in parts]
        owners = [number for number, parts in enumerate(divided) for _ in parts]
        lengths = np.array([[len(each) - 1] for each in rows], np.int32)
        plan = plan_epoch(lengths, _BATCH, seed=0, epoch=0, special=SPECIAL)
        maker = PairMaker(tokenizer, lambda row: content(np.array(rows[row])), owners, 0) if pairs else None
        collate = MaskedCollator(masker, pairs=maker)
        self._batches = [collate([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the batches, and all return the same result."""
        started = time.monotonic()
        total = correct = tokens = right = pairs = 0.0
        batches = self._batches[runtime.ranks.rank :: runtime.ranks.size]
        with Progress("Validating", "batches", len(batches)) as progress:
            for number, batch in enumerate(batches, 1):
                batch = batch.to(runtime.device)
                with runtime.autocast():
                    output = self._model(*batch.model_inputs)
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
                tokens += batch.target_tokens
                progress.update(number)
        total, correct, tokens, right, pairs = runtime.ranks.sum([total, correct, tokens, right, pairs])
        values = [total / tokens, 100 * correct / tokens, *([100 * right / pairs] if pairs else [])]
        return Validation(measures(*values), time.monotonic() - started)


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
        keys = [each.key for each in next(iter(results.values())).measures if each.key != "perplexity"]
        means = [_mean([each[key].value for each in results.values()]) for key in keys]
        return Validation(measures(*means), sum(each.seconds for each in results.values()), results)


def measures(loss: float, accuracy: float, next_sentence: float | None = None) -> tuple[Measure, ...]:
    """Return the measures of a validation.

    loss: cross-entropy per masked token (nats). accuracy: in percent. next_sentence: accuracy of next-sentence
    prediction in percent; None without it.
    """
    others = () if next_sentence is None else (_next_sentence(next_sentence),)
    return (
        Measure("loss", "loss", loss, "lower", digits=4),
        Measure("perplexity", "perplexity of masked tokens", exp(min(loss, 700.0)), None),
        Measure("accuracy", "accuracy of masked tokens", accuracy, "higher"),
        *others,
    )


def _next_sentence(accuracy: float) -> Measure:
    return Measure("next_sentence", "accuracy of next sentences", accuracy, "higher")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
