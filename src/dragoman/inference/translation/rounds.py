"""`search_in_rounds`: searches texts repeatedly, with the n-th searches of all texts in one batch.

Each text is translated by a generator (`Steps`). The generator yields a `Search`, receives and inspects its hypotheses,
and then yields another search or returns the translations. `ConstraintFallback` and `GuardRetry` define such
generators.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Engine, Row
from dragoman.inference.translation.result import Translation


class Search(NamedTuple):
    """One or more rows to search for one text.

    optional: if True and the rows don't fit into memory, the answer is None instead of an error.
    """

    rows: Sequence[Row]
    optional: bool = False


Answer = list[list[Hypothesis]] | None
"""The hypotheses of each row of a search, the best first; None if an optional search didn't fit into memory."""

Steps = Generator[Search, Answer, list[Translation]]
"""A generator that yields searches, receives their answers, and returns the translations of a text."""


def search_in_rounds(
    engine: Engine, steps: Mapping[int, Steps], batch_size: int
) -> Iterator[tuple[int, list[Translation]]]:
    """Yield the key and the translations of each text in `steps`, as soon as they are complete.

    The n-th searches of all texts form one round, which is one call to the engine (two calls if some searches are
    optional). The result of a text depends only on its own searches. Raises ResourceError for a row that doesn't fit
    into memory.
    """
    searches = {key: next(each) for key, each in steps.items()}
    while searches:
        next_round: dict[int, Search] = {}
        for key, answer in until_cancelled(_run_round(engine, searches, batch_size)):
            try:
                next_round[key] = steps[key].send(answer)
            except StopIteration as done:
                yield key, done.value
        searches = {key: next_round[key] for key in steps if key in next_round}  # independent of the answers' order


def _run_round(engine: Engine, searches: Mapping[int, Search], batch_size: int) -> Iterator[tuple[int, Answer]]:
    """Yield the key of each search and its answer, required searches first."""
    for optional in (False, True):
        selected = {key: search.rows for key, search in searches.items() if search.optional == optional}
        order = [(key, index) for key, rows in selected.items() for index in range(len(rows))]
        results: dict[int, dict[int, list[Hypothesis]]] = {key: {} for key in selected}
        try:
            rows = [selected[key][index] for key, index in order]
            for number, hypotheses in engine.hypotheses(rows, batch_size) if rows else ():
                key, index = order[number]
                results[key][index] = hypotheses
                if len(results[key]) == len(selected[key]):
                    yield key, [each for _, each in sorted(results.pop(key).items())]
        except ResourceError:
            if not optional:
                raise
            yield from ((key, None) for key in results)
