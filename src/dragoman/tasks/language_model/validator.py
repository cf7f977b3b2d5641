"""Validation of a language model on held-out text: loss, perplexity per token, word and byte, and generated texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dragoman.data.batches.batch import collate_text, document_blocks
from dragoman.data.batches.plan import plan_epoch
from dragoman.data.corpora.readers import HeldOutRecords
from dragoman.inference.generation.language_model import LanguageModel
from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.perplexity import BytePerplexity, Loss, Perplexity, WordPerplexity
from dragoman.metrics.text_score import count_bytes, count_words
from dragoman.tasks.corpora.held_out_text import BATCH, BlockValidator, HeldOutText
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.ranks.ranks import Runtime

METRICS = (Loss(), Perplexity(), WordPerplexity(), BytePerplexity())
_LENGTH_FACTOR = 3
"""Maximum length of a generated text, in halves of the longest target."""


class TextValidator(BlockValidator):
    """Validates a model on the blocks of one validation set, which are tokenised only once.

    block: maximum number of tokens of a block. model: a callable that maps inputs (B, T) to predictions of the next
    token after each input token.
    """

    def __init__(self, held_out: HeldOutText, tokenizer: Tokenizer, block: int, model: Callable[..., Any]) -> None:
        documents = held_out.documents
        rows = [each for ids in tokenizer.encode_batch(documents) for each in document_blocks(ids, block)]
        plan = plan_epoch(np.array([[len(each) - 1] for each in rows], np.int32), BATCH, seed=0, epoch=0)
        batches = [collate_text([rows[row] for row in batch], batch.tolist()) for batch in plan.batches]
        super().__init__(model, batches, METRICS, sum(map(count_words, documents)), sum(map(count_bytes, documents)))


class RecordValidator(TextValidator):
    """Also generates the target of each record of a validation set, and compares it with the target of the record."""

    def __init__(
        self,
        held_out: HeldOutText,
        records: HeldOutRecords,
        language_model: LanguageModel,
        block: int,
        metrics: Sequence[Metric],
    ) -> None:
        """records: those of which the documents of `held_out` consist. metrics: of the generated texts."""
        super().__init__(held_out, language_model.tokenizer, block, language_model.model)
        self._metrics = (*self._metrics, *metrics)
        self._records, self._language_model = records, language_model
        lengths = [len(ids) for side in records.references for ids in language_model.tokenizer.encode_batch(side)]
        # The length is limited, because an untrained model rarely generates the end symbol.
        self._max_tokens = _LENGTH_FACTOR * max(lengths) // 2 + 1

    def outputs(self, runtime: Runtime) -> Outputs:
        """Return the likelihood of the documents and the generated texts. Several ranks share the records."""
        ranks, sources = runtime.ranks, self._records.sources
        rows = range(ranks.rank, len(sources), ranks.size)
        texts = self._language_model.generate([sources[row] for row in rows], top_k=1, max_tokens=self._max_tokens)
        gathered = dict(pair for pairs in ranks.gather(list(zip(rows, texts, strict=True))) for pair in pairs)
        return replace(
            super().outputs(runtime),
            hypotheses=[gathered[row].strip() for row in range(len(sources))],
            references=self._records.references,
            sources=sources,
        )
