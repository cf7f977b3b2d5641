"""Results of translation and scoring, and `Choice`, which reorders the hypotheses of a text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from dragoman.base.notebook import Card, Note, Shown
from dragoman.base.table import Table
from dragoman.decode.search_tree import SearchTree
from dragoman.inference.translation.guard.guard import GuardOutcome
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer

_SHOWN = 20
"""Maximum number of texts whose translations a notebook shows."""


class LinePart(NamedTuple):
    """A part of a line that was translated sentence by sentence: a sentence, or copied text between sentences."""

    source: str
    translation: str
    is_copied: bool = False


@dataclass(frozen=True)
class Translation(Shown):
    """A hypothesis with its text.

    score: the value by which hypotheses are ranked. log_probability: in nats. ids: token ids, without BOS and EOS.
    tokenizer: the target tokenizer, which defines the ids. finished: False if the length limit was reached before an
    end of sentence. token_log_probabilities: the log-probability of each token and, if finished, of the end of
    sentence, in nats; empty unless requested by `token_scores`. tree: the search tree of the source text, if requested
    by `tree`. bound: no translation that is missing from the result has a higher score; None unless requested by
    `search.exact`. patched: True if the text was assembled from terms or parts, because no hypothesis met the
    constraints or the source is a term; score, ids and the remaining fields are then those of the best hypothesis.
    guarded: the guard's findings in the first search's best translation and in this translation; None without a guard
    or without findings. parts: the parts of a line that was translated sentence by sentence, whose concatenations are
    the line and `text`; empty for other lines. forced_whole: whether a line of several sentences was translated as a
    whole, because of its prefix, its required phrases or a search tree.
    """

    text: str
    score: float
    log_probability: float
    ids: tuple[int, ...]
    tokenizer: Tokenizer = field(compare=False, repr=False)
    finished: bool = True
    token_log_probabilities: tuple[float, ...] = ()
    tree: SearchTree | None = field(default=None, compare=False, repr=False)
    bound: float | None = None
    patched: bool = False
    guarded: GuardOutcome | None = None
    parts: tuple[LinePart, ...] = ()
    forced_whole: bool = False

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The pieces of `ids`. An unknown word is <unk>, even if the text contains a replacement for it."""
        return tuple(self.tokenizer.pieces(self.ids))

    def card(self) -> Card:
        """Return the text, its tokens and its score."""
        facts = {
            "Score": f"{self.score:.3f}",
            "Log-probability": f"{self.log_probability:.3f} nats",
            "Tokens": " ".join(self.tokens),
        }
        if not self.finished:
            facts["Unfinished"] = "The length limit was reached."
        if self.guarded is not None:
            facts["Guard"] = str(self.guarded)
        return Card(self.text, [facts])


class NBestList(list[Translation], Shown):
    """The hypotheses of a text, best first, which a notebook shows as a table."""

    def __init__(self, source: str, hypotheses: Iterable[Translation]) -> None:
        """source: the text that was translated."""
        super().__init__(hypotheses)
        self.source = source

    def card(self) -> Card:
        """Return a table of the translations with their scores."""
        rows = [
            (str(rank), each.text, f"{each.score:.3f}", f"{each.log_probability:.3f}")
            for rank, each in enumerate(self, 1)
        ]
        return Card(self.source, [Table([("", "translation", "score", "log-probability"), *rows], right=2)])


class NBestLists(list[list[Translation]], Shown):
    """The hypotheses of several texts, which a notebook shows as a table."""

    def __init__(self, sources: Iterable[str], found: Iterable[list[Translation]]) -> None:
        """sources: the texts that were translated. found: the hypotheses of each text."""
        super().__init__(NBestList(source, each) for source, each in zip(sources, found, strict=True))

    def card(self) -> Card:
        """Return the table of each text, of the first ones if there are many."""
        rest = len(self) - _SHOWN
        tables = [each.card() for each in self[:_SHOWN] if isinstance(each, NBestList)]
        more = [Note(f"and the translations of {rest:,} more texts")] if rest > 0 else []
        return Card("Translations", [*tables, *more])


@dataclass(frozen=True)
class PairScore:
    """log p(target | source) in nats, and the number of target tokens in the sum, including the end of sentence.

    unknown: the number of unknown tokens among them.
    """

    log_probability: float
    tokens: int
    unknown: int = 0

    @classmethod
    def of(cls, target: Sequence[int], log_probability: float) -> "PairScore":
        """Return the score of a target, given its ids without the end of sentence."""
        return cls(log_probability, len(target) + 1, list(target).count(UNK))


class Choice(Protocol):
    """Orders complete hypotheses by criteria that cannot be computed during a search."""

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """Return all hypotheses of each text, best first, with the score that orders them.

        Hypotheses with equal scores keep their order. The result for a text does not depend on other texts.
        """
        ...

    def settings(self) -> dict[str, Any]:
        """Return all settings that determine the order, as JSON values."""
        ...


def ordered(hypotheses: Sequence[Translation], scores: Sequence[float]) -> list[Translation]:
    """Return the hypotheses with these scores, in descending order of score."""
    order = sorted(range(len(hypotheses)), key=lambda row: -scores[row])
    return [replace(hypotheses[row], score=float(scores[row])) for row in order]
