"""`NativeModel`: a Transformer with packed weights; `NativeSession`: continuous batching of its requests."""

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from ctypes import c_int32
from typing import Self
from weakref import finalize

from dragoman.base.cancellation import check_cancelled
from dragoman.base.errors import ModelError, ResourceError
from dragoman.base.interruption import interruptible
from dragoman.decode.search import Hypothesis
from dragoman.engines.native.embeddings import PositionTables, UnsupportedModelError
from dragoman.engines.native.packing import Packing, Precision, check_finite
from dragoman.engines.native.request import NativeRequest, RequestArray
from dragoman.models.families.transformer import TransformerDecoder, TransformerEncoder
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.native import library
from dragoman.native.build import best_library, compiled_library
from dragoman.native.compiler import InstructionSet
from dragoman.text.symbols import BOS, EOS

_LONG_CALL = 32
"""Number of requests from which a call may take so long that Ctrl-C must cancel it."""


def stacks(model: Seq2Seq) -> tuple[TransformerEncoder, TransformerDecoder]:
    """Return the encoder and decoder of a model. Raises UnsupportedModelError unless both are Transformers."""
    encoder, decoder = model.encoder, model.decoder
    if isinstance(encoder, TransformerEncoder) and isinstance(decoder, TransformerDecoder):
        return encoder, decoder
    side = "decoder" if isinstance(encoder, TransformerEncoder) else "encoder"
    raise UnsupportedModelError(f"the native engine requires model.{side}.kind=transformer")


class NativeModel:
    """A Transformer with packed weights, in float32, bfloat16 or as 8-bit codes.

    Encoder, decoder and search run in one call of the library. Only one call is allowed at a time, and none while a
    session is open.
    """

    def __init__(
        self,
        model: Seq2Seq,
        precision: Precision = "int8",
        threads: int = 1,
        instructions: InstructionSet | None = None,
    ) -> None:
        """threads: the number of threads that a single worker uses for a batch.

        instructions: the instruction set; None for the best available one.

        Raises UnsupportedModelError for a model that the engine cannot compute and ModelError for parameters that are
        not finite, both of which are checked before the library is compiled; NoLibraryError if there is no library;
        ResourceError if the packed weights do not fit into memory.
        """
        encoder, decoder = stacks(model)
        packing = Packing(encoder, decoder)
        check_finite(model)
        self._library = library.load(compiled_library(instructions) if instructions else best_library())
        self._packed = packing.open(self._library, precision)
        self._source, self._target = PositionTables(encoder), PositionTables(decoder)
        self._engine = self._packed.start(self, threads)

    def copy(self, threads: int) -> "NativeModel":
        """Return a model with the same packed weights that can compute in another thread at the same time."""
        other = copy(self)
        other._engine = self._packed.start(other, threads)
        return other

    def translate(self, requests: Sequence[NativeRequest], batch_size: int, workers: int) -> list[list[Hypothesis]]:
        """Return the hypotheses of each request, as `dragoman.decode.search.search` does.

        Requests are started in order. batch_size: the maximum number of requests that a worker decodes together.
        workers: the number of threads that share the requests. A single worker uses all threads of the model for each
        batch. Raises ModelError if log-probabilities are NaN, ResourceError if memory runs out, and Cancelled between
        two steps of the search.
        """
        if not requests:
            return []
        array = RequestArray(requests, self._packed.sizes)
        tables = self._tables(requests)
        workers, batch_size = max(1, min(workers, len(requests))), max(1, min(batch_size, len(requests)))
        options = library.Options(*tables, BOS, EOS, workers, batch_size)

        def cancel() -> None:
            for index in range(len(requests)):
                array.cancel(index)

        with (
            interruptible(len(requests) >= _LONG_CALL) as cancellation,
            nullcontext() if cancellation is None else cancellation.callback(cancel),
        ):
            _check(self._library.dragoman_translate(self._engine, array.requests, len(requests), ctypes.byref(options)))
        check_cancelled()
        return [array.hypotheses(index) for index in range(len(requests))]

    def session(self, requests: Sequence[NativeRequest], batch_size: int, workers: int) -> "NativeSession":
        """Start workers with at least one request; further requests can be submitted while the workers run.

        batch_size, workers: as in `translate`. Raises ResourceError if no thread can be started, ModelError for ids
        that are not in the vocabulary.
        """
        return NativeSession(self, requests, batch_size, workers)

    def _tables(self, requests: Sequence[NativeRequest]) -> tuple[library.Positions, library.Positions]:
        """Return the position tables of source and target, long enough for all requests."""
        source = self._source.table(max(len(request.source) for request in requests))
        return source, self._target.table(max(request.limit for request in requests))


