"""`NativeRequest`: a request of the native engine; `RequestArray`: requests in the library's memory layout."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ModelError
from dragoman.decode.rules.length_penalty import GNMTPenalty, LengthPenalty, MeanLogProbability, NoPenalty
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.native.constraints import NativeConstraints
from dragoman.native import library


@dataclass(frozen=True)
class NativeRequest:
    """A source to translate and its resolved search settings.

    source: ids, including the end of sentence. prefix: the first ids of every output. forbidden: ids that never follow
    the prefix. nbest: the number of hypotheses to return. limit: the maximum number of output tokens, including the end
    of sentence, which exceeds the length of the prefix. minimum: the minimum number of output tokens. unknown: the text
    of each UNK of the prefix, as in `Hypothesis.unknown`. constraints: the phrases that every output must contain; None
    if there are none. shortlist: as in `Row`.
    """

    source: Sequence[int]
    prefix: Sequence[int]
    forbidden: Sequence[int]
    beam: int
    nbest: int
    limit: int
    minimum: int
    penalty: LengthPenalty
    unknown: tuple[str, ...] = ()
    constraints: NativeConstraints | None = None
    shortlist: NDArray[np.int32] | None = field(default=None, compare=False)

    @staticmethod
    def of(
        source: Sequence[int],
        prefix: Sequence[int],
        config: SearchConfig,
        positions: int | None,
        *,
        unknown: tuple[str, ...] = (),
        constraints: NativeConstraints | None = None,
        shortlist: NDArray[np.int32] | None = None,
    ) -> "NativeRequest":
        """Return the request for a search.

        positions: the maximum length of decoder inputs in tokens; None if there is no limit.
        """
        longest = config.max_length(len(source))
        if constraints is not None:
            longest = max(longest, len(prefix)) + constraints.tokens_needed
        limit = longest if positions is None else min(longest, positions)
        return NativeRequest(
            source=source,
            prefix=prefix,
            forbidden=config.forbid,
            beam=config.beam,
            nbest=config.nbest,
            limit=max(limit, len(prefix) + 1),
            minimum=config.min_length(len(source)),
            penalty=config.length_penalty,
            unknown=unknown,
            constraints=constraints,
            shortlist=shortlist,
        )


class RequestArray:
    """N requests as an array of the library's `Request` structure, with memory for their Σ nbest hypotheses.

    All input ids are stored in one array. The result tokens have the shape (Σ nbest · limit), and each hypothesis is
    padded to the limit of its request. All other result arrays have one value per hypothesis: (Σ nbest). This object
    owns the arrays and must outlive the library calls that use them.
    """

    def __init__(self, requests: Sequence[NativeRequest], vocabulary_sizes: tuple[int, int]) -> None:
        """vocabulary_sizes: the sizes of the source and target vocabularies.

        Raises ModelError for ids that are not in the vocabulary.
        """
        ids: list[int] = []
        starts = []
        source_size, target_size = vocabulary_sizes
        for request in requests:
            for part, size in (
                (request.source, source_size),
                (request.prefix, target_size),
                (request.forbidden, target_size),
            ):
                _check_ids(part, size)
                starts.append(len(ids))
                ids.extend(part)
        self._ids = np.array(ids or [0], np.int32)
        hypotheses, tokens = 0, 0
        self._offsets = []
        """The index of the first hypothesis, the index of the first token, and the limit of each request."""
        for request in requests:
            self._offsets.append((hypotheses, tokens, request.limit))
            hypotheses, tokens = hypotheses + request.nbest, tokens + request.nbest * request.limit
        self._unknown = [request.unknown for request in requests]
        self._shortlists = [_checked(request.shortlist, target_size) for request in requests]
        self._constraints = [request.constraints for request in requests]
        self._tokens = np.zeros(tokens, np.int32)
        self._lengths = np.zeros(hypotheses, np.int32)
        self._log_probabilities = np.zeros(hypotheses, np.float32)
        self._scores = np.zeros(hypotheses, np.float64)
        self._finished = np.zeros(hypotheses, np.uint8)
        results: list[NDArray[Any]] = [
            self._tokens,
            self._lengths,
            self._log_probabilities,
            self._scores,
            self._finished,
        ]
        addresses = [array.ctypes.data for array in results]
        first = self._ids.ctypes.data
        self.requests = (library.Request * len(requests))()
        for number, request in enumerate(requests):
            hypothesis, token, _ = self._offsets[number]
            offsets = (token, hypothesis, hypothesis, hypothesis, hypothesis)
            penalty, constraints = request.penalty, request.constraints
            self.requests[number] = library.Request(
                *(first + 4 * start for start in starts[3 * number : 3 * number + 3]),
                None if request.shortlist is None else request.shortlist.ctypes.data,
                len(request.source),
                len(request.prefix),
                len(request.forbidden),
                0 if request.shortlist is None else len(request.shortlist),
                request.beam if constraints is None else constraints.beam_size(request.beam),
                request.nbest,
                request.limit,
                request.minimum,
                _PENALTIES[type(penalty)],
                penalty.alpha if isinstance(penalty, GNMTPenalty) else 0.0,
                *_constraint_fields(constraints, request.beam),
                *(
                    base + each.itemsize * offset
                    for base, each, offset in zip(addresses, results, offsets, strict=True)
                ),
                None,
                -1,
                0,
            )

    def index(self, address: int) -> int:
        """Return the index of the request at an address that the library has returned."""
        return (address - ctypes.addressof(self.requests)) // ctypes.sizeof(library.Request)

    def cancel(self, index: int) -> None:
        """Complete a request without hypotheses after the next step of its search. May be called in any thread."""
        self.requests[index].cancelled = 1

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the hypotheses of a completed request, best first; [] if the request was cancelled.

        Raises the error that ended the search, if any.
        """
        constraints = self._constraints[index]
        if constraints is not None and constraints.error is not None:
            raise constraints.error
        return [self._hypothesis(index, rank) for rank in range(self.requests[index].hypothesis_count)]

    def _hypothesis(self, index: int, rank: int) -> Hypothesis:
        hypothesis, token, limit = self._offsets[index]
        hypothesis, token = hypothesis + rank, token + rank * limit
        return Hypothesis(
            tuple(self._tokens[token : token + int(self._lengths[hypothesis])].tolist()),
            float(self._log_probabilities[hypothesis]),
            float(self._scores[hypothesis]),
            bool(self._finished[hypothesis]),
            self._unknown[index],
        )


