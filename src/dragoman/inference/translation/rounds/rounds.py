"""`Rounds`: searches texts again, with the n-th searches of all texts in one batch.

Each text is translated by a generator (`Steps`). The generator yields a `Search`, receives and inspects its hypotheses,
and then yields another search or returns the translations. `ConstraintFallback` and `GuardRetry` define such
generators.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.cancellation import check_cancelled
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


class Rounds:
    """The further searches of texts. The result of a text depends only on its own searches."""

    def __init__(self, engine: Engine, batch_size: int) -> None:
        """batch_size: as in `Engine.hypotheses`."""
        self._engine, self._batch_size = engine, batch_size
        self._steps: dict[int, Steps] = {}
        self._searches: dict[int, Search] = {}
        """The next search of each text."""

    def add(self, key: int, steps: Steps) -> list[Translation] | None:
        """Return the translations of a text if it needs no search; otherwise None, and `run` searches it."""
        self._steps[key] = steps
        return self._advance(key, None)

    def run(self) -> Iterator[tuple[int, list[Translation]]]:
        """Yield the key and the translations of each text, as soon as they are complete.

        One round is one call to the engine (two calls if some searches are optional), with the texts in order of their
        keys. Raises ResourceError for a row that doesn't fit into memory.
        """
        while self._searches:
            searches, self._searches = dict(sorted(self._searches.items())), {}
            for key, answer in self._answers(searches):
                check_cancelled()
                translations = self._advance(key, answer)
                if translations is not None:
                    yield key, translations

    def _advance(self, key: int, answer: Answer) -> list[Translation] | None:
        """Continue a text until its next search, or return its translations. answer: None for a new text."""
        try:
            self._searches[key] = self._steps[key].send(answer)
        except StopIteration as done:
            translations: list[Translation] = done.value
            return translations
        return None

    def _answers(self, searches: Mapping[int, Search]) -> Iterator[tuple[int, Answer]]:
        """Yield the key of each search and its answer, required searches first."""
        for optional in (False, True):
            selected = {key: search.rows for key, search in searches.items() if search.optional == optional}
            order = [(key, index) for key, rows in selected.items() for index in range(len(rows))]
            results: dict[int, dict[int, list[Hypothesis]]] = {key: {} for key in selected}
            try:
                rows = [selected[key][index] for key, index in order]
                for number, hypotheses in self._engine.hypotheses(rows, self._batch_size) if rows else ():
                    key, index = order[number]
                    results[key][index] = hypotheses
                    if len(results[key]) == len(selected[key]):
                        yield key, [each for _, each in sorted(results.pop(key).items())]
            except ResourceError:
                if not optional:
                    raise
                yield from ((key, None) for key in results)
