"""Validation of a language model on held-out text: loss, and perplexity per token, word and byte."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dragoman.data.batches.batch import collate_text, excerpts
from dragoman.data.batches.plan import plan_epoch
from dragoman.metrics.perplexity import BytePerplexity, Loss, Perplexity, WordPerplexity
from dragoman.metrics.text_score import count_bytes, count_words
from dragoman.tasks.held_out_text import BATCH, ExcerptValidator, HeldOutText
from dragoman.text.tokenizer import Tokenizer

METRICS = (Loss(), Perplexity(), WordPerplexity(), BytePerplexity())


class TextValidator(ExcerptValidator):
    """Validates a model on the excerpts of one validation set, which are tokenised only once.

    block: maximum number of tokens of an excerpt. model: a callable that maps inputs (B, T) to predictions of the next
    token after each input token.
    """

    def __init__(self, held_out: HeldOutText, tokenizer: Tokenizer, block: int, model: Callable[..., Any]) -> None:
        documents = held_out.documents
        rows = [each for ids in tokenizer.encode_batch(documents) for each in excerpts(ids, block)]
        plan = plan_epoch(np.array([[len(each) - 1] for each in rows], np.int32), BATCH, seed=0, epoch=0)
        batches = [collate_text([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]
        super().__init__(model, batches, METRICS, sum(map(count_words, documents)), sum(map(count_bytes, documents)))
