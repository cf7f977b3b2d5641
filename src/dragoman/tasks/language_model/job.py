"""`LanguageModelJob`: what a run that learns to continue text reads, builds, minimises, judges and writes."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.data.batches.batch import TextBatch, collate_text
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.corpora.documents import read_texts
from dragoman.data.corpora.readers import check_readable
from dragoman.data.preparation.pipeline import Prepared
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.models.parts import count_parameters
from dragoman.tasks.language_model.config import LanguageModelRun
from dragoman.tasks.language_model.cost import flops_per_token, trained_bytes
from dragoman.tasks.language_model.validator import HeldOutText, TextValidator, TextValidators
from dragoman.tasks.language_model.vocabulary import load_vocabulary
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.objectives.objective import LossContext, Objective
from dragoman.training.task import Content, Job
from dragoman.training.validation import Validation

_TRIAL = (4, 1)
"""Tokens of the excerpts of a trial."""
_TOKEN = 4


class LanguageModelJob(Job):
    """A model of one's own, or, after `use`, a task for another one's decoder."""

    run: LanguageModelRun
    prepared: Prepared

    def __init__(self, run: LanguageModelRun) -> None:
        check_readable(*run.data.corpora)
        run, self._given = load_vocabulary(run)
        self._held_out = [HeldOutText(str(corpus), read_texts(corpus)) for corpus in run.data.valid_sets]
        self._tokenizers: Tokenizers | None = None
        super().__init__(run)

    def use(self, tokenizers: Tokenizers) -> None:
        """Give the text the target's vocabulary of these, instead of one that is learned from it.

        Raises ConfigError where the settings name another one.
        """
        if self._given is not None:
            raise ConfigError("a text beside another task has that one's vocabulary: leave out data.vocabulary_of")
        self._tokenizers = tokenizers

    def prepare(self) -> None:
        """The corpora as token shards, and the preset for so much text."""
        data = self.run.data
        text = self._tokenizers or self._given or self.run.text
        self.prepared = prepare_texts(
            data.corpora,
            data.cleaning,
            text,
            self.run.out.parent / "prepared",
            data.block,
            temperature=data.temperature,
            sample=data.vocabulary_sample,
        )
        data = data.model_copy(update={"batch": data.batch.sized()})
        self.run = self.run.model_copy(update={"data": data})
        if self._tokenizers is None:
            tokens = int(self.lengths.sum(dtype=np.int64))
            self.run = self.run.model_copy(update={"model": self.run.model.resolved(tokens)})

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the text."""
        return self.prepared.tokenizers.target

    def build(self) -> nn.Module:
        """Raises ConfigError where excerpts are longer than its positions."""
        model, block = self.run.model.build(self.tokenizer.size), self.run.data.block
        if model.limit.positions is not None and block > model.limit.positions:
            raise ConfigError(
                f"data.block is {block} tokens, but the model has {model.limit.positions} positions "
                f"({model.limit.setting}): lower data.block, or raise {model.limit.setting}"
            )
        return model

    @property
    def model_width(self) -> int:
        """d."""
        return self.run.model.width

    def outline(self, model: nn.Module) -> str:
        """Preset, parameters, vocabulary, tokens."""
        tokens = int(self.lengths.sum(dtype=np.int64))
        return (
            f"{self.run.model.preset or 'own'} · {count_parameters(model):,} parameters · vocabulary "
            f"{self.tokenizer.size:,} · {tokens:,} tokens in {self.examples:,} excerpts"
        )

    @property
    def contents(self) -> Mapping[str, Content]:
        """The corpora and the held-out text."""
        texts = json.dumps([each.documents for each in self._held_out], ensure_ascii=False)
        digest = hashlib.sha256(texts.encode("utf-8", "surrogatepass")).hexdigest()
        return {
            "data": Content(self.run.data.training, self.prepared.dataset.fingerprint),
            "valid": Content(self.run.data.validation, digest),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """(N, 1) tokens that are predicted in each excerpt."""
        return self.prepared.dataset.lengths

    @property
    def batch_tokens(self) -> int:
        """`data.batch.tokens`."""
        tokens = self.run.data.batch.tokens
        assert tokens is not None, "preparing has chosen it"
        return tokens

    def peak_tokens(self) -> int:
        """Twice as many in R-Drop, whose passes are made at once."""
        return super().peak_tokens() * self.run.train.objective.passes

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Measured on short excerpts."""
        return trained_bytes(model, tokens, int(self.lengths.max()), free)

    def plan(self, epoch: int) -> BatchPlan:
        """Excerpts of like length together."""
        data = self.run.data
        return plan_epoch(self.lengths, data.batch, self.run.train.seed, epoch, self.prepared.parts, special=0)

    def padding(self, plan: BatchPlan) -> str:
        """Of the excerpts."""
        return f"padding is {plan.padding_waste[-1]:.1%}"

    def batches(self, plan: BatchPlan, start: int, epoch: int, pin: bool) -> Loader[TextBatch]:
        """Read and padded by a thread."""
        return Loader(self.prepared.dataset, plan, start, None, epoch, pin, collate_text)

    def objective(self, device: torch.device) -> Objective:
        """`train.objective`."""
        dataset = self.prepared.dataset
        return self.run.train.objective.build(LossContext(self.tokenizer, dataset.target_counts, device))

    def trial(self, model: Any) -> TextBatch:
        """Two excerpts."""
        return collate_text([[_TOKEN] * (tokens + 1) for tokens in _TRIAL], range(len(_TRIAL)))

    def validator(self, model: Callable[..., Any], device: torch.device) -> TextValidators:
        """Loss and perplexities of each set of held-out text."""
        block = self.run.data.block
        return TextValidators({each.name: TextValidator(each, self.tokenizer, block, model) for each in self._held_out})

    def flops_per_target_token(self) -> float:
        """Of the mean token."""
        return flops_per_token(self.run.model, self.tokenizer.size, self.lengths) * self.run.train.objective.passes

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """A folder that `LanguageModel.load` reads."""
        data = self.run.data
        meta = Meta(
            step=step,
            averaged_steps=averaged_steps,
            target_language=data.language,
            licence=data.licence,
            scores=() if validation is None else scores(validation, data.validation),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)),
        )
        write_model_folder(folder, parameters, dump_settings(self.run), self.prepared.tokenizers, meta)


def scores(validation: Validation, data: str) -> tuple[Score, ...]:
    """The perplexities on all held-out text together, and on each of several sets. data: what they are called."""
    own = tuple(
        Score(metric="perplexity", value=measure.value, signature=measure.signature, data=data)
        for measure in validation.measures
        if measure.better is None
    )
    return own + tuple(score for name, one in validation.sets.items() for score in scores(one, name))
