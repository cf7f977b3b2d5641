"""`CorpusJob`, the base class of jobs that learn from tokenised corpora."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.base.log import info
from dragoman.checkpoint.meta import Meta, RecordedScore
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.batches.shapes import BatchShapes
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.metrics.metric import Metric
from dragoman.metrics.score import Score
from dragoman.models.description.describe import count_operations
from dragoman.models.description.footprint import SHORT_TRIAL, evaluate_polynomial, measure_footprint, refine_footprint
from dragoman.models.interface import LengthLimit
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers, VocabularySizes
from dragoman.text.unknown_tokens import UnknownTokens, check_unknown, has_unknown_tokens
from dragoman.training.config import LoopConfig
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Content, Job, TimedValidator, Validator
from dragoman.training.validation import Validation, average_validations

_LENGTH_SAMPLE = 100_000
"""Approximate number of examples from which the mean length of a corpus is estimated."""
_FLOAT_BYTES = 4
_LOGIT_ROWS = 1024
_LOGIT_COPIES = 4


def flops_per_target_token(
    config: ModelSettings, sizes: VocabularySizes, lengths: NDArray[np.int32], special: int = 1, passes: int = 1
) -> float:
    """Return the FLOPs of matrix products per target token, forward and backward, counted as in `dragoman.describe`.

    The cost of matrix products inside attention depends on the sequence length. It is computed for the mean example
    length, weighted by the number of tokens. Element-wise operations and sampling for rewards are not counted.

    lengths: (N, sides) number of tokens of each example, without special symbols. special: number of special symbols
    per side. passes: forward passes over each example per update, 2 for R-Drop.
    """
    sample = np.asarray(lengths[:: max(1, len(lengths) // _LENGTH_SAMPLE)], np.float64) + special
    mean = float((sample**2).sum() / sample.sum())
    operations = count_operations(config, sizes, max(1, round(mean)))
    if sample.shape[1] == 1:
        return passes * operations.training
    sources_per_target = float(sample[:, 0].sum() / sample[:, 1].sum())
    forward = operations.per_source_token * sources_per_target + operations.per_target_token
    return passes * operations.training * forward / (operations.per_source_token + operations.per_target_token)


def activation_bytes(model: Any, tokens: int, longest: int, free: int) -> int:
    """Estimate the memory in bytes that is in use at the end of a forward pass over `tokens` tokens per side.

    The estimate is based on measurements with short examples. longest: number of tokens of the longest example. free:
    number of bytes that the measurements may use.
    """
    footprint = measure_footprint(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refine_footprint(footprint, model, longest, training=True, free=free)
    decoder = getattr(model, "decoder", None)
    vocabulary: int = 0 if decoder is None else decoder.projection.weight.size(0)
    logits = min(tokens, _LOGIT_ROWS) * vocabulary * _LOGIT_COPIES
    return int(tokens / longest * evaluate_polynomial(footprint.training, longest)) + logits * _FLOAT_BYTES


def check_block(block: int, limit: LengthLimit) -> None:
    """Raise ConfigError if a block of `data.block` tokens exceeds the model's number of positions."""
    if limit.positions is not None and block > limit.positions:
        raise ConfigError(
            f"data.block is {block} tokens, but the model has {limit.positions} positions ({limit.setting}): lower "
            f"data.block, or raise {limit.setting}"
        )


def packing_obstacle(model: ModelSettings, train: LoopConfig) -> str | None:
    """Return the reason why a model cannot be trained with packed states, or None."""
    if not getattr(model, "packs", False):
        return "packed states need Transformer layers with attention of kind soft, window or hard"
    objective = getattr(train, "objective", None)
    if objective is not None and objective.decodes:
        return f"the loss {objective.kind} translates padded batches"
    return None


