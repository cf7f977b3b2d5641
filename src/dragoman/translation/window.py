"""`WindowTranslation`: translates consecutive lines with an engine, in order."""

from collections.abc import Iterator, Sequence

from dragoman.base.errors import ConfigError, LineError
from dragoman.base.progress import Progress
from dragoman.decode.search import Hypothesis
from dragoman.translation.codec import Codec
from dragoman.translation.constraints.fallback import ConstraintFallback
from dragoman.translation.engine import Engine, Row
from dragoman.translation.guard.retry import GuardRetry
from dragoman.translation.request import Request, TextRequest
from dragoman.translation.result import Translation, restore_order
from dragoman.translation.rounds import Search, Steps, search_in_rounds


class WindowTranslation:
    """Translates lines so that each translation meets the requirements of its request. Blank lines stay blank."""

    def __init__(self, engine: Engine, codec: Codec) -> None:
        self._engine, self._codec = engine, codec
        self._constraints = ConstraintFallback(codec)
        self._guard = GuardRetry(engine, codec, self._constraints)

    def translations(
        self, lines: Sequence[TextRequest], batch_size: int, first: int, progress: Progress | None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line as soon as all preceding lines are complete.

        first: the number of the first line. progress: counts completed lines. Raises the same errors as
        `Translator.translate_window`.
        """
        rows = self._codec.encode_rows(lines, first)
        accepted, error = self._split_at_too_long([row for row in rows if row.text.strip()])
        for row in accepted:
            for variant in (row, self._codec.enforce_constraints(row)) if row.expected.constraints else (row,):
                if (reason := self._engine.refusal(variant)) is not None:
                    raise ConfigError(reason)
        blank = {row.number - first: [self._codec.blank_translation(row)] for row in rows if not row.text.strip()}
        if progress is not None and blank:
            progress.update(progress.done + len(blank), progress.status)
        steps = {row.number - first: self._steps(row, *lines[row.number - first], progress) for row in accepted}
        results = search_in_rounds(self._engine, steps, batch_size)
        yield from restore_order(len(rows) if error is None else error.index + 1 - first, blank, results)
        if error is not None:
            raise error

    def best(self, row: Row) -> Hypothesis:
        """Return the best hypothesis of a row."""
        ((_, hypotheses),) = self._engine.hypotheses([row], 1)
        return hypotheses[0]

    def _steps(self, row: Row, text: str, request: Request, progress: Progress | None) -> Steps:
        answer = yield Search([row])
        assert answer is not None
        (hypotheses,) = answer
        if request.control is None:
            translations = [self._codec.decode(each) for each in hypotheses]
        else:
            translations = yield from self._constraints.translations(row, text, request.control, hypotheses)
        if request.guard is not None:
            translations = yield from self._guard.translations(row.number, text, request, translations)
        if progress is not None:
            progress.update(progress.done + 1, progress.status)
        return translations

    def _split_at_too_long(self, rows: list[Row]) -> tuple[list[Row], LineError | None]:
        """Return the rows before the first that exceeds the model's maximum length, and the error for that row."""
        for index, row in enumerate(rows):
            try:
                self._codec.check_length(row.number, row.source, row.prefix.ids)
            except LineError as error:
                return rows[:index], error
        return rows, None
