"""`Engine`: the protocol of inference engines, which generate hypotheses for encoded texts.

Callers encode and decode text; engines run models. Ids are token ids of a model's vocabularies, without
beginning-of-sentence and end-of-sentence symbols.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.decode.constraints.constraint import Constraint
from dragoman.decode.decoding import Decoding
from dragoman.decode.search import Hypothesis
from dragoman.models.attention_weights import AttentionChoice, AttentionMap
from dragoman.models.interface import LengthLimits


class Prefix(NamedTuple):
    """The start of a translation. unknown: the word that each UNK among the ids represents."""

    ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


class ExpectedConstraints(NamedTuple):
    """Constraints that a translation should meet. forbidden: ids that may occur only as part of a constraint."""

    constraints: tuple[Constraint, ...]
    forbidden: tuple[int, ...] = ()


class Row(NamedTuple):
    """A source to translate, with all settings of its translation. The result does not depend on other rows.

    number: the line number, from 1, for messages and random draws. part: the index of the text in a line that is
    translated in parts, for random draws. source: the ids of `tags` tags, followed by the ids of `text`, some parts of
    which may be replaced by inline symbols; for vectors, a float32 array (S, n). constraints: enforced by the search.
    expected: constraints that the engine does not enforce; the caller checks them and, if they are not met, searches
    again with `constraints`. shortlist: (N,), the ids that the translation may contain, in ascending order, among them
    those of the prefix and of all constraints; None for all ids.
    """

    number: int
    text: str
    source: Sequence[int]
    decoding: Decoding
    prefix: Prefix = Prefix()
    tags: int = 0
    constraints: tuple[Constraint, ...] = ()
    expected: ExpectedConstraints = ExpectedConstraints(())
    part: int = 0
    shortlist: NDArray[np.int32] | None = None


class Pair(NamedTuple):
    """A source, including its tags, and a target to score. number: the line number, from 1, for messages."""

    number: int
    source: Sequence[int]
    target: Sequence[int]


class Engine(Protocol):
    """Generates hypotheses for rows and scores pairs. The rows of one call may have different requests.

    An engine may sort the rows of a call, compute several batches at a time, and refill a batch as its rows are
    completed. The result of a row does not depend on the other rows, up to rounding.
    """

    @property
    def precision(self) -> str:
        """The number format of matrix products, such as float32 or int8."""
        ...

    @property
    def limits(self) -> LengthLimits:
        """Maximum lengths of source and target. Callers must not exceed them."""
        ...

    def refusal(self, row: Row) -> str | None:
        """Return the reason why the engine does not support a row, with a remedy; None if it supports the row."""
        ...

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yield the index of each row and its hypotheses, of which there is at least one.

        Hypotheses are sorted from best to worst; samples are in the order drawn. Rows are yielded in any order, as soon
        as they are completed. The first rows should be completed early, because translations are written in order.
        batch_size: maximum number of rows computed together. The caller passes only rows without a `refusal`.
        `Hypothesis.unknown` contains the text of each UNK. Raises ResourceError if a single row does not fit into
        memory.
        """
        ...

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """Return log p(target, end of sentence | source) of each pair, in nats.

        Raises ResourceError if a single pair does not fit into memory.
        """
        ...


class Session(Protocol):
    """A continuous batch: new requests can join while others are decoded. Must be closed. Not thread-safe."""

    @property
    def queued(self) -> int:
        """Number of requests whose decoding had not started at the last call of `completed`."""
        ...

    @property
    def in_progress(self) -> int:
        """Number of submitted requests that `completed` has not yet returned."""
        ...

    def accepts(self, request: Any) -> bool:
        """Return whether a request, created by `ContinuousEngine.request`, can join this session."""
        ...

    def submit(self, requests: Sequence[Any]) -> None:
        """Queue accepted requests, in order. Requests are numbered from 0 over all calls."""
        ...

    def cancel(self, number: int) -> None:
        """Complete a request without hypotheses as soon as possible, unless it is completed already."""
        ...

    def completed(self, timeout: float) -> list[tuple[int, list[Hypothesis]]]:
        """Return the number and the hypotheses of each request completed since the last call; [] if it was cancelled.

        timeout: seconds to wait for at least one request. Raises ResourceError and ModelError.
        """
        ...

    def close(self) -> None:
        """Discard all requests that are not completed."""
        ...


@runtime_checkable
class ContinuousEngine(Engine, Protocol):
    """An engine that supports continuous batching.

    Source: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models".
    """

    def session(self, rows: Sequence[Row], batch_size: int) -> Session:
        """Open a session with at least one row. batch_size: as in `hypotheses`. Raises ResourceError if memory is
        exhausted.
        """
        ...

    def request(self, row: Row) -> Any:
        """Convert a row without a `refusal` to a request for `Session.submit`."""
        ...


@runtime_checkable
class CopyableEngine(Engine, Protocol):
    """An engine that can be copied for another thread."""

    def copy(self, threads: int) -> Engine:
        """Return an engine of the same model that can translate in another thread at the same time."""
        ...


@runtime_checkable
class AttentionEngine(Engine, Protocol):
    """An engine that also exposes the attention weights of its model."""

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """Return the attention weights of every layer and head while `target` is predicted from `source`, which
        includes tags.
        """
        ...

    def source_attention(self, pairs: Sequence[Pair], batch_size: int, choice: AttentionChoice) -> list[np.ndarray]:
        """Return the selected weights over the source, including its tags, for the target's T tokens: (T, S) for each
        pair, in order.

        Weights are as in `inspect.source_attention`. Raises ResourceError for a pair that does not fit into memory.
        """
        ...

    def without_weights(self) -> list[str]:
        """Return a message for each part of the model that has no attention weights, with the reason."""
        ...


def attention_engine(engine: Engine) -> AttentionEngine:
    """Return the engine, typed as an `AttentionEngine`. Raises ConfigError if it does not expose attention weights."""
    if not isinstance(engine, AttentionEngine):
        raise ConfigError(
            "this engine does not show attention: load a single model folder with --engine torch or auto; "
            "ensembles and exported models do not show attention, and statistical models have none"
        )
    return engine
