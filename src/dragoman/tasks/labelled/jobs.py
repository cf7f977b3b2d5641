"""The jobs of all tasks with labelled examples."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import cast

from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.checkpoint.meta import Meta
from dragoman.data.labelled.examples import LabelledText, Question, TaggedSentence
from dragoman.data.labelled.read import read_labelled, read_questions, read_tagged
from dragoman.inference.prediction.heads.answering import AnswerFinder, AnswerPrediction
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.regression import label_value
from dragoman.inference.prediction.heads.report import choose_threshold
from dragoman.inference.prediction.heads.tagging import WordTagger, feature_symbol
from dragoman.metrics.labels.spans import OUTSIDE, Convention, Scheme, detect_scheme, find_forbidden, has_span_tags
from dragoman.metrics.score import Score
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.tasks.labelled.config import AnsweringRun, ClassificationRun, RegressionRun, TaggingRun
from dragoman.tasks.labelled.job import LabelledJob
from dragoman.tasks.labelled.objective import (
    ClassObjectiveConfig,
    LabelObjective,
    balanced_weights,
    chain_loss,
    class_loss,
    span_loss,
    squared_error,
)
from dragoman.tasks.labelled.outside import OutsideShift, store_shift
from dragoman.tasks.labelled.rows import Row
from dragoman.training.validation import Validation

_CONVENTIONS: dict[str, Convention] = {"conlleval_f1": "conlleval", "strict_f1": "strict"}
"""The conventions of the metrics of spans."""


class ClassificationJob(LabelledJob):
    """The job of a run that trains a classifier."""

    run: ClassificationRun
    train: Sequence[LabelledText]
    valid: Sequence[LabelledText]

    def read(self, run: ClassificationRun) -> tuple[list[LabelledText], list[LabelledText]]:
        """Read the examples. See `LabelledJob.read`."""
        return read_labelled(run.data.train), [] if run.data.valid is None else read_labelled(run.data.valid)

    def texts(self, example: LabelledText) -> Sequence[str]:
        """Return the text, or both texts of a pair."""
        return example.texts

    def resolve_head(self, head: ClassificationHeadConfig) -> ClassificationHeadConfig:
        """Return the settings with the labels of the training data."""
        labels = head.labels or sorted_labels(str(example.label) for example in self.train)
        return head.model_copy(update={"labels": labels, "texts": number_of_texts(head, self.train, self.valid)})

    def labels(self, example: LabelledText) -> Sequence[str]:
        """Return the label."""
        return (str(example.label),)

    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the cross-entropy of the classes."""
        counts = Counter(target for _, target in rows)
        return class_objective(self.run.train.objective, [counts[number] for number in range(self.classes)])

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.run.model.head.classes  # type: ignore[union-attr]


