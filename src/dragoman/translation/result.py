"""Results of translation and scoring."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from dragoman.decode.search_tree import SearchTree
from dragoman.text.tokenizer import Tokenizer
from dragoman.translation.guard.guard import GuardOutcome

Result = TypeVar("Result")


@dataclass(frozen=True)
class Translation:
    """A hypothesis: its text, its ranking score, its log-probability in nats and its ids, without BOS and EOS.

    finished: False if the length limit stopped it before its end of sentence. tokenizer: of the target language, which
    the ids belong to. token_log_probabilities: of each of `tokens` and, if finished, of the end of sentence, in nats;
    empty unless requested by `token_scores`. tree: the search tree of its text, if requested by `tree`. patched: the
    text was assembled from parts, because no hypothesis met the constraints; score, ids and the other fields are those
    of the best hypothesis. guarded: the problems that the guard found in the text's best translation and in this one;
    None without a guard or without findings.
    """

    text: str
    score: float
    log_probability: float
    ids: tuple[int, ...]
    tokenizer: Tokenizer = field(compare=False, repr=False)
    finished: bool = True
    token_log_probabilities: tuple[float, ...] = ()
    tree: SearchTree | None = field(default=None, compare=False, repr=False)
    patched: bool = False
    guarded: GuardOutcome | None = None

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The pieces of `ids`. An unknown word remains <unk>, even if the text has a replacement for it."""
        return tuple(self.tokenizer.pieces(self.ids))


@dataclass(frozen=True)
class PairScore:
    """log p(target | source) in nats, and the number of target tokens in the sum, including the end of sentence."""

    log_probability: float
    tokens: int


def in_order(count: int, known: dict[int, Result], found: Iterator[tuple[int, Result]]) -> Iterator[Result]:
    """Yield the results at positions 0 to count − 1, each as soon as those before it are known.

    known: results by position; found: positions and results of all others, in any order.
    """
    waiting = dict(known)
    for position in range(count):
        while position not in waiting:
            try:
                other, result = next(found)
            except StopIteration:
                raise RuntimeError(f"the engine returned nothing for position {position} of {count}") from None
            waiting[other] = result
        yield waiting.pop(position)
