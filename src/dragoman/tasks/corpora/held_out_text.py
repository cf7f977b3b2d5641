"""Held-out text, and the validation of a model on its blocks."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.progress import Progress
from dragoman.data.batches.plan import BatchConfig
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.cleaning.rules import repair_like_training
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.text_score import TextScore
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation, validate

BATCH = BatchConfig(tokens=4096)
"""The size of the batches of a validation."""


@dataclass(frozen=True)
class HeldOutText:
    """Held-out documents of one corpus. name: name of the corpus in messages and in the log."""

    name: str
    documents: list[str]


def read_held_out(sets: Iterable[TextCorpusConfig], cleaning: TextCleaningConfig) -> list[HeldOutText]:
    """Read the validation sets, and repair them like the training corpora. Raises DataError as `read_texts` does."""
    return [
        HeldOutText(str(corpus), repair_like_training(read_texts(corpus), cleaning, str(corpus), newlines=True))
        for corpus in sets
    ]


class BlockValidator:
    """Base class of validators that compute the cross-entropy of batches, which are made only once.

    model: a callable that maps a batch to predictions of its targets. batches: batches of blocks. metrics: metrics of
    the likelihood. words, bytes: numbers of words and bytes of the text, for perplexities per word and byte.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        batches: Sequence[Any],
        metrics: Sequence[Metric],
        words: int = 0,
        bytes: int = 0,
    ) -> None:
        self._model, self._batches, self._metrics = model, batches, metrics
        self._words, self._bytes = words, bytes

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the batches, and all return the same result."""
        started = time.monotonic()
        return validate(self._metrics, self.outputs(runtime), started)

    def outputs(self, runtime: Runtime) -> Outputs:
        """Return the likelihood of the text, and in subclasses what else the metrics need."""
        cross_entropy = CrossEntropy(label_smoothing=0.0)
        total = tokens = 0.0
        batches = self._batches[runtime.ranks.rank :: runtime.ranks.size]
        with Progress("Validating", "blocks", sum(len(batch.rows) for batch in batches)) as progress:
            for batch in until_cancelled(batches):
                with runtime.autocast():
                    loss = cross_entropy(self._model, batch.to(runtime.device))
                total += float(loss.cross_entropy)
                tokens += loss.tokens
                progress.update(progress.done + len(batch.rows))
        total, tokens = runtime.ranks.sum([total, tokens])
        return Outputs(likelihood=TextScore(-total, int(tokens), self._words, self._bytes))
