"""`WindowTranslation`: translates consecutive lines with an engine, in order."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ConfigError, LineError
from dragoman.base.log import warn
from dragoman.base.progress import Progress
from dragoman.engines.engine import Engine, Row
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.constraints.fallback import ConstraintFallback
from dragoman.inference.translation.guard.retry import GuardRetry
from dragoman.inference.translation.line_division import DividedLine, LineDivision
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.inference.translation.reranking.choice import Choice, apply_choice
from dragoman.inference.translation.result import Translation, restore_order
from dragoman.inference.translation.rounds import Search, Steps, search_in_rounds

_LONG_SOURCE = 1000
"""Number of source tokens above which a text is reported before it is translated."""


class WindowTranslation:
    """Translates lines so that each translation meets the requirements of its request. Blank lines stay blank.

    Lines of several sentences are translated sentence by sentence if their requests permit it.
    """

    def __init__(self, engine: Engine, codec: Codec, division: LineDivision | None) -> None:
        """division: divides the lines; None if they are no text."""
        self._engine, self._codec, self._division = engine, codec, division
        self._constraints = ConstraintFallback(codec)
        self._guard = GuardRetry(engine, codec, self._constraints)
        self._has_warned = False

    def translations(
        self,
        lines: Sequence[TextRequest],
        batch_size: int,
        first: int,
        progress: Progress | None,
        choice: Choice | None = None,
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line as soon as all preceding lines are complete.

        first: the number of the first line. progress: counts completed lines. choice: orders the hypotheses of each
        line or sentence. Raises the same errors as `Translator.translate_window`.
        """
        divided = [self._divide(*line) for line in until_cancelled(lines)]
        parts = [
            _Part(number, position, *text)
            for number, line in enumerate(divided)
            for position, text in enumerate(line.texts())
        ]
        results = self._part_translations(parts, batch_size, first, progress)
        if choice is not None:
            results = apply_choice(choice, [part.text for part in parts], results, batch_size)
        for line in divided:
            yield line.join(list(islice(results, len(line.texts()))))

    def _divide(self, text: str, request: Request) -> DividedLine:
        return DividedLine(text, request) if self._division is None else self._division.divide(text, request)

    def _part_translations(
        self, parts: Sequence["_Part"], batch_size: int, first: int, progress: Progress | None
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each part of the lines, in order. The other arguments are as in `translations`."""
        texts = [(part.text, part.request) for part in parts]
        rows = self._codec.encode_rows(texts, [first + part.line for part in parts])
        rows = [
            row._replace(part=part.position) if part.position else row for row, part in zip(rows, parts, strict=True)
        ]
        accepted, error = self._split_at_too_long(rows)
        for row in accepted:
            if row.text.strip():
                for variant in (row, self._codec.enforce_constraints(row)) if row.expected.constraints else (row,):
                    if (reason := self._engine.refusal(variant)) is not None:
                        raise ConfigError(reason)
        self._warn_of_long_text(accepted, parts)
        remaining = Counter(part.line for part in parts)

        def complete(part: _Part) -> None:
            remaining[part.line] -= 1
            if progress is not None and not remaining[part.line]:
                progress.update(progress.done + 1, progress.status)

        blank = {
            index: [self._codec.blank_translation(row)] for index, row in enumerate(accepted) if not row.text.strip()
        }
        for index in blank:
            complete(parts[index])
        steps = {
            index: self._steps(row, parts[index], complete) for index, row in enumerate(accepted) if index not in blank
        }
        yield from restore_order(len(accepted), blank, search_in_rounds(self._engine, steps, batch_size))
        if error is not None:
            raise error

    def _steps(self, row: Row, part: "_Part", complete: Callable[["_Part"], None]) -> Steps:
        answer = yield Search([row])
        assert answer is not None
        (hypotheses,) = answer
        request = part.request
        if request.control is None:
            translations = [self._codec.decode(each) for each in hypotheses]
        else:
            translations = yield from self._constraints.translations(row, part.text, request.control, hypotheses)
        if request.guard is not None:
            translations = yield from self._guard.translations(row.number, part.text, request, translations)
        complete(part)
        return translations

    def _warn_of_long_text(self, rows: Sequence[Row], parts: Sequence["_Part"]) -> None:
        """Warn of the first long text that is translated as a whole, before its search begins."""
        if self._has_warned or self._division is None:
            return
        for row, part in zip(rows, parts, strict=False):
            if len(row.source) > _LONG_SOURCE:
                remedy = "divide the line" if part.request.divide else "leave out --no-divide (divide=False in Python)"
                warn(
                    f"line {row.number} has {len(row.source):,} tokens and is translated as a whole, which may take "
                    f"minutes, because the time grows with the square of the length. To avoid this, {remedy}"
                )
                self._has_warned = True
                return

    def _split_at_too_long(self, rows: list[Row]) -> tuple[list[Row], LineError | None]:
        """Return the rows before the first that exceeds the model's maximum length, and the error for that row."""
        for index, row in enumerate(rows):
            if not row.text.strip():
                continue
            try:
                self._codec.check_length(row.number, row.source, row.prefix.ids)
            except LineError as error:
                return rows[:index], error
        return rows, None


class _Part(NamedTuple):
    """A line or a sentence to translate. line: the index of the line; position: the index of the sentence in it."""

    line: int
    position: int
    text: str
    request: Request
