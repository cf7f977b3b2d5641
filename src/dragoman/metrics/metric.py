"""`Metric`: a measure of a model's outputs that knows its name, direction, signature and inputs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Literal

from dragoman.base.errors import ConfigError, DataError
from dragoman.metrics.text_score import TextScore

Need = Literal["references", "sources", "log-probabilities"]
"""Inputs of a metric besides the hypotheses."""


@dataclass(frozen=True)
class Score:
    """A metric's value with its name and the signature without which it can't be compared with another."""

    name: str
    value: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f} ({self.signature})"


@dataclass(frozen=True)
class Outputs:
    """What metrics are computed from.

    hypotheses: the model's outputs, one per sentence. references: lists of as many lines, one list or several. sources:
    as many lines. likelihood: log-probability of the held-out text under the model, with its numbers of tokens.
    """

    hypotheses: Sequence[str] = ()
    references: tuple[Sequence[str], ...] = ()
    sources: Sequence[str] | None = None
    likelihood: TextScore | None = None


class Metric(ABC):
    """To add a metric, subclass this in a file of its own and add a line to `registry.py`.

    key: its name in settings, in logs and on the command line. name: its name for people. better: which of two values
    is better. needs: inputs without which it cannot be computed. restates: the key of a metric that holds the same
    information in another unit; such a metric never decides which checkpoint is best. digits: after the decimal point,
    in messages. unit: of the vertical axis of learning curves.
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
        """The metric of all sentences together; `outputs` has what the metric needs."""

    def signature(self, references: int) -> str:
        """How it is computed with that number of references."""
        return ""

    def score(
        self,
        hypotheses: Sequence[str] = (),
        *references: Sequence[str],
        sources: Sequence[str] | None = None,
        likelihood: TextScore | None = None,
    ) -> Score:
        """The value with its name and signature; arguments as in `Outputs`.

        Raises DataError for unequal numbers of lines and for empty references, ConfigError for a missing input.
        """
        outputs = Outputs(hypotheses, references, sources, likelihood)
        self.check(outputs)
        return Score(self.name, self.value(outputs), self.signature(len(references)))

    def check(self, outputs: Outputs) -> None:
        """Raises DataError for unequal numbers of lines and for empty references, ConfigError for a missing input."""
        if "references" in self.needs:
            check_lines(outputs.hypotheses, outputs.references)
        given: dict[Need, object] = {"sources": outputs.sources, "log-probabilities": outputs.likelihood}
        self.require({"references", *(need for need, value in given.items() if value is not None)})
        if "sources" in self.needs:
            check_sources(outputs.sources or (), outputs.hypotheses)

    def require(self, given: Set[Need]) -> None:
        """Raises ConfigError if the metric needs more than these inputs."""
        if missing := sorted(self.needs - given):
            raise ConfigError(f"{self.name} is computed from {missing[0]}, which are not given here")

    def mean(self, scores: Sequence[Score], means: Mapping[str, float]) -> Score | None:
        """The mean over several test sets, each counting as much; None if it is not defined.

        means: the means of other metrics that have been computed already, by key.
        """
        signature = f"mean of {len(scores)} sets, {scores[0].signature}" if scores[0].signature else ""
        return Score(self.name, sum(score.value for score in scores) / len(scores), signature)


def check_lines(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Raises DataError naming the numbers of lines if they differ or are 0, and if all references are empty.

    A blank reference among others is no error: corpora contain blank lines, and any output for one counts as wrong.
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
    """Raises DataError naming the numbers of lines if they differ."""
    if len(sources) != len(hypotheses):
        raise DataError(f"{len(sources)} sources, but {len(hypotheses)} hypotheses; both need the same sentences")
