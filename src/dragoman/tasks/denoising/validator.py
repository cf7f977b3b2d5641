"""Validation of a model that restores corrupted text, whose noise is the same in every validation."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dragoman.data.batches.batch import document_blocks
from dragoman.data.batches.denoising import DenoisingCollator
from dragoman.data.batches.plan import plan_epoch
from dragoman.data.noise.noise import Corruption
from dragoman.metrics.perplexity import Loss, Perplexity
from dragoman.tasks.corpora.held_out_text import BATCH, BlockValidator
from dragoman.text.tokenizer import Tokenizer

METRICS = (Loss(), Perplexity())


class DenoisingValidator(BlockValidator):
    """Validates a model on the blocks of documents, which are corrupted only once.

    block: maximum number of tokens of a block, with EOS. model: a callable that maps a batch to predictions of the
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
        rows = [each for ids in tokenizer.encode_batch(documents) for each in document_blocks(ids, block - 1)]
        plan = plan_epoch(np.array([[len(each) - 1] for each in rows], np.int32), BATCH, seed=0, epoch=0)
        collate = DenoisingCollator(corruption)
        batches = [collate([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]
        super().__init__(model, batches, METRICS)
