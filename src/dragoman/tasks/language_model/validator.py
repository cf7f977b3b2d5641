"""Judging a language model on held-out text: loss and perplexity a token, a word and a byte."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import torch

from dragoman.base.progress import Work
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.batches.text_batch import collate_text, excerpts
from dragoman.metrics.perplexity import bytes_of, words_of
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.objectives.cross_entropy import CrossEntropy, CrossEntropyConfig
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.validation import Measure, Validation

_BATCH = BatchConfig(tokens=4096)


@dataclass(frozen=True)
class HeldOutText:
    """Documents that training does not see, of one corpus. name: what messages and the log call it."""

    name: str
    documents: list[str]


class TextValidator:
    """Holds the excerpts of one validation set, tokenised once.

    model: what is called with inputs (B, T) and gives what may follow each of them.
    """

    def __init__(self, held_out: HeldOutText, tokenizer: Tokenizer, block: int, model: Callable[..., Any]) -> None:
        self._model = model
        documents = held_out.documents
        self._excerpts = [each for ids in tokenizer.encode_batch(documents) for each in excerpts(ids, block)]
        self._words = sum(map(words_of, documents))
        self._bytes = sum(map(bytes_of, documents))
        lengths = np.array([[len(each) - 1] for each in self._excerpts], np.int32)
        self._plan = plan_epoch(lengths, _BATCH, seed=0, epoch=0)

    @torch.no_grad()
    def run(self, runtime: Runtime) -> Validation:
        """Judge the model as it stands; several ranks share the excerpts, and all know the result."""
        started = time.monotonic()
        plain = CrossEntropy(CrossEntropyConfig(label_smoothing=0.0))
        total = tokens = 0.0
        batches = self._plan.batches[runtime.ranks.rank :: runtime.ranks.size]
        with Work("Validating", "excerpts", sum(map(len, batches))) as work:
            for rows in batches:
                batch = collate_text([self._excerpts[row] for row in rows], rows.tolist())
                with runtime.autocast():
                    loss = plain(self._model, batch.to(runtime.device))
                total += float(loss.cross_entropy)
                tokens += loss.tokens
                work.tell(work.done + len(rows))
        total, tokens = runtime.ranks.sum([total, tokens])
        return Validation(measures(total, tokens, self._words, self._bytes), time.monotonic() - started)


class TextValidators:
    """A validator for each set of held-out text. One set alone is judged as ever."""

    def __init__(self, validators: Mapping[str, TextValidator]) -> None:
        self._validators = validators

    def run(self, runtime: Runtime) -> Validation:
        """Judge the model on each; several have the mean of their losses, each set counting as much."""
        found = {name: validator.run(runtime) for name, validator in self._validators.items()}
        return mean_of(found) if len(found) > 1 else next(iter(found.values()))


def measures(nats: float, tokens: float, words: float, size: float) -> tuple[Measure, ...]:
    """The loss (nats a token), and as perplexities a token, a word and a byte of text with its ends of documents."""
    return (
        Measure("loss", "loss", nats / tokens, "lower", digits=4),
        Measure("perplexity", "perplexity", _exp(nats / tokens), None, "per token"),
        Measure("word_perplexity", "a word", _exp(nats / words), None, "per word"),
        Measure("byte_perplexity", "a byte", _exp(nats / size), None, "per byte", digits=4),
    )


def mean_of(sets: Mapping[str, Validation]) -> Validation:
    """The mean of the losses, with the sets beside it."""
    each: Sequence[Validation] = list(sets.values())
    loss = sum(one["loss"].value for one in each) / len(each)
    shown = (
        Measure("loss", "loss", loss, "lower", digits=4),
        Measure("perplexity", "perplexity", _exp(loss), None, "per token"),
    )
    return Validation(shown, sum(one.seconds for one in each), dict(sets))


def _exp(value: float) -> float:
    return exp(min(value, 700.0))
