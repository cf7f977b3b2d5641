"""Validation of a language model on held-out text: loss, and perplexity per token, word and byte."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import collate_text, excerpts
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.cleaning.held_out import repair_like_training
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.corpora.documents import read_texts
from dragoman.metrics.metric import Outputs
from dragoman.metrics.perplexity import BytePerplexity, Loss, Perplexity, WordPerplexity
from dragoman.metrics.text_score import TextScore, count_bytes, count_words
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation, validate

_BATCH = BatchConfig(tokens=4096)
METRICS = (Loss(), Perplexity(), WordPerplexity(), BytePerplexity())


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


class TextValidator:
    """Validates a model on the excerpts of one validation set, which are tokenised only once.

    model: a callable that maps inputs (B, T) to predictions of the next token after each input token.
    """

    def __init__(self, held_out: HeldOutText, tokenizer: Tokenizer, block: int, model: Callable[..., Any]) -> None:
        self._model = model
        documents = held_out.documents
        self._excerpts = [each for ids in tokenizer.encode_batch(documents) for each in excerpts(ids, block)]
        self._words = sum(map(count_words, documents))
        self._bytes = sum(map(count_bytes, documents))
        lengths = np.array([[len(each) - 1] for each in self._excerpts], np.int32)
        self._plan = plan_epoch(lengths, _BATCH, seed=0, epoch=0)

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the excerpts, and all return the same result."""
        started = time.monotonic()
        cross_entropy = CrossEntropy(label_smoothing=0.0)
        total = tokens = 0.0
        batches = self._plan.batches[runtime.ranks.rank :: runtime.ranks.size]
        with Progress("Validating", "excerpts", sum(map(len, batches))) as progress:
            for rows in until_cancelled(batches):
                batch = collate_text([self._excerpts[row] for row in rows], rows.tolist())
                with runtime.autocast():
                    loss = cross_entropy(self._model, batch.to(runtime.device))
                total += float(loss.cross_entropy)
                tokens += loss.tokens
                progress.update(progress.done + len(rows))
        total, tokens = runtime.ranks.sum([total, tokens])
        likelihood = TextScore(-total, int(tokens), self._words, self._bytes)
        return validate(METRICS, Outputs(likelihood=likelihood), started)
