"""`search_in_rounds`: search, inspect the output, and search again, with all texts of a round in one batch.

The translation of a text is a generator of `Steps`. It yields a `Search`, inspects the hypotheses that it receives, and
yields another search or returns its translations. `ConstraintFallback` and `GuardRetry` are such generators.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis
from dragoman.translation.engine import Engine, Row
from dragoman.translation.result import Translation


class Search(NamedTuple):
    """One or more rows to search for one text.

    optional: if the rows don't fit into memory, the text gets no answer instead of an error.
    """

    rows: Sequence[Row]
    optional: bool = False


Answer = list[list[Hypothesis]] | None
"""The hypotheses of each row of a search, the best first; None if an optional search didn't fit into memory."""

Steps = Generator[Search, Answer, list[Translation]]
"""Yields searches, receives their answers, returns the translations of a text."""


def search_in_rounds(
    engine: Engine, steps: Mapping[int, Steps], batch_size: int
) -> Iterator[tuple[int, list[Translation]]]:
    """Yield the key of each text in `steps` and its translations, as soon as they are known.

    The n-th searches of all texts form one round, which is one call of the engine (two if some are optional). The
    result of a text depends on its own searches only. Raises ResourceError for a row that doesn't fit into memory.
    """
    searches = {key: next(each) for key, each in steps.items()}
    while searches:
        further: dict[int, Search] = {}
        for key, answer in _answers(engine, searches, batch_size):
            try:
                further[key] = steps[key].send(answer)
            except StopIteration as done:
                yield key, done.value
        searches = {key: further[key] for key in steps if key in further}  # in order, whatever the order of the answers


def _answers(engine: Engine, searches: Mapping[int, Search], batch_size: int) -> Iterator[tuple[int, Answer]]:
    """Yield the key of each search and its answer, required searches first."""
    for optional in (False, True):
        own = {key: search.rows for key, search in searches.items() if search.optional == optional}
        order = [(key, index) for key, rows in own.items() for index in range(len(rows))]
        found: dict[int, dict[int, list[Hypothesis]]] = {key: {} for key in own}
        try:
            rows = [own[key][index] for key, index in order]
            for number, hypotheses in engine.hypotheses(rows, batch_size) if rows else ():
                key, index = order[number]
                found[key][index] = hypotheses
                if len(found[key]) == len(own[key]):
                    yield key, [each for _, each in sorted(found.pop(key).items())]
        except ResourceError:
            if not optional:
                raise
            yield from ((key, None) for key in found)
