"""Results of translation and scoring, and `Choice`, which reorders the hypotheses of a text."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from dragoman.decode.search_tree import SearchTree
from dragoman.inference.translation.guard.guard import GuardOutcome
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer


class LinePart(NamedTuple):
    """A part of a line that was translated sentence by sentence: a sentence, or copied text between sentences."""

    source: str
    translation: str
    is_copied: bool = False


@dataclass(frozen=True)
class Translation:
    """A hypothesis with its text.

    score: the value by which hypotheses are ranked. log_probability: in nats. ids: token ids, without BOS and EOS.
    tokenizer: the target tokenizer, which defines the ids. finished: False if the length limit was reached before an
    end of sentence. token_log_probabilities: the log-probability of each token and, if finished, of the end of
    sentence, in nats; empty unless requested by `token_scores`. tree: the search tree of the source text, if requested
    by `tree`. bound: no translation that is missing from the result has a higher score; None unless requested by
    `search.exact`. patched: True if the text was assembled from parts, because no hypothesis met the constraints;
    score, ids and the remaining fields are then those of the best hypothesis. guarded: the guard's findings in the
    first search's best translation and in this translation; None without a guard or without findings. parts: the parts
    of a line that was translated sentence by sentence, whose concatenations are the line and `text`; empty for other
    lines. forced_whole: whether a line of several sentences was translated as a whole, because of its prefix, its
    required phrases or a search tree.
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
