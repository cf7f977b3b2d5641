"""`Engine`: what computes translations, whatever it computes with. Texts are above it, models below.

Ids are those of a model's vocabularies, without beginning and end of sentence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from dragoman.decode.constraints.constraint import Constraint
from dragoman.decode.search import Hypothesis
from dragoman.inspect.attention import AttentionMap
from dragoman.models.limits import LengthLimits
from dragoman.translation.request import Decoding


class Prefix(NamedTuple):
    """What a translation starts with: its ids, and its words that the vocabulary lacks, one for each UNK among them."""

    ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


class Expected(NamedTuple):
    """What a translation is to hold. forbidden: ids that nothing but the constraints may write."""

    constraints: tuple[Constraint, ...]
    forbidden: tuple[int, ...] = ()


class Row(NamedTuple):
    """A text to translate, with all that is wanted of its translation; no other row changes what it gets.

    number: the line's, from 1, for messages and for what is drawn. source: the ids of `text`, those of as many tags as
    `tags` says before them, and perhaps inline symbols in the place of parts of it; of a source of vectors (S, n)
    float32. constraints: what a searched translation must hold. expected: what it had better hold, for which the engine
    does nothing.
    """

    number: int
    text: str
    source: Sequence[int]
    decoding: Decoding
    prefix: Prefix = Prefix()
    tags: int = 0
    constraints: tuple[Constraint, ...] = ()
    expected: Expected = Expected(())


class Pair(NamedTuple):
    """A source, tags before it, and a target to score. number: the line's, from 1, for messages."""

    number: int
    source: Sequence[int]
    target: Sequence[int]


class Engine(Protocol):
    """Finds hypotheses of rows and scores pairs. One call may hold rows that want different things.

    It forms batches itself: it may sort the rows of a call, compute several batches at a time, and fill up a batch as
    rows of it are done. Whatever it does, a row gets what it would get alone, up to rounding.
    """

    @property
    def limits(self) -> LengthLimits:
        """How long sources and targets may be. Longer ones are never handed to it."""
        ...

    def refusal(self, row: Row) -> str | None:
        """Why it cannot do what the row asks for, and what to do instead; None where it can."""
        ...

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """The place of each row among `rows`, and its hypotheses: never none, best first, samples as they were drawn.

        In whatever order they are found, so that none waits for the rest; the first rows had better come early, since
        texts go out in order. batch_size: rows that are computed together at most. Only rows without a `refusal` are
        given. An UNK shows its text in `Hypothesis.unknown`. Raises ResourceError for a row that alone does not fit the
        memory.
        """
        ...

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """log p(target, end of sentence | source) in nats of each pair, in order. Raises ResourceError as above."""
        ...


@runtime_checkable
class AttentionEngine(Protocol):
    """An engine that can also show what its model attends."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """The weights of every layer, head and kind while `target` is predicted from `source`, tags included."""
        ...

    def source_attention(
        self, pairs: Sequence[Pair], batch_size: int, layer: int | None = None, head: int | None = None
    ) -> list[np.ndarray]:
        """(T, S) of each pair, in order: what is attended of the source while the target's T tokens are predicted.

        As `inspect.source_attention`, tags included. Raises ResourceError for a pair that does not fit the memory.
        """
        ...

    def without_weights(self) -> list[str]:
        """What of the model has no weights to show, and why, a line each."""
        ...
