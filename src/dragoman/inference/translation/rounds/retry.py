"""`GuardRetry`: repeats the search with other settings for translations that a guard rejects."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.base.errors import ConfigError, DataError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Engine, Row
from dragoman.inference.control.control import Control
from dragoman.inference.control.keep import KeepRules
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.guard.guard import Finding, Guard, GuardOutcome
from dragoman.inference.translation.request import Request
from dragoman.inference.translation.result import Translation
from dragoman.inference.translation.rounds.fallback import ConstraintFallback
from dragoman.inference.translation.rounds.rounds import Search, Steps

_BEAM = 5
_SHORTEST_RUN = 3
"""Minimum length, in tokens, of a run that may not be repeated. Shorter runs occur twice in correct translations."""

_SMALLEST_FRACTION = 0.5
"""Minimum length, as a fraction of the source's tokens, of the translation that replaces an empty one."""

_USUAL_FRACTION, _LARGEST_FRACTION, _MARGIN = 0.75, 1.5, 5
"""Minimum and maximum length of a translation that replaces one of a faulty length, as fractions of the usual number of
tokens, and the number of tokens that are added to the maximum."""


class OtherSearch(NamedTuple):
    """A further search. name: its name in docs/explanation/guard.md. request: the first with other settings."""

    name: str
    request: Request


class GuardRetry:
    """Selects hypotheses without findings, and searches a text again if all hypotheses have findings.

    The result is a hypothesis without findings from the earliest possible search. If no search returns such a
    hypothesis, the result is the hypothesis with the fewest findings. Among equals, the hypothesis of the earliest
    search is preferred, then the one with the best score.
    """

    def __init__(self, engine: Engine, codec: Codec, constraints: ConstraintFallback) -> None:
        """constraints: determines which hypotheses meet the requirements; others are never returned."""
        self._engine, self._codec, self._constraints = engine, codec, constraints

    def translations(self, number: int, text: str, request: Request, first: list[Translation]) -> Steps:
        """Return the translations of a text. number: the line number, from 1. first: the first search's results."""
        guard = request.guard
        assert guard is not None
        findings = [guard.findings(text, each.text) for each in first]
        if (chosen := _choose(first, findings)) is not None:
            return chosen
        best = _ordered(first, findings, findings[0], "")
        for other in other_searches(request, findings[0], self._codec.count_target_tokens):
            row = self._row(number, text, other.request)
            answer = None if row is None else (yield Search([row], optional=True))
            if row is None or answer is None:
                continue
            candidates = self._acceptable(row, text, other.request, answer[0])
            candidates = [each for each in candidates if each.finished or not best[0].finished]
            if candidates:
                left = [guard.findings(text, each.text) for each in candidates]
                ordered = _ordered(candidates, left, findings[0], other.name)
                if _count_left(ordered[0]) < _count_left(best[0]):
                    config = request.decoding
                    assert isinstance(config, SearchConfig)
                    best = ordered[: config.nbest]
            if not _count_left(best[0]):
                break
        return best

    def _row(self, number: int, text: str, request: Request) -> Row | None:
        """Return the row for a request, or None if the engine does not support the row."""
        try:
            (row,) = self._codec.encode_rows([(text, request)], [number])
            self._codec.check_length(row.number, row.source, row.prefix.ids)
        except (ConfigError, DataError):
            return None
        return None if self._engine.refusal(row) is not None else row

    def _acceptable(self, row: Row, text: str, request: Request, hypotheses: list[Hypothesis]) -> list[Translation]:
        if request.control is None:
            return [self._codec.decode(each) for each in hypotheses]
        return self._constraints.meeting(row, text, request.control, hypotheses)


def choose_without_retry(guard: Guard, text: str, first: list[Translation]) -> list[Translation] | None:
    """Return the translations that `GuardRetry` returns if it needs no further search; None if it does.

    first: the first search's results.
    """
    return _choose(first, [guard.findings(text, each.text) for each in first])


