"""`Engine`: the protocol for finding hypotheses of rows of ids. Callers handle text; engines run models.

Ids are those of a model's vocabularies, without beginning-of-sentence and end-of-sentence symbols.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.decode.constraints.constraint import Constraint
from dragoman.decode.search import Hypothesis
from dragoman.inspect.attention import AttentionMap
from dragoman.models.interface import LengthLimits
from dragoman.translation.request import Decoding


class Prefix(NamedTuple):
    """The start of a translation: its ids, and the unknown words in it, one for each UNK among the ids."""

    ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


class ExpectedConstraints(NamedTuple):
    """Constraints that a translation should meet. forbidden: ids that only the constraints may write."""

    constraints: tuple[Constraint, ...]
    forbidden: tuple[int, ...] = ()


class Row(NamedTuple):
    """A source to translate, with all settings of its translation. The result does not depend on other rows.

    number: of the line, from 1, for messages and for random draws. source: the ids of `tags` tags, then those of
    `text`, in which inline symbols may replace parts; for a source of vectors (S, n) float32. constraints: enforced by
    the search. expected: not enforced by the engine; the caller checks it and, if it is not met, searches again with
    constraints.
    """

    number: int
    text: str
    source: Sequence[int]
    decoding: Decoding
    prefix: Prefix = Prefix()
    tags: int = 0
    constraints: tuple[Constraint, ...] = ()
    expected: ExpectedConstraints = ExpectedConstraints(())


class Pair(NamedTuple):
    """A source, including its tags, and a target to score. number: of the line, from 1, for messages."""

    number: int
    source: Sequence[int]
    target: Sequence[int]


class Engine(Protocol):
    """Finds hypotheses of rows and scores pairs. The rows of one call may have different requests.

    An engine forms its own batches: it may sort the rows of a call, compute several batches at a time, and refill a
    batch as its rows are completed. The result of a row does not depend on the other rows, up to rounding.
    """

    @property
    def limits(self) -> LengthLimits:
        """The maximum lengths of source and target. Callers must not exceed them."""
        ...

    def refusal(self, row: Row) -> str | None:
        """Return why the engine cannot compute a row, and what to do instead; None if it can."""
        ...

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the index of each row in `rows` and its hypotheses: at least one, best first, samples in the order
        drawn.

        Rows are yielded in any order, as soon as they are completed; the first rows should come early, since texts are
        written in order. batch_size: maximum number of rows computed together. The caller passes only rows without a
        `refusal`. The text of each UNK is in `Hypothesis.unknown`. Raises ResourceError for a row that does not fit
        into memory even alone.
        """
        ...

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """Return log p(target, end of sentence | source) of each pair, in nats. Raises ResourceError as above."""
        ...


class Session(Protocol):
    """Requests that an engine decodes together, while new ones are admitted. Must be closed. Not thread-safe."""

    @property
    def queued(self) -> int:
        """The number of requests that were not started at the last call of `completed`."""
        ...

    @property
    def in_progress(self) -> int:
        """The number of submitted requests that `completed` has not returned."""
        ...

    def accepts(self, request: Any) -> bool:
        """Return whether a request, from `ContinuousEngine.request`, can join; if not, it needs another session."""
        ...

    def submit(self, requests: Sequence[Any]) -> None:
        """Queue accepted requests, in order. Requests are numbered from 0 over all calls."""
        ...

    def completed(self, timeout: float) -> list[tuple[int, list[Hypothesis]]]:
        """Return the number and the hypotheses of each request completed since the last call.

        timeout: seconds to wait for at least one. Raises ResourceError and ModelError.
        """
        ...

    def close(self) -> None:
        """Drop all requests that are not completed."""
        ...


@runtime_checkable
class ContinuousEngine(Engine, Protocol):
    """An engine that can start rows while it decodes others.

    Continuous batching: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models".
    """

    def session(self, rows: Sequence[Row], batch_size: int) -> Session:
        """Open a session with at least one row. batch_size: as in `hypotheses`. Raises ResourceError."""
        ...

    def request(self, row: Row) -> Any:
        """Convert a row without a `refusal` to a request for `Session.submit`."""
        ...


@runtime_checkable
class AttentionEngine(Engine, Protocol):
    """An engine that can also show what its model attends to."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """Return all attention weights of every layer and head while `target` is predicted from `source`, including
        tags.
        """
        ...

    def source_attention(
        self, pairs: Sequence[Pair], batch_size: int, layer: int | None = None, head: int | None = None
    ) -> list[np.ndarray]:
        """Return the weights over the source while the target's T tokens are predicted: (T, S) for each pair, in order.

        As `inspect.source_attention`, including tags. Raises ResourceError for a pair that does not fit into memory.
        """
        ...

    def without_weights(self) -> list[str]:
        """Return one line for each part of the model that has no attention weights to show, with the reason."""
        ...


def attention_engine(engine: Engine) -> AttentionEngine:
    """Return the engine as one that exposes attention weights. Raises ConfigError if it doesn't."""
    if not isinstance(engine, AttentionEngine):
        raise ConfigError(
            "this engine does not show attention: load a single model folder with --engine torch or auto, since "
            "ensembles and exported models have no attention to show"
        )
    return engine
