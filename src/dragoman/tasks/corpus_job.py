"""`CorpusJob`: the common base of the jobs that learn from tokenised corpora."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.checkpoint.meta import Meta, Score
from dragoman.data.batches.plan import BatchPlan, plan_epoch
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.inspect.describe import count_operations
from dragoman.metrics.metric import Metric
from dragoman.models.footprint import SHORT_TRIAL, evaluate_polynomial, measure_footprint, refine_footprint
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import Tokenizers, VocabularySizes
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.task import Content, Job, Validator
from dragoman.training.validation import Measure, Validation, average_validations

_SAMPLED = 100_000
"""Number of examples whose lengths are sampled to represent the corpus."""
_FLOAT = 4
_ROWS_OF_LOGITS = 1024
_COPIES_OF_LOGITS = 4


def flops_per_target_token(
    config: ModelSettings, sizes: VocabularySizes, lengths: NDArray[np.int32], special: int = 1, passes: int = 1
) -> float:
    """Return the FLOPs of matrix products per target token, forward and backward, as `inspect.describe` counts them.

    lengths: (N, sides) tokens of the corpus's examples, without the `special` symbols that each side has. Products
    inside attention grow with the length; they are counted for the mean example length, weighted by the number of
    tokens. Element-wise operations and samples drawn for rewards are not counted. passes: forward passes
    over each example per update, 2 for R-Drop.
    """
    sample = np.asarray(lengths[:: max(1, len(lengths) // _SAMPLED)], np.float64) + special
    mean = float((sample**2).sum() / sample.sum())
    operations = count_operations(config, sizes, max(1, round(mean)))
    if sample.shape[1] == 1:
        return passes * operations.training
    sources_per_target = float(sample[:, 0].sum() / sample[:, 1].sum())
    forward = operations.per_source_token * sources_per_target + operations.per_target_token
    return passes * operations.training * forward / (operations.per_source_token + operations.per_target_token)


def activation_bytes(model: Any, tokens: int, longest: int, free: int) -> int:
    """Estimate the bytes that a forward pass over `tokens` tokens per side holds at its end.

    The estimate is measured on the model with short examples. longest: tokens of the longest example; free: bytes that
    the measurement may use.
    """
    footprint = measure_footprint(model, min(longest, SHORT_TRIAL), training=True)
    footprint = refine_footprint(footprint, model, longest, training=True, free=free)
    decoder = getattr(model, "decoder", None)
    vocabulary: int = 0 if decoder is None else decoder.projection.weight.size(0)
    logits = min(tokens, _ROWS_OF_LOGITS) * vocabulary * _COPIES_OF_LOGITS
    return int(tokens / longest * evaluate_polynomial(footprint.training, longest)) + logits * _FLOAT


class ValidationSets:
    """Validates a model on one or more sets."""

    def __init__(self, validators: Mapping[str, Validator], metrics: Sequence[Metric]) -> None:
        """validators: by the names of their sets. metrics: the metrics that they report."""
        self._validators, self._metrics = validators, metrics

    def run(self, runtime: Runtime) -> Validation:
        """Validate the model on each set. For several sets, returns the unweighted means of the metrics."""
        found = {name: validator.run(runtime) for name, validator in self._validators.items()}
        return average_validations(self._metrics, found) if len(found) > 1 else next(iter(found.values()))


class CorpusJob(Job):
    """The base of jobs whose run has sections `data` (a `CorporaConfig`), `text` and `model`.

    A subclass prepares token shards, turns their rows into batches, and defines the objective and the validation.

    special: number of special symbols that are added to each side of an example when it is read.
    """

    special: ClassVar[int] = 1
    prepared: PreparedCorpora

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of the corpora, available once these are prepared."""
        return self.prepared.tokenizers

    def settle(self, examples: int | None, size: int) -> None:
        """Choose the settings of `run` that depend on the corpora.

        examples: number of examples, which determines the batch size; None for the default batch size. size: corpus
        size, which determines the model's automatic preset.
        """
        data = self.run.data
        batch = data.batch.with_size() if examples is None else data.batch.with_size(examples)
        data, model = data.model_copy(update={"batch": batch}), self.run.model.resolve(size)
        self.run = self.run.model_copy(update={"data": data, "model": model})

    @property
    def model_width(self) -> int:
        """The model width d."""
        return int(self.run.model.width)

    @property
    @abstractmethod
    def held_out_texts(self) -> Any:
        """The texts of the validation sets, in nested lists; their digest identifies the sets."""

    @property
    def contents(self) -> Mapping[str, Content]:
        """The corpora and the validation sets."""
        texts = json.dumps(self.held_out_texts, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return {
            "data": Content(self.run.data.training, self.prepared.dataset.fingerprint),
            "valid": Content(self.run.data.validation, hashlib.sha256(texts).hexdigest()),
        }

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of tokens of each example (N, sides), without special symbols."""
        return self.prepared.dataset.lengths

    @property
    def batch_tokens(self) -> int:
        """`data.batch.tokens`."""
        tokens = self.run.data.batch.tokens
        assert tokens is not None, "chosen by `prepare`"
        return int(tokens)

    @property
    def growth(self) -> float:
        """The factor by which a batch may have more tokens than planned."""
        return 1.0

    def peak_tokens(self) -> int:
        """Return the largest number of tokens of a batch that are in memory at once, over all simultaneous passes."""
        return int(super().peak_tokens() * self.growth) * int(self.run.train.objective.passes)

    def activation_bytes(self, model: Any, tokens: int, free: int) -> int:
        """See the function `activation_bytes`."""
        return activation_bytes(model, tokens, int(self.lengths.max()) + self.special, free)

    def flops_per_target_token(self) -> float:
        """See the function `flops_per_target_token`."""
        return flops_per_target_token(
            self.run.model, self.tokenizers.sizes, self.lengths, self.special, passes=self.run.train.objective.passes
        )

    def plan(self, epoch: int) -> BatchPlan:
        """Plan an epoch of batches of examples of similar length."""
        config, seed = self.run.data.batch, self.run.train.seed
        return plan_epoch(self.lengths, config, seed, epoch, self.prepared.parts, special=self.special)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Describe the model, with languages, licence, scores and fingerprints of the corpora."""
        data = self.run.data
        return Meta(
            step=step,
            averaged_steps=averaged_steps,
            scores=() if validation is None else self._scores(validation, data.validation),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)),
            **data.card(),
        )

    @abstractmethod
    def reported(self, validation: Validation) -> Sequence[tuple[str, Measure]]:
        """Return the measures that a model card lists, with their names there."""

    def _scores(self, validation: Validation, data: str) -> tuple[Score, ...]:
        """Return the reported measures over all sets and, if there are several, on each. data: the name of the sets."""
        own = tuple(
            Score(metric=name, value=measure.value, signature=measure.signature, data=data)
            for name, measure in self.reported(validation)
        )
        return own + tuple(score for name, one in validation.sets.items() for score in self._scores(one, name))