def _choose(first: list[Translation], findings: Sequence[tuple[Finding, ...]]) -> list[Translation] | None:
    if not any(findings):
        return first
    # a patched translation means that the search has already failed
    return _ordered(first, findings, findings[0], "") if not all(findings) or first[0].patched else None


def other_searches(
    request: Request, findings: Sequence[Finding], count_tokens: Callable[[str], int]
) -> Iterator[OtherSearch]:
    """Yield the searches that may help against these findings, inexpensive ones first.

    request: the first request; only its search changes. count_tokens: number of target tokens of a phrase.
    """
    first = request.decoding
    assert isinstance(first, SearchConfig)
    kinds = {finding.kind for finding in findings}
    most = None if request.guard is None else request.guard.max_beam
    beam, wide = max(first.beam, _BEAM), 2 * max(first.beam, _BEAM)
    if most is not None:
        beam, wide = max(first.beam, min(beam, most)), max(first.beam, min(wide, most))
    usual = first.model_copy(update={"beam": beam, "nbest": beam, "diversity": None, "shrinking": False})

    def searched(**changes: object) -> Request:
        return replace(request, decoding=usual.model_copy(update=changes))

    if usual != first:
        yield OtherSearch("list", searched())
    if kinds & {"empty", "short", "copy", "script"} and first.beam > 1:
        yield OtherSearch("greedy", searched(beam=1, nbest=1))
    if kinds & {"empty", "short"}:
        fraction = _SMALLEST_FRACTION if "empty" in kinds else _USUAL_FRACTION * _token_ratio(request)
        shortest = max(first.minimum_length, 1), max(first.minimum_factor, fraction)
        yield OtherSearch("longer", searched(minimum_length=shortest[0], minimum_factor=shortest[1]))
    if "long" in kinds:
        longest = min(first.length_factor, _LARGEST_FRACTION * _token_ratio(request)), min(first.length_margin, _MARGIN)
        yield OtherSearch("shorter", searched(length_factor=longest[0], length_margin=longest[1]))
    if loops := [finding.what for finding in findings if finding.kind == "repetition"]:
        # three consecutive copies contain each run of twice the phrase's length twice, so two copies are allowed
        run = max(_SHORTEST_RUN, 2 * min(map(count_tokens, loops)))
        if first.no_repeat_ngram:
            run = min(run, first.no_repeat_ngram)
        yield OtherSearch("no repetition", searched(no_repeat_ngram=run))
    if "numbers" in kinds and not first.tree:
        yield OtherSearch("kept numbers", replace(searched(), control=_keeping_numbers(request.control)))
    if wide > beam:
        yield OtherSearch("wide", searched(beam=wide, nbest=wide))


def _token_ratio(request: Request) -> float:
    """Return the usual ratio of the numbers of target and source tokens."""
    lengths = None if request.guard is None else request.guard.lengths
    return 1.0 if lengths is None else lengths.token_ratio.median


def _keeping_numbers(control: Control | None) -> Control:
    """Return a control that also keeps the source's numbers."""
    known = control or Control()
    kinds, patterns = (known.keep.kinds, known.keep.patterns) if known.keep is not None else ((), ())
    return replace(known, keep=KeepRules.of([*kinds, "number"], patterns))


def _count_left(translation: Translation) -> int:
    """Return the number of findings in a translation."""
    return 0 if translation.guarded is None else len(translation.guarded.left)


def _ordered(
    translations: Sequence[Translation],
    left: Sequence[tuple[Finding, ...]],
    found: tuple[Finding, ...],
    search: str,
) -> list[Translation]:
    """Return the translations without findings or, if all have some, all of them, the fewest findings first.

    left: the findings in each; found: those in the first search's best translation; search: the name of the search.
    """
    reported = [
        replace(each, guarded=GuardOutcome(found, own, search)) if found or own else each
        for each, own in zip(translations, left, strict=True)
    ]
    if not all(left):
        return [each for each, own in zip(reported, left, strict=True) if not own]
    return [reported[index] for index in sorted(range(len(reported)), key=lambda index: len(left[index]))]
