"""Validation of a model that restores corrupted text, whose noise is the same in every validation."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dragoman.base.cancellation import until_cancelled
from dragoman.base.progress import Progress
from dragoman.data.batches.batch import excerpts
from dragoman.data.batches.denoising import DenoisingCollator
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.noise.noise import Corruption
from dragoman.metrics.metric import Outputs
from dragoman.metrics.perplexity import Loss, Perplexity
from dragoman.metrics.text_score import TextScore
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Validation, validate

_BATCH = BatchConfig(tokens=4096)
METRICS = (Loss(), Perplexity())


class DenoisingValidator:
    """Validates a model on the excerpts of documents, which are corrupted only once.

    block: maximum number of tokens of an excerpt, with EOS. model: a callable that maps a batch to predictions of the
    tokens of its targets.
    """

    def __init__(
        self,
        documents: Sequence[str],
        tokenizer: Tokenizer,
        corruption: Corruption,
        block: int,
        model: Callable[..., Any],
    ) -> None:
        self._model = model
        rows = [each for ids in tokenizer.encode_batch(documents) for each in excerpts(ids, block - 1)]
        lengths = np.array([[len(each) - 1] for each in rows], np.int32)
        plan = plan_epoch(lengths, _BATCH, seed=0, epoch=0)
        collate = DenoisingCollator(corruption)
        self._batches = [collate([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Validate the current model. Several ranks share the batches, and all return the same result."""
        started = time.monotonic()
        cross_entropy = CrossEntropy(label_smoothing=0.0)
        total = tokens = 0.0
        batches = self._batches[runtime.ranks.rank :: runtime.ranks.size]
        with Progress("Validating", "excerpts", sum(len(batch.rows) for batch in batches)) as progress:
            for batch in until_cancelled(batches):
                with runtime.autocast():
                    loss = cross_entropy(self._model, batch.to(runtime.device))
                total += float(loss.cross_entropy)
                tokens += loss.tokens
                progress.update(progress.done + len(batch.rows))
        total, tokens = runtime.ranks.sum([total, tokens])
        likelihood = TextScore(-total, int(tokens), words=0, bytes=0)
        return validate(METRICS, Outputs(likelihood=likelihood), started)
