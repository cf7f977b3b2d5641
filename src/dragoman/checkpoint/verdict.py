"""`Verdict`: what the scores of a translation model mean, judged by simple systems on the same test set.

BLEU and chrF are not comparable between languages and test sets, so no threshold of them is used. The questions are
instead: is the model significantly better than systems that need no training or seconds of it, and has it seen the
words that it is asked to translate?
"""

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from dragoman.base.marks import Level, Mark
from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.settings.config import Config
from dragoman.base.table import Table
from dragoman.metrics.resampling import FEWEST_EXAMPLES
from dragoman.metrics.score import Interval, Score

COPYING = "copying the source"
DICTIONARY = "word-by-word dictionary"

Standing = Literal["better", "worse", "equal", "mixed", "unknown"]
"""A model compared with another system by several metrics. better, worse: significantly so by at least one, and not the
opposite by another. mixed: better by one metric and worse by another. equal: no significant difference. unknown: too
few sentences.
"""


class ScoreRange(Config):
    """A score, and the middle 95% of the scores on resampled test sets."""

    metric: str = Field(description="Name of the metric.")
    value: float = Field(description="Score.")
    low: float = Field(description="Lower end of the interval.")
    high: float = Field(description="Upper end of the interval.")
    signature: str = Field(description="sacreBLEU's signature, with the number of resampled test sets and the seed.")

    @classmethod
    def of(cls, score: Score, interval: Interval) -> "ScoreRange":
        """Return a score with its interval."""
        return cls(
            metric=score.name, value=score.value, low=interval.low, high=interval.high, signature=score.signature
        )

    def __str__(self) -> str:
        return f"{self.value:.1f} ({self.low:.1f}–{self.high:.1f})"


class SystemRanges(Config):
    """The scores of a system on the test set."""

    system: str = Field(description="Name of the system.")
    scores: tuple[ScoreRange, ...] = Field(description="Scores, in the order of the metrics.")
    better: tuple[str, ...] = Field((), description="Metrics by which the model is significantly better.")
    worse: tuple[str, ...] = Field((), description="Metrics by which the model is significantly worse.")

    def standing(self, sentences: int) -> Standing:
        """Return how the model compares with this system on a test set of this size."""
        if sentences < FEWEST_EXAMPLES:
            return "unknown"
        if self.better and self.worse:
            return "mixed"
        return "better" if self.better else "worse" if self.worse else "equal"


class SeenWords(Config):
    """The words of one side of a test set that the training pairs contain.

    Case and punctuation are ignored. In scripts without spaces between words, each character is a word.
    """

    types: int = Field(description="Number of distinct words.")
    seen_types: int = Field(description="Number of distinct words that the training pairs contain.")
    words: int = Field(description="Number of words.")
    seen_words: int = Field(description="Number of words that the training pairs contain.")
    lines: int = Field(description="Number of lines.")
    seen_lines: int = Field(description="Number of lines in which the training pairs contain every word.")

    @property
    def unseen(self) -> float:
        """The fraction of words that the training pairs do not contain."""
        return 1 - self.seen_words / self.words if self.words else 0.0


