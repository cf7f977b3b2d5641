"""`TextJob`, the base class of jobs that learn from blocks of plain text."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import nn

from dragoman.data.batches.plan import BatchPlan
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.held_out.check import Finding, TextSet, check_texts
from dragoman.data.held_out.texts import NO_KEYS, TextKeys
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.models.parts import count_parameters
from dragoman.tasks.corpora.held_out_text import HeldOutText
from dragoman.tasks.corpora.job import CorpusJob, check_block
from dragoman.tasks.corpora.prepared_folder import prepared_folder
from dragoman.tasks.corpora.text_sets import TextSets
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.objectives.objective import LossContext, Objective


class TextJob(CorpusJob):
    """Base class of jobs whose examples are blocks of documents, with at most `data.block` tokens.

    Subclasses set `_held_out`, the documents of the validation sets that are named, and `_tokenizers`, None to learn a
    vocabulary.
    """

    _held_out: Sequence[HeldOutText]
    _tokenizers: Tokenizers | None
    _sets: TextSets
    _excluded: SentenceKeys | None
    task_name: str | None = None
    """Name of the task if it is one of several tasks of a run."""

    def check_held_out(self) -> Iterator[Finding]:
        """Compare the held-out documents with the training corpora."""
        return check_texts(self.run.data.corpora, [TextSet(each.name, each.documents) for each in self._held_out])

    def hold_out(self, known: TextKeys) -> TextKeys:
        """Choose the sets that the recipe does not name, and return their keys beside `known`, those of other tasks."""
        self._sets = TextSets.open(self.run.data, self._held_out, self.run.out, task=self.task_name, known=known)
        self._held_out = self._sets.texts
        self.run = self.run.model_copy(update={"data": self._sets.complete(self.run.data)})
        return known | self._sets.keys

    def leave_out(self, keys: TextKeys) -> None:
        """Leave the texts of held-out sets, those of all tasks of the run, out of training."""
        self._excluded = keys.excluded

    def prepare(self) -> None:
        """Hold out documents, prepare the corpora as token shards, and choose the preset by their size.

        A task of several is divided before (`hold_out`).
        """
        if self.task_name is None:
            self.leave_out(self.hold_out(NO_KEYS))
        data = self.run.data
        self.prepared = prepare_texts(
            data.corpora,
            data.cleaning,
            self._tokenizers or self.run.text,
            prepared_folder(self.run.out),
            data.block - self.block_special,
            temperature=data.temperature,
            sample=data.vocabulary_sample,
            language=data.language,
            held_out=self._excluded,
        )
        self.check_unknown()
        self.resolve_settings(None, self.corpus_size)

    @property
    def valid_sets(self) -> Sequence[TextCorpusConfig]:
        """The validation sets, named or held out."""
        return self._sets.corpora

    def store_inputs(self) -> None:
        """Store the documents that are held out."""
        self._sets.store()

    @property
    def block_special(self) -> int:
        """Number of special symbols of a block that count among its `data.block` tokens."""
        return self.special

    @property
    def corpus_size(self) -> int:
        """The size of the corpora, which determines an automatic preset: the number of blocks."""
        return self.examples

    @property
    def token_count(self) -> int:
        """Number of tokens of all blocks, without special symbols."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text."""
        return self.prepared.tokenizers.target

    def build(self) -> nn.Module:
        """Build the model. Raises ConfigError if `data.block` exceeds the model's number of positions."""
        model = self.run.model.build_for(self.tokenizers.sizes)
        for limit in model.limits:
            check_block(self.run.data.block, limit)
        return model  # type: ignore[no-any-return]

    def outline(self, model: nn.Module) -> str:
        """Return one line with the preset and the numbers of parameters, vocabulary entries and tokens."""
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{self.tokenizer.size:,} · {self.token_count:,} tokens in {self.examples:,} blocks"
        )

    @property
    def validation_sides(self) -> list[dict[str, tuple[Tokenizer, list[str]]]]:
        """The tokenizer and the documents of each validation set."""
        return [{"text": (self.tokenizer, each.documents)} for each in self._held_out]

    @property
    def validation_texts(self) -> list[list[str]]:
        """The documents of each validation set."""
        return [held_out.documents for held_out in self._held_out]

    def padding(self, plan: BatchPlan) -> str:
        """Return a note on the fraction of padding."""
        return f"padding is {plan.padding_waste[-1]:.1%}"

    def objective(self, device: torch.device) -> Objective:
        """Build `train.objective`."""
        dataset = self.prepared.dataset
        objective: Objective = self.run.train.objective.build(
            LossContext(self.tokenizer, dataset.target_counts, device)
        )
        return objective

    def text_facts(self) -> tuple[str, str]:
        """Return the size of the training text for the model card, with its title."""
        return (
            "Training text",
            f"{self.token_count:,} tokens in {self.examples:,} blocks of at most {self.run.data.block} tokens",
        )