class NativeSession:
    """Workers of a `NativeModel` that admit new requests while they decode. For use by one thread; must be closed.

    Continuous batching: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models".
    """

    def __init__(self, model: NativeModel, requests: Sequence[NativeRequest], batch_size: int, workers: int) -> None:
        """See `NativeModel.session`."""
        self._library, self._vocabulary_sizes = model._library, model._packed.sizes
        self._tables = tables = model._tables(requests)
        options = library.Options(*tables, BOS, EOS, workers, batch_size)
        session = self._library.dragoman_session_begin(model._engine, ctypes.byref(options))
        if not session:
            raise ResourceError("the native engine cannot start a thread: use fewer --threads, or free memory")
        self._session = session
        self._submitted: dict[int, tuple[RequestArray, int]] = {}
        """The array and the number of each submitted request, by the request's address."""
        self.close = finalize(self, _close, self._library, session, self._submitted, (model, tables))
        """Stops the workers and drops requests that are not completed. May be called more than once."""
        self._count = 0
        self.queued = 0
        """Number of requests that no worker had started at the last call of `completed`."""
        try:
            self.submit(requests)
        except ModelError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def in_progress(self) -> int:
        """Number of requests that were submitted and not yet returned by `completed`."""
        return len(self._submitted)

    def accepts(self, request: NativeRequest) -> bool:
        """Return whether the position tables, built for the session's first requests, are long enough for a request."""
        source, target = self._tables
        return bool(len(request.source) <= source.length and request.limit <= target.length)

    def submit(self, requests: Sequence[NativeRequest]) -> None:
        """Queue requests for which `accepts` is true, in order. Numbering starts at 0 and continues across calls.

        Raises ModelError for ids that are not in the vocabulary, in which case no request is queued.
        """
        array = RequestArray(requests, self._vocabulary_sizes)
        first, size = ctypes.addressof(array.requests), ctypes.sizeof(library.Request)
        for index in range(len(requests)):
            self._submitted[first + index * size] = array, self._count + index
        self._count += len(requests)
        self.queued += len(requests)
        self._library.dragoman_session_submit(self._session, array.requests, len(requests))

    def cancel(self, number: int) -> None:
        """Complete a request without hypotheses after the next step. Requests that are completed remain unchanged."""
        for address, (array, submitted) in self._submitted.items():
            if submitted == number:
                array.cancel(array.index(address))

    def completed(self, timeout: float) -> list[tuple[int, list[Hypothesis]]]:
        """Return the number and the hypotheses of each request completed since the last call.

        timeout: the maximum number of seconds to wait for a completed request. Raises the same errors as
        `NativeModel.translate`, which then apply to all requests in progress.
        """
        outcome, queued = c_int32(), c_int32()
        address = self._library.dragoman_session_completed(self._session, round(timeout * 1000), outcome, queued)
        _check(outcome.value)
        self.queued = queued.value
        done = []
        while address:
            array, number = self._submitted.pop(address)
            index = array.index(address)
            address = array.requests[index].next
            done.append((number, array.hypotheses(index)))
        return done


def _check(outcome: int) -> None:
    library.check(outcome, "log-probabilities", "a smaller batch size or beam")


def _close(functions: ctypes.CDLL, session: int, submitted: dict[int, tuple[RequestArray, int]], _: object) -> None:
    """Stop the workers, then free the submitted arrays, which the workers read and write until they stop."""
    functions.dragoman_session_end(session)
    submitted.clear()
