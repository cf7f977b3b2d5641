"""Converts the tensors of a completed sentence to hypotheses."""

from collections.abc import Mapping
from math import inf, isfinite, isnan
from typing import Any, NamedTuple

from dragoman.decode.search import Hypothesis
from dragoman.engines.native.request import NativeRequest


class _End(NamedTuple):
    """A hypothesis at the end of its search.

    tokens: padded. total: the summed log-probability of the tokens. length: includes the end of sentence, if any.
    """

    tokens: list[int]
    total: float
    length: int
    finished: bool


def completed_hypotheses(request: NativeRequest, values: Mapping[str, Any]) -> list[Hypothesis]:
    """Return the hypotheses of a sentence, best first.

    The list is empty if log-probabilities are NaN or every continuation is forbidden. values: the sentence's row of the
    tensors in `Slots.state`, as numbers and lists of K elements: position, totals, sequences, ended_lengths, and for
    K > 1 the other entries that start with `ended_`.
    """
    ends = _beam_ends(values, request.limit) if "ended_scores" in values else _greedy_end(values)
    return [
        Hypothesis(
            tuple(tokens[: length - finished]),
            total,
            total / request.penalty.divisor(length),
            finished,
            request.unknown,
        )
        for tokens, total, length, finished in ends[: request.nbest]
    ]


def _greedy_end(values: Mapping[str, Any]) -> list[_End]:
    (total,), (tokens,), (ended,) = values["totals"], values["sequences"], values["ended_lengths"]
    return [_End(tokens, total, values["position"], ended > 0)] if isfinite(total) else []


def _beam_ends(values: Mapping[str, Any], limit: int) -> list[_End]:
    """Return finished hypotheses, followed by the hypotheses that are still live at the length limit."""
    totals, length = values["totals"], values["position"]
    if any(isnan(total) for total in totals):
        return []
    columns = (values[name] for name in ("ended_sequences", "ended_totals", "ended_lengths", "ended_scores"))
    ends = [
        _End(tokens, total, count, True) for tokens, total, count, score in zip(*columns, strict=True) if score > -inf
    ]
    if length == limit:
        live = zip(values["sequences"], totals, strict=True)
        ends += [_End(tokens, total, length, False) for tokens, total in live if total > -inf]
    return ends
