"""`WindowTranslation`: a run of lines, translated by an engine, in order."""

from collections.abc import Iterator, Sequence

from dragoman.base.errors import ConfigError, LineError
from dragoman.base.progress import Work
from dragoman.decode.search import Hypothesis
from dragoman.translation.codec import Codec
from dragoman.translation.engine import Engine, Row
from dragoman.translation.guarantee import Guarantee
from dragoman.translation.guarding import Guarding
from dragoman.translation.request import TextRequest
from dragoman.translation.result import Translation, in_order


class WindowTranslation:
    """Blank lines stay blank, and what a request says that a translation must hold, it holds.

    What lacks such words is searched again under constraints, and what a guard finds wrong in other ways, after the
    window's other lines.
    """

    def __init__(self, engine: Engine, codec: Codec) -> None:
        self._engine, self._codec = engine, codec
        self._guarantee = Guarantee(codec, self.hypotheses)
        self._guarding = Guarding(engine, codec, self._guarantee)

    def translations(
        self, lines: Sequence[TextRequest], batch_size: int, first: int, work: Work | None
    ) -> Iterator[list[Translation]]:
        """The translations of each line, once all before it are there.

        first: the number of the first line; work: is told of each that is done. Raises what
        `Translator.translate_window` raises.
        """
        rows = self._codec.rows(lines, first)
        filled, error = self._short_enough([row for row in rows if row.text.strip()])
        for row in filled:
            for asked in (row, self._codec.forced(row)) if row.expected.constraints else (row,):
                if (reason := self._engine.refusal(asked)) is not None:
                    raise ConfigError(reason)
        blank = {row.number - first: [self._codec.blank(row)] for row in rows if not row.text.strip()}
        if work is not None and blank:
            work.tell(work.done + len(blank), work.said)
        found = self._found(filled, lines, batch_size, first, work)
        if any(request.guard is not None for _, request in lines):
            found = self._guarding.guarded(found, lines, batch_size, first)
        yield from in_order(len(rows) if error is None else error.place + 1 - first, blank, found)
        if error is not None:
            raise error

    def best(self, row: Row) -> Hypothesis:
        """The best hypothesis of one row."""
        return self.hypotheses(row)[0]

    def hypotheses(self, row: Row) -> list[Hypothesis]:
        """Those of one row, the best first."""
        ((_, found),) = self._engine.hypotheses([row], 1)
        return found

    def report_patched(self) -> None:
        """Warn of the translations that had to be put together from parts, since the last time."""
        self._guarantee.report()

    def _found(
        self, rows: Sequence[Row], lines: Sequence[TextRequest], batch_size: int, first: int, work: Work | None
    ) -> Iterator[tuple[int, list[Translation]]]:
        """The place of each row's line, and its translations.

        Rows whose model does not write by itself all that it should are searched under constraints after all others,
        together.
        """
        forced = []
        for place, hypotheses in self._engine.hypotheses(rows, batch_size) if rows else ():
            row = rows[place]
            translations = self._translations(row, lines[row.number - first], hypotheses)
            if not translations:
                forced.append(self._codec.forced(row))
                continue
            if work is not None:
                work.tell(work.done + 1, work.said)
            yield row.number - first, translations
        if forced:
            yield from self._found(forced, lines, batch_size, first, work)

    def _translations(self, row: Row, line: TextRequest, hypotheses: list[Hypothesis]) -> list[Translation]:
        text, request = line
        if request.control is None:
            return [self._codec.translation(each) for each in hypotheses]
        return self._guarantee.translations(row, text, request.control, hypotheses)

    def _short_enough(self, rows: list[Row]) -> tuple[list[Row], LineError | None]:
        """The rows before the first that the model has too few positions for, and what is wrong with that one."""
        for place, row in enumerate(rows):
            try:
                self._codec.check_length(row.number, row.source, row.prefix.ids)
            except LineError as error:
                return rows[:place], error
        return rows, None
