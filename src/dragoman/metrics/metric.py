"""`Metric`: the interface of metrics for a model's outputs, with names, directions, signatures and required inputs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.metrics.score import Direction, Score
from dragoman.metrics.text_score import TextScore

Need = Literal["references", "sources", "log-probabilities"]
"""Inputs that a metric may need in addition to the hypotheses."""


@dataclass(frozen=True)
class Outputs:
    """The inputs of metrics.

    hypotheses: the model's outputs, one per sentence. references: one or more lists, each with one line per sentence.
    sources: one line per sentence. likelihood: log-probability of the held-out text under the model, with the numbers
    of its tokens, words and bytes.
    """

    hypotheses: Sequence[str] = ()
    references: tuple[Sequence[str], ...] = ()
    sources: Sequence[str] | None = None
    likelihood: TextScore | None = None


class Metric(ABC):
    """Base class of metrics. To add a metric, write a subclass in a new file and add a line to `registry.py`.

    key: name in settings, in logs and on the command line. name: display name. better: whether higher or lower values
    are better. needs: required inputs. restates: key of the metric that contains the same information in another unit;
    a metric that restates another one is never used to select the best checkpoint. digits: number of decimal places in
    messages. unit: label of the vertical axis of learning curves. is_slow: whether `evaluate` computes the metric last.
    by_default: whether `evaluate` computes the metric for translations even if it is not named.
    """

    key: ClassVar[str]
    name: ClassVar[str]
    better: ClassVar[Direction]
    needs: ClassVar[frozenset[Need]] = frozenset({"references"})
    restates: ClassVar[str | None] = None
    digits: ClassVar[int] = 2
    unit: ClassVar[str] = "points"
    is_slow: ClassVar[bool] = False
    by_default: ClassVar[bool] = True

    def with_tokenizer(self, tokenizer: str) -> Self:
        """Return the metric with one of `bleu_tokenizer.TOKENIZERS`, or the same metric if it uses no tokeniser."""
        return self

    @abstractmethod
    def value(self, outputs: Outputs) -> float:
        """Compute the metric over all sentences. `outputs` must contain all inputs listed in `needs`."""

    def signature(self, references: int) -> str:
        """Describe the computation of the metric with this number of references; empty if there is only one variant."""
        return ""

    def score(
        self,
        hypotheses: Sequence[str] = (),
        *references: Sequence[str],
        sources: Sequence[str] | None = None,
        likelihood: TextScore | None = None,
    ) -> Score:
        """Compute the score. The arguments are the fields of `Outputs`.

        Raises DataError for unequal numbers of lines or empty references, and ConfigError for a missing input.
        """
        outputs = Outputs(hypotheses, references, sources, likelihood)
        self.check(outputs)
        return self.score_of(self.value(outputs), self.signature(len(references)))

    def score_of(self, value: float, signature: str = "") -> Score:
        """Return the score with this value."""
        better = self.better if self.restates is None else None
        return Score(self.name, value, signature, key=self.key, better=better, digits=self.digits)

    def check(self, outputs: Outputs) -> None:
        """Raise DataError for unequal numbers of lines or empty references, and ConfigError for a missing input."""
        if "references" in self.needs:
            check_lines(outputs.hypotheses, outputs.references)
        optional: dict[Need, object] = {"sources": outputs.sources, "log-probabilities": outputs.likelihood}
        self.require({"references", *(need for need, value in optional.items() if value is not None)})
        if "sources" in self.needs:
            check_sources(outputs.sources or (), outputs.hypotheses)

    def require(self, inputs: Set[Need]) -> None:
        """Raise ConfigError if `inputs` lack an input that the metric needs."""
        if missing := sorted(self.needs - inputs):
            raise ConfigError(f"{self.name} requires {missing[0]}, which are missing")

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """Return the unweighted mean over several test sets, or None if there is no meaningful mean.

        means: the means of the metrics that precede this one, by key.
        """
        signatures = ", ".join(dict.fromkeys(score.signature for score in scores if score.signature))
        signature = f"mean of {len(scores)} sets, {signatures}" if signatures else ""
        return self.score_of(sum(score.value for score in scores) / len(scores), signature)


def check_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise DataError if the numbers of lines differ or are 0, or if all references are blank.

    Single blank references are allowed, because corpora contain blank lines. Any output for a blank reference counts as
    wrong.
    """
    if not references:
        raise DataError("there are no references: give at least one list of reference lines")
    for number, reference in enumerate(references, 1):
        name = f"reference {number}" if len(references) > 1 else "the reference"
        if len(reference) != len(hypotheses):
            raise DataError(
                f"there are {len(hypotheses)} hypotheses, but {name} has {len(reference)} lines: give one reference "
                "line per hypothesis"
            )
    if not hypotheses:
        raise DataError("there are no hypotheses and no references: give files with at least one line")
    if not any(text.strip() for reference in references for text in reference):
        raise DataError(f"all {len(hypotheses)} references are blank: check the reference file")


def warn_of_blank_references(
    name: str, references: Sequence[str], others: Sequence[Sequence[str]], is_only: bool = True
) -> None:
    """Warn about blank references for which one of the other texts is not blank.

    name: name of the references in the message. others: sources and translations, with one line per reference. is_only:
    whether each sentence has a single reference.
    """
    blank = [row for row, line in enumerate(references) if not line.strip()]
    missing = [row for row in blank if any(texts[row].strip() for texts in others)]
    if missing:
        effect = (
            "every translation of these lines counts as wrong"
            if is_only
            else "they count as references without words, which distorts BLEU's brevity penalty and TER"
        )
        warn(
            f"{len(missing):,} of {len(references):,} references are blank ({name}, first in line {missing[0] + 1:,}): "
            f"{effect}. To leave the lines out, remove them from all files"
        )


def check_sources(sources: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Raise DataError if the numbers of sources and hypotheses differ."""
    if len(sources) != len(hypotheses):
        raise DataError(
            f"there are {len(sources)} sources, but {len(hypotheses)} hypotheses: give one hypothesis per source"
        )


def describe_references(references: int) -> str:
    """Return the signature of a score that is the maximum over several references of the same output."""
    return f"maximum of {references} references" if references > 1 else "1 reference"