class Verdict(Shown, Config):
    """What the scores of a model mean, with the reasons."""

    data: str = Field(description="Name of the test set.")
    sentences: int = Field(description="Number of sentences of the test set.")
    pairs: int | None = Field(None, description="Number of training pairs, if it is known.")
    sampled: int | None = Field(
        None, description="Number of training pairs that the dictionary and the counts of words are limited to."
    )
    system: str = Field("neural", description="System of the folder that was judged, as in `systems`.")
    choice: str = Field("", description="How the folder chooses between its systems, if it has several.")
    model: SystemRanges = Field(description="Scores of the model.")
    others: tuple[SystemRanges, ...] = Field((), description="Scores of the simple systems, the simplest one first.")
    missing: str = Field("", description="Reason why there is no dictionary and no count of seen words.")
    source: SeenWords | None = Field(None, description="Words of the source side.")
    target: SeenWords | None = Field(None, description="Words of the references.")
    advice: tuple[str, ...] = Field((), description="What would help, most likely first.")

    @property
    def is_poor(self) -> bool:
        """Whether the model is not significantly better than one of the simple systems."""
        return any(each.standing(self.sentences) in ("worse", "equal") for each in self.others)

    @property
    def is_worse(self) -> bool:
        """Whether the model is significantly worse than one of the simple systems, so that nobody should use it."""
        return any(each.standing(self.sentences) == "worse" for each in self.others)

    @property
    def level(self) -> Level:
        """How to show the sentence: bad for a model that nobody should use, good for one that beats all systems."""
        if self.is_worse:
            return "bad"
        standings = {each.standing(self.sentences) for each in self.others}
        return "good" if standings == {"better"} else "warning"

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.sentences < FEWEST_EXAMPLES:
            return f"{self.sentences} sentences are too few for a verdict: use a test set of at least 100."
        standings = {each: each.standing(self.sentences) for each in self.others}
        worse = [each for each, standing in standings.items() if standing == "worse"]
        equal = [each for each, standing in standings.items() if standing == "equal"]
        mixed = [each for each, standing in standings.items() if standing == "mixed"]
        if worse:
            return f"Not usable: it is worse than {_named(worse)}, by {_metrics(worse[-1].worse)}."
        if equal:
            return (
                f"Not usable yet: it is not significantly better than {_named(equal)}; the difference may be due to "
                "the choice of the test sentences."
            )
        if mixed:
            each = mixed[-1]
            reason = " Usually, this means fluent sentences with wrong words." if "BLEU" in each.better else ""
            return (
                f"Mixed: it is significantly better than {_named([each])} by {_metrics(each.better)}, but worse by "
                f"{_metrics(each.worse)}.{reason}"
            )
        if not self.others:
            return "There is no simple system to compare with."
        better = f"It is significantly better than {_named(self.others)}"
        if self.source is not None and self.source.unseen >= 0.05:
            return f"{better}, but 1 word in {1 / self.source.unseen:.0f} was never seen in training."
        return f"{better}. Read some of its translations before you rely on it."

    def reasons(self) -> Iterator[str]:
        """Yield the reasons: the choice of the system, the size of the corpus, and the words that it contains."""
        if self.choice:
            yield self.choice
        if self.pairs is not None:
            sample = ""
            if self.sampled is not None and self.sampled < self.pairs:
                sample = f" The dictionary and the following counts use {self.sampled:,} of them."
            yield f"It was trained on {self.pairs:,} sentence pairs.{sample}"
        if self.missing:
            yield f"No dictionary was trained, and no words were counted: {self.missing}."
        for name, seen in (("source", self.source), ("references", self.target)):
            if seen is not None and seen.words:
                whole = seen.seen_lines / seen.lines
                yield (
                    f"In the {name}, {1 - seen.unseen:.1%} of the words ({seen.seen_types:,} of {seen.types:,} "
                    f"different ones) occur in training; {whole:.0%} of the lines have no unseen word."
                )

    def table(self) -> Table:
        """Return the table of scores."""
        header = ("system", *(score.metric for score in self.model.scores))
        rows = [(each.system, *map(str, each.scores)) for each in (self.model, *self.others)]
        return Table([header, *rows])

    @property
    def explanation(self) -> str:
        """The text that follows the scores of an evaluation or of a training run."""
        return f"\nIs this good?\n{self}"

    def marks(self) -> list[Mark]:
        """Return the sentence. See `Marked`."""
        return [Mark(self.level, self.sentence)]

    def card_section(self) -> list[str]:
        """Return the lines of the section of the model card."""
        advice = [f"What would help, most likely first: {'; '.join(self.advice)}."] if self.advice else []
        measured = f"Measured on {self.sentences:,} sentences of {self.data}; in parentheses, 95% bootstrap intervals."
        selected = "These sentences also selected the checkpoint or the weights, so the scores are a little too high."
        return [
            self.sentence,
            "",
            *self.table().markdown(),
            "",
            " ".join([measured, selected, *self.reasons(), *advice]),
        ]

    def card(self) -> Card:
        """Return the sentence, the table, the reasons and the advice."""
        advice = [f"What would help, most likely first: {'; '.join(self.advice)}."] if self.advice else []
        return Card("Is this good?", [self.sentence, self.table(), *map(Note, self.reasons()), *map(Note, advice)])

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types, with the sentence and the reasons as text."""
        words = {"sentence": self.sentence, "reasons": list(self.reasons()), "is_poor": self.is_poor}
        return {**words, **self.model_dump(mode="json")}

    def __str__(self) -> str:
        paragraphs = [self.sentence, *self.reasons()]
        help_lines = [f"- {each}" for each in self.advice]
        heading = ["What would help, most likely first:"] if help_lines else []
        return "\n".join([self.table().text(), *paragraphs, *heading, *help_lines])


def _named(systems: "tuple[SystemRanges, ...] | list[SystemRanges]") -> str:
    names = [each.system if each.system == COPYING else f"the {each.system}" for each in systems]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _metrics(names: tuple[str, ...]) -> str:
    return " and ".join(names)