class ValidationSets:
    """Validates a model on one or more validation sets."""

    def __init__(self, validators: Mapping[str, Validator], metrics: Sequence[Metric]) -> None:
        """validators: one validator per set, by the set's name. metrics: the metrics that the validators report."""
        self._validators, self._metrics = validators, metrics

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on each set. For several sets, returns the unweighted means of the metrics."""
        results = {name: validator.run(runtime) for name, validator in self._validators.items()}
        return average_validations(self._metrics, results) if len(results) > 1 else next(iter(results.values()))

    def estimate_seconds(self) -> float:
        """See `TimedValidator`. Validators that cannot tell count as 0."""
        timed = [each for each in self._validators.values() if isinstance(each, TimedValidator)]
        return sum(each.estimate_seconds() for each in timed)


class CorpusJob(Job):
    """Base class of jobs whose run has the sections `data` (a `CorporaConfig`), `text` and `model`.

    Subclasses prepare token shards, make batches of their rows, and define the objective and the validation.

    special: number of special symbols that are added to each side of an example when it is read.
    """

    special: ClassVar[int] = 1
    prepared: PreparedCorpora

    @property
    def valid_sets(self) -> Sequence[Any]:
        """The settings of the validation sets."""
        return self.run.data.valid_sets  # type: ignore[no-any-return]

    @property
    def valid_names(self) -> str:
        """Names of the validation sets, for messages."""
        return ", ".join(map(str, self.valid_sets))

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of the corpora, available after `prepare`."""
        return self.prepared.tokenizers

    def resolve_settings(self, examples: int | None, size: int) -> None:
        """Choose the values of settings in `run` that depend on the corpora.

        examples: number of examples, which determines the batch size; None: default batch size. size: corpus size,
        which determines the model's automatic preset.
        """
        data = self.run.data
        batch = data.batch.with_size() if examples is None else data.batch.with_size(examples)
        data, model = data.model_copy(update={"batch": batch}), self.run.model.resolve(size)
        self.run = self.run.model_copy(update={"data": data, "model": model})

    def check_unknown(self) -> None:
        """Report the fractions of unknown tokens in the validation sets.

        Raises DataError if a fraction, in a training corpus or a validation set, exceeds `data.max_unknown`.
        """
        data = self.run.data
        for corpus, report in zip(data.corpora, self.prepared.reports, strict=True):
            check_unknown(f"the training corpus {corpus}", report.unknown, data.max_unknown)
        for corpus, sides in zip(self.valid_sets, self.validation_sides, strict=True):
            unknown = {
                side: UnknownTokens.of(tokenizer.encode_batch(texts))
                for side, (tokenizer, texts) in sides.items()
                if has_unknown_tokens(tokenizer)
            }
            if any(counts.unknown for counts in unknown.values()):
                shares = ", ".join(f"{counts.fraction:.2%} of the {side} tokens" for side, counts in unknown.items())
                info(f"Data: {shares} of {corpus} are unknown.")
            check_unknown(f"the validation set {corpus}", unknown, data.max_unknown)

    @property
    @abstractmethod
    def validation_sides(self) -> Sequence[Mapping[str, tuple[Tokenizer, list[str]]]]:
        """The tokenizer and the texts of each side of each validation set."""

    @property
    def model_width(self) -> int:
        """The model width d."""
        return int(self.run.model.width)

    def card_samples(self) -> Mapping[str, Sequence[str]]:
        """Return the texts of the first validation set. Those of a language model are its target."""
        sides = self.validation_sides[0]
        return {"target" if side == "text" else side: texts for side, (_, texts) in sides.items()}

    @property
    @abstractmethod
    def validation_texts(self) -> Any:
        """The texts of the validation sets, as nested lists. Their hash identifies the sets."""

    @property
    def contents(self) -> Mapping[str, Content]:
        """The validation sets (key `valid`) and the training corpora (key `data`).

        Sets that are held out determine the training pairs, so that a change of the sets is reported first.
        """
        texts = json.dumps(self.validation_texts, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {
            "valid": Content(self.valid_names, hashlib.sha256(texts).hexdigest()),
            "data": Content(self.run.data.corpus_names, self.prepared.dataset.fingerprint),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """Number of tokens of each example (N, sides), without special symbols."""
        return self.prepared.dataset.lengths

    @property
    def batch_tokens(self) -> int:
        """The token budget of a batch, `data.batch.tokens`."""
        tokens = self.run.data.batch.tokens
        assert tokens is not None, "`prepare` sets the batch size"
        return int(tokens)

    @property
    def length_growth(self) -> float:
        """Maximum ratio of the number of tokens in a batch to the planned number."""
        return 1.0

    def peak_tokens(self) -> int:
        """Return the maximum number of tokens that are computed at once, over all simultaneous passes."""
        return int(super().peak_tokens() * self.length_growth) * int(self.run.train.objective.passes)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """Estimate the memory of a forward pass with the function `activation_bytes`."""
        return activation_bytes(model, tokens, int(self.lengths.max()) + self.special, free)

    def target_token_count(self) -> int:
        """Return the number of target tokens of an epoch, with special symbols."""
        return super().target_token_count() + self.special * self.examples

    def flops_per_target_token(self) -> float:
        """Return the FLOPs per target token, computed by the function `flops_per_target_token`."""
        return self.model_flops(self.run.model)

    def model_flops(self, model: ModelSettings) -> float:
        """Return the FLOPs per target token of any model, trained on the corpora of the run."""
        passes = self.run.train.objective.passes
        return flops_per_target_token(model, self.tokenizers.sizes, self.lengths, self.special, passes=passes)

    @property
    def packing_obstacle(self) -> str | None:
        """See `Job.packing_obstacle`."""
        if not self.has_batch_shapes:
            return super().packing_obstacle
        return packing_obstacle(self.run.model, self.run.train)

    def plan(self, epoch: int) -> BatchPlan:
        """Plan the batches of an epoch. Each batch contains examples of similar length."""
        config, seed = self.run.data.batch, self.run.train.seed
        return plan_epoch(self.lengths, config, seed, epoch, self.prepared.parts, special=self.special)

    @property
    def batch_shapes(self) -> BatchShapes:
        """The shapes of batches according to `data.batch`."""
        batch = self.run.data.batch
        if batch.few_shapes is not True:
            return BatchShapes(packed=0 if batch.packed is True else None)
        return BatchShapes(self._longest, self.batch_tokens if batch.packed is True else None)

    @cached_property
    def _longest(self) -> tuple[int, ...]:
        """Number of tokens of the longest example of each side, with special symbols."""
        return tuple((self.lengths.max(axis=0) + self.special).tolist())

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, including languages, licence, scores and fingerprints of the corpora."""
        data = self.run.data
        return Meta(
            step=step,
            averaged_steps=averaged_steps,
            scores=() if validation is None else self._scores(validation, self.valid_names),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)),
            **data.card(),
        )

    @abstractmethod
    def card_scores(self, validation: Validation) -> Sequence[tuple[str, Score]]:
        """Return the scores that the model card lists, each with its name on the card."""

    def _scores(self, validation: Validation, data: str) -> tuple[RecordedScore, ...]:
        """Return the scores for the model card: the means over all validation sets, then the scores on each set.

        data: names of the validation sets. A single set has no separate scores.
        """
        means = tuple(
            RecordedScore(metric=name, value=score.value, signature=score.signature, data=data)
            for name, score in self.card_scores(validation)
        )
        return means + tuple(score for name, each in validation.sets.items() for score in self._scores(each, name))
