"""`Engine`: what computes translations, whatever it computes with. Texts are above it, models below.

Ids are those of a model's vocabularies, without beginning and end of sentence.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from dragoman.decode.constraints.constraint import Constraint
from dragoman.decode.search import Hypothesis
from dragoman.inspect.attention import AttentionMap
from dragoman.models.interface import LengthLimits
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


class OpenBatch(Protocol):
    """Rows that are computed together, where others take the places of those that are done. For one thread."""

    @property
    def waiting(self) -> int:
        """Rows that were given, and were not begun with when it was last asked what is found."""
        ...

    @property
    def under_way(self) -> int:
        """Rows that were given, and whose hypotheses were not."""
        ...

    def has_room_for(self, row: Row) -> bool:
        """Whether it takes in the row, for which the engine has no refusal; one that is too long waits for its end."""
        ...

    def put(self, rows: Sequence[Row]) -> None:
        """Rows that there is room for. They are numbered on, from 0."""
        ...

    def found(self, seconds: float) -> list[tuple[int, list[Hypothesis]]]:
        """The numbers of rows that are done since the last time, and their hypotheses; waits so long for one.

        Raises ResourceError where what is under way does not fit the memory, ModelError for damaged parameters.
        """
        ...

    def close(self) -> None:
        """What is not done is given up."""
        ...


@runtime_checkable
class ContinuousEngine(Engine, Protocol):
    """An engine that takes in rows while it computes others.

    Continuous batching: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models".
    """

    def open_batch(self, rows: Sequence[Row], batch_size: int) -> OpenBatch:
        """A batch that begins with these rows, of which there is one at least. batch_size: as in `hypotheses`.

        Until it is closed the engine is asked for nothing else but scores. Raises ResourceError.
        """
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
