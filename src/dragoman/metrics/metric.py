"""`Metric`: the interface of metrics of a model's outputs, with their names, directions, signatures and inputs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Literal

from dragoman.base.errors import ConfigError, DataError
from dragoman.metrics.text_score import TextScore

Need = Literal["references", "sources", "log-probabilities"]
"""Inputs that a metric may need in addition to the hypotheses."""


@dataclass(frozen=True)
class Score:
    """A metric's value, its name, and its signature; only scores with the same signature are comparable."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"


@dataclass(frozen=True)
class Outputs:
    """The inputs of metrics.

    hypotheses: the model's outputs, one per sentence. references: one or more lists, each with one line per sentence.
    sources: one line per sentence. likelihood: log-probability of the held-out text under the model, with its token
    counts.
    """

    hypotheses: Sequence[str] = ()
    references: tuple[Sequence[str], ...] = ()
    sources: Sequence[str] | None = None
    likelihood: TextScore | None = None


class Metric(ABC):
    """Base class of metrics. To add a metric, subclass this in a new file and add a line to `registry.py`.

    key: name in settings, in logs and on the command line. name: display name. better: whether higher or lower values
    are better. needs: required inputs. restates: the key of a metric with the same information in another unit; a
    metric that restates another one never decides which checkpoint is best. digits: decimal places in messages. unit:
    label of the vertical axis of learning curves.
    """

    key: ClassVar[str]
    name: ClassVar[str]
    better: ClassVar[Literal["higher", "lower"]]
    needs: ClassVar[frozenset[Need]] = frozenset({"references"})
    restates: ClassVar[str | None] = None
    digits: ClassVar[int] = 2
    unit: ClassVar[str] = "points"

    @abstractmethod
    def value(self, outputs: Outputs) -> float:
        """Compute the metric over all sentences; `outputs` contains all inputs in `needs`."""

    def signature(self, references: int) -> str:
        """Return how the metric is computed with that number of references; empty if there is only one way."""
        return ""

    def score(
        self,
        hypotheses: Sequence[str] = (),
        *references: Sequence[str],
        sources: Sequence[str] | None = None,
        likelihood: TextScore | None = None,
    ) -> Score:
        """Compute the score; arguments as in `Outputs`.

        Raises DataError for unequal numbers of lines or empty references, ConfigError for a missing input.
        """
        outputs = Outputs(hypotheses, references, sources, likelihood)
        self.check(outputs)
        return Score(self.name, self.value(outputs), self.signature(len(references)))

    def check(self, outputs: Outputs) -> None:
        """Raise DataError for unequal numbers of lines or empty references, ConfigError for a missing input."""
        if "references" in self.needs:
            check_lines(outputs.hypotheses, outputs.references)
        given: dict[Need, object] = {"sources": outputs.sources, "log-probabilities": outputs.likelihood}
        self.require({"references", *(need for need, value in given.items() if value is not None)})
        if "sources" in self.needs:
            check_sources(outputs.sources or (), outputs.hypotheses)

    def require(self, given: Set[Need]) -> None:
        """Raise ConfigError if the metric needs more than these inputs."""
        if missing := sorted(self.needs - given):
            raise ConfigError(f"{self.name} requires {missing[0]}, which are not given here")

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """Return the unweighted mean over several test sets, or None if it is not defined.

        means: the means of the metrics computed so far, by key.
        """
        signature = f"mean of {len(scores)} sets, {scores[0].signature}" if scores[0].signature else ""
        return Score(self.name, sum(score.value for score in scores) / len(scores), signature)


def check_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raise DataError if the numbers of lines differ or are 0, or if all references are empty.

    Single blank references are allowed: corpora contain blank lines, and any output for them counts as wrong.
    """
    if not references:
        raise DataError("there is no reference to compare with; give at least one")
    for number, reference in enumerate(references, 1):
        which = f"reference {number}" if len(references) > 1 else "the reference"
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses)} hypotheses, but {which} has {len(reference)} lines; both need the same sentences"
            )
    if not hypotheses:
        raise DataError("0 hypotheses and 0 references: there is nothing to compare; give files with at least one line")
    if not any(text.strip() for reference in references for text in reference):
        raise DataError(f"all {len(hypotheses)} references are empty: there is nothing to compare with; check the file")


def check_sources(sources: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Raise DataError if the numbers of lines differ."""
    if len(sources) != len(hypotheses):
        raise DataError(f"{len(sources)} sources, but {len(hypotheses)} hypotheses; both need the same sentences")