_PENALTIES = {
    NoPenalty: library.NO_PENALTY,
    GNMTPenalty: library.GNMT_PENALTY,
    MeanLogProbability: library.MEAN_PENALTY,
}


def _constraint_fields(constraints: NativeConstraints | None, beam: int) -> tuple[Any, ...]:
    """Return the fields of the library's `Request` that describe constraints. beam: the requested beam size."""
    if constraints is None:
        return None, None, library.FollowTokens(), beam, 0, 0
    kinds = constraints.kinds.ctypes.data
    return constraints.start, kinds, constraints.follow, beam, constraints.phrase_tokens, constraints.max_phrase_tokens


def _checked(shortlist: NDArray[np.int32] | None, size: int) -> NDArray[np.int32] | None:
    """Return a shortlist. Raises ModelError for ids that are not in the vocabulary."""
    if shortlist is not None:
        assert shortlist.dtype == np.int32 and shortlist.flags.c_contiguous and len(shortlist)
        _check_ids((int(shortlist[0]), int(shortlist[-1])), size)
    return shortlist


def _check_ids(ids: Sequence[int], size: int) -> None:
    if ids and (min(ids) < 0 or max(ids) >= size):
        invalid = min(ids) if min(ids) < 0 else max(ids)
        raise ModelError(f"token {invalid} is not in the vocabulary of {size} entries")
