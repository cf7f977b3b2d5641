"""How a text is searched again, after a guard has found something wrong with what the first search gave."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.control.control import Control
from dragoman.control.keep import Keep
from dragoman.decode.search import SearchConfig
from dragoman.translation.guard.finding import Finding
from dragoman.translation.request import Request

_BEAM = 5
_SHORTEST_RUN = 3
"""Tokens: shorter runs stand twice in texts that nothing is wrong with."""

_LEAST_SHARE = 0.5
"""Of the source's tokens, that a translation has at least where it was empty."""


class OtherSearch(NamedTuple):
    """name: as docs/guard.md has it; request: the first one, with another search."""

    name: str
    request: Request


def other_searches(
    request: Request, findings: Sequence[Finding], tokens: Callable[[str], int]
) -> Iterator[OtherSearch]:
    """Those that promise something where these findings were made, the cheap ones first.

    request: what was searched, of which all else stays; tokens: how many a phrase of the target language has.
    """
    first = request.decoding
    assert isinstance(first, SearchConfig)
    kinds = {finding.kind for finding in findings}
    beam = max(first.beam, _BEAM)
    usual = first.model_copy(update={"beam": beam, "nbest": beam, "diversity": None, "shrinking": False})

    def searched(**changes: object) -> Request:
        return replace(request, decoding=usual.model_copy(update=changes))

    if usual != first:
        yield OtherSearch("list", searched())
    if kinds & {"empty", "copy", "script"} and first.beam > 1:
        yield OtherSearch("greedy", searched(beam=1, nbest=1))
    if "empty" in kinds:
        shortest = max(first.minimum_length, 1), max(first.minimum_factor, _LEAST_SHARE)
        yield OtherSearch("longer", searched(minimum_length=shortest[0], minimum_factor=shortest[1]))
    if loops := [finding.what for finding in findings if finding.kind == "repetition"]:
        # a run of twice the phrase's length stands twice in a row of three phrases, so there are two at most
        run = max(_SHORTEST_RUN, 2 * min(map(tokens, loops)))
        if first.no_repeat_ngram:
            run = min(run, first.no_repeat_ngram)
        yield OtherSearch("no repetition", searched(no_repeat_ngram=run))
    if "numbers" in kinds and not first.tree:
        yield OtherSearch("kept numbers", replace(searched(), control=_keeping_numbers(request.control)))
    yield OtherSearch("wide", searched(beam=2 * beam, nbest=2 * beam))


def _keeping_numbers(control: Control | None) -> Control:
    """All that was asked for, and the source's numbers."""
    known = control or Control()
    kinds, patterns = (known.keep.kinds, known.keep.patterns) if known.keep is not None else ((), ())
    return replace(known, keep=Keep.of([*kinds, "number"], patterns))