class RegressionJob(LabelledJob):
    """The job of a run that trains a regression model."""

    run: RegressionRun
    train: Sequence[LabelledText]
    valid: Sequence[LabelledText]

    def read(self, run: RegressionRun) -> tuple[list[LabelledText], list[LabelledText]]:
        """Read the examples. See `LabelledJob.read`."""
        valid = [] if run.data.valid is None else read_labelled(run.data.valid, numbers=True)
        return read_labelled(run.data.train, numbers=True), valid

    def texts(self, example: LabelledText) -> Sequence[str]:
        """Return the text, or both texts of a pair."""
        return example.texts

    def resolve_head(self, head: RegressionHeadConfig) -> RegressionHeadConfig:
        """Return the settings with the mean and the standard deviation of the labels."""
        values = list(map(label_value, self.train))
        offset = fmean(values) if head.offset is None else head.offset
        scale = (pstdev(values) or 1.0) if head.scale is None else head.scale
        texts = number_of_texts(head, self.train, self.valid)
        return head.model_copy(update={"offset": offset, "scale": scale, "texts": texts})

    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the squared error."""
        return LabelObjective(squared_error)


class TaggingJob(LabelledJob):
    """The job of a run that trains a tagger."""

    run: TaggingRun
    train: Sequence[TaggedSentence]
    valid: Sequence[TaggedSentence]

    longest = 512

    def read(self, run: TaggingRun) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
        """Read the sentences. See `LabelledJob.read`."""
        return read_tagged(run.data.train), [] if run.data.valid is None else read_tagged(run.data.valid)

    def texts(self, example: TaggedSentence) -> Sequence[str]:
        """Return the sentence, with spaces between the words."""
        return (" ".join(example.words),)

    def resolve_head(self, head: TaggingHeadConfig) -> TaggingHeadConfig:
        """Return the settings with the tags of the training data."""
        labels = head.labels or sorted_labels(tag for example in self.train for tag in example.tags or ())
        features = len(self.train[0].features) if head.features is None else head.features
        scheme = self._scheme(labels) if head.scheme is None else head.scheme
        if head.transitions == "valid":
            self._check_sequences(scheme)
        weighted = self.run.train.objective != ClassObjectiveConfig()
        transitions = head.transitions or ("none" if scheme == "words" or weighted else "learned")
        found = {"labels": labels, "features": features, "scheme": scheme, "transitions": transitions}
        return head.model_copy(update=found)

    def _check_sequences(self, scheme: str) -> None:
        """Raise ConfigError if the tags mark no spans, and DataError if a sentence does not follow the scheme."""
        if scheme == "words":
            raise ConfigError(
                "model.head.transitions is valid, but the tags mark no spans: set model.head.transitions=learned"
            )
        for number, example in enumerate(self.train, 1):
            if (found := find_forbidden(example.tags or (), cast(Scheme, scheme))) is not None:
                raise DataError(
                    f"{self.run.data.names('train')}, sentence {number}: {scheme} does not allow {found[1]} after "
                    f"{found[0]}: correct the tags, or set model.head.transitions=learned"
                )

    def _scheme(self, labels: Sequence[str]) -> str:
        """Return the scheme of the tags. Raises DataError if they fit no scheme."""
        if "O" not in labels and not has_span_tags(labels):
            return "words"
        try:
            return detect_scheme(example.tags for example in self.train if example.tags)
        except DataError as error:
            raise DataError(
                f"{error}. The scheme of {self.run.data.names('train')} is model.head.scheme; words: the tags mark no "
                "spans"
            ) from None

    def symbols(self) -> Sequence[str]:
        """Return a tag for each value of each further column, unless the columns are factors of the words."""
        if self.run.model.factors is not None:
            return ()
        found = {
            feature_symbol(column, value)
            for example in self.train
            for column, values in enumerate(example.features)
            for value in values
        }
        return sorted(found)

    def choose_metric(self, metric: str, head: TaggingHeadConfig) -> str:
        """Return span F1 for tags that mark spans, otherwise accuracy, unless a metric is set."""
        if metric != "auto":
            return metric
        return "accuracy" if head.scheme == "words" else "conlleval_f1"

    def labels(self, example: TaggedSentence) -> Sequence[str]:
        """Return the tags."""
        return example.tags or ()

    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the cross-entropy of the tags."""
        if self.run.model.head.has_transitions:  # type: ignore[union-attr]
            if self.run.train.objective != ClassObjectiveConfig():
                raise ConfigError(
                    "train.objective does not apply to sequences of tags: remove label_smoothing and class_weights, or "
                    "set model.head.transitions=none"
                )
            return LabelObjective(chain_loss)
        counts = Counter(label for _, target in rows for label in target)
        classes = self.run.model.head.classes  # type: ignore[union-attr]
        return class_objective(self.run.train.objective, [counts[number] for number in range(classes)])

    def adjustment(self) -> OutsideShift | None:
        """Return the choice of a lower score of O if F1 of spans selects the best checkpoint.

        The tasks of a run with several have no such choice, because their heads are written together.
        """
        train, head, reader = self.run.train, self.run.model.head, self._reader
        assert isinstance(head, TaggingHeadConfig) and isinstance(reader, WordTagger), "the task has a tagging head"
        convention = _CONVENTIONS.get(train.metric) if train.tune_outside and self._task is None else None
        if convention is None or head.scheme in (None, "words") or OUTSIDE not in reader.labels:
            return None
        return OutsideShift(reader, cast(Scheme, head.scheme), convention)

    def write(
        self,
        folder: Path,
        parameters: Mapping[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write the model, in the folder of the run with the score of O that its validation chose. See `Job.write`.

        Checkpoints remain as learned, because the mean of several is validated again.
        """
        if folder == self.run.out and validation is not None:
            labels = self.run.model.head.labels or ()  # type: ignore[union-attr]
            parameters = store_shift(parameters, labels, validation)
        super().write(folder, parameters, step, validation, averaged_steps)


class AnsweringJob(LabelledJob):
    """The job of a run that trains a model to find answers."""

    run: AnsweringRun
    train: Sequence[Question]
    valid: Sequence[Question]

    longest = 384  # as in the code of Devlin et al. 2019 for SQuAD

    def read(self, run: AnsweringRun) -> tuple[list[Question], list[Question]]:
        """Read the questions. See `LabelledJob.read`."""
        return read_questions(run.data.train), [] if run.data.valid is None else read_questions(run.data.valid)

    def texts(self, example: Question) -> Sequence[str]:
        """Return the question and its context."""
        return example.question, example.context

    def held_out_text(self, example: Question) -> str:
        """Return the context, all of whose questions are in one set."""
        return example.context

    def resolve_head(self, head: SpanHeadConfig) -> SpanHeadConfig:
        """Return the settings, which depend on whether all training questions have an answer."""
        unanswered = any(example.impossible for example in self.train)
        return head.model_copy(update={"no_answer": unanswered if head.no_answer is None else head.no_answer})

    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the cross-entropy of the first and the last token of each answer."""
        return LabelObjective(span_loss)

    def check_inputs(self, examples: Sequence[Question], inputs: Sequence[Sequence[ModelInput]], name: str) -> None:
        """Count the questions whose answer the model cannot give. See `LabelledJob.check_inputs`."""
        reader = self._reader
        assert isinstance(reader, AnswerFinder), "the task has a span head"
        obstacles = [reader.obstacle(example, group) for example, group in zip(examples, inputs, strict=True)]
        for obstacle, count in Counter(each for each in obstacles if each is not None).items():
            first = examples[obstacles.index(obstacle)].id
            warn(
                f"the answers of {count:,} of {len(examples):,} {name} questions cannot be predicted, because they are "
                f"{obstacle}. The first is {first}"
            )

    def further_scores(self, examples: Sequence[Question], predictions: Sequence[AnswerPrediction]) -> Sequence[Score]:
        """Return the threshold of having no answer that yields the best F1."""
        threshold = choose_threshold(examples, predictions)
        return () if threshold is None else (Score("threshold", threshold, key="threshold", digits=4),)

    def meta(self, step: int, validation: Validation | None, averaged_steps: tuple[int, ...]) -> Meta:
        """Return the model's metadata, with the threshold that was chosen on the validation set."""
        meta = super().meta(step, validation, averaged_steps)
        chosen = () if validation is None else [each.value for each in validation.scores if each.key == "threshold"]
        return meta.model_copy(
            update={
                "threshold": next(iter(chosen), None),
                "scores": tuple(score for score in meta.scores if score.metric != "threshold"),
            }
        )


def number_of_texts(
    head: ClassificationHeadConfig | RegressionHeadConfig,
    train: Sequence[LabelledText],
    valid: Sequence[LabelledText],
) -> int:
    """Return the number of texts of an input.

    Raises ConfigError for single texts if a pair is encoded separately, and if the validation set has another number of
    texts.
    """
    learned, validated = ({len(example.texts) for example in examples} for examples in (train, valid))
    if other := validated - learned:
        raise ConfigError(
            f"the examples of data.valid have {min(other)} text(s), but those of data.train have {min(learned)}: "
            "select the same columns, as in data.valid.columns"
        )
    if head.encodes_separately and not all(len(example.texts) == 2 for example in (*train, *valid)):
        raise ConfigError(
            f"model.head.pair is {head.pair}, but the examples are single texts: select both columns, as in "
            "data.train.columns, or set model.head.pair=joined"
        )
    return head.texts or len(train[0].texts)


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct labels, sorted by value if all are integers, otherwise by name. Raises DataError for one."""
    distinct = set(labels)
    if len(distinct) < 2:
        raise DataError(f"all training examples have the label {distinct}: at least two labels are needed")
    if all(label.lstrip("-").isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=int))
    return tuple(sorted(distinct))


def class_objective(config: ClassObjectiveConfig, counts: Sequence[int]) -> LabelObjective:
    """Return the cross-entropy of classes. counts: number of training labels of each class."""
    weights = balanced_weights(counts) if config.class_weights == "balanced" else None
    return LabelObjective(class_loss(), class_loss(weights, config.label_smoothing), weights)
