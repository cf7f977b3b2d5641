"""`LineStream`: translates lines with an engine, window by window, and returns their translations in order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.base.errors import ConfigError, DragomanError, LineError
from dragoman.base.log import warn
from dragoman.base.progress import Progress
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Engine, Row
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.line_division import DividedLine, LineDivision
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import Request, TextRequest, check_batch_size
from dragoman.inference.translation.result import Choice, Translation
from dragoman.inference.translation.rounds.fallback import ConstraintFallback
from dragoman.inference.translation.rounds.retry import GuardRetry
from dragoman.inference.translation.rounds.rounds import Rounds, Steps
from dragoman.inference.translation.rounds.term_placement import AlignerOf
from dragoman.inference.translation.substitute import Substitute
from dragoman.inference.translation.training_texts import TrainingTexts

_LONG_SOURCE = 1000
"""Number of source tokens above which a text is reported before it is translated."""


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """How lines are translated, apart from their requests.

    batch_size: maximum number of texts computed together. first: the number of the first line, for messages and
    sampling. progress: counts completed lines. choice: orders the hypotheses of each line or sentence. warns: whether
    to warn of inputs in another language and, finally, of lines with problems.
    """

    batch_size: int = 64
    first: int = 1
    progress: Progress | None = None
    choice: Choice | None = None
    warns: bool = True

    def __post_init__(self) -> None:
        """Raise ConfigError for a batch size below 1."""
        check_batch_size(self.batch_size)


class LineStream:
    """Translates lines so that each translation meets the requirements of its request. Blank lines stay blank.

    Lines of several sentences are translated sentence by sentence if their requests permit it. All texts of a window
    are searched in one call of the engine; only texts whose requirements or guard reject the result are searched again
    (`Rounds`).
    """

    substitute: Substitute | None = None
    """Translates the lines that the engine does not support; None: they raise ConfigError."""

    def __init__(
        self,
        engine: Engine,
        codec: Codec,
        division: LineDivision | None,
        training_texts: TrainingTexts,
        aligner_of: AlignerOf,
    ) -> None:
        """division: divides the lines; None if they are no text. training_texts: inputs are compared with them.
        aligner_of: returns the aligner that places terms.
        """
        self._engine, self._codec, self._division, self._training_texts = engine, codec, division, training_texts
        self._constraints = ConstraintFallback(engine, codec, aligner_of)
        self._guard = GuardRetry(engine, codec, self._constraints)
        self._has_warned = False

    def translations(
        self, windows: Iterable[Sequence[TextRequest]], settings: StreamSettings
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line as soon as all preceding lines are complete.

        The lines of a window are read, and searched, together. Raises the same errors as `Translator.translate_window`.
        """
        warnings = LineWarnings(compares_lengths=not self._training_texts.are_whole)
        limit, first = self._engine.limits.target, settings.first
        for lines in windows:
            if settings.warns:
                self._training_texts.check_language([text for text, _ in lines])
            for number, translations in enumerate(self._window(lines, first, settings), start=first):
                text, request = lines[number - first]
                lengths = self._training_texts.lengths(request.tags)
                warnings.note_translation(number, text, translations[0], limit, lengths)
                yield translations
            first += len(lines)
        if settings.warns:
            warnings.report()

    def _window(
        self, lines: Sequence[TextRequest], first: int, settings: StreamSettings
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line. first: the number of the first line."""
        others = self._substituted(lines, first)
        divided = [
            DividedLine(*line) if number in others else self._divide(*line)
            for number, line in enumerate(until_cancelled(lines))
        ]
        window = Window(divided, settings)
        rows, error = self._encode(window.parts, first, others)
        for index, row in enumerate(rows):
            if not row.text.strip():
                window.complete(index, [self._codec.blank_translation(row)])
        yield from window.lines()
        rounds = Rounds(self._engine, settings.batch_size)
        searched = [
            index for index, row in enumerate(rows) if row.text.strip() and window.parts[index].line not in others
        ]
        found = self._engine.hypotheses([rows[index] for index in searched], settings.batch_size) if searched else ()
        try:
            for index, translations in self._substitutes(window, others, first, settings):
                window.complete(index, translations)
                yield from window.lines()
            for position, hypotheses in found:
                check_cancelled()
                index = searched[position]
                part = window.parts[index]
                if part.request.is_plain:
                    translations = [self._codec.decode(each) for each in hypotheses]
                elif (repaired := rounds.add(index, self._steps(rows[index], part, hypotheses))) is not None:
                    translations = repaired
                else:
                    continue
                window.complete(index, translations)
                yield from window.lines()
            for index, translations in rounds.run():
                window.complete(index, translations)
                yield from window.lines()
            if error is not None:
                raise error
        except DragomanError:
            yield from window.lines(is_end=True)
            raise
        yield from window.lines(is_end=True)
        window.check_complete()

    def _steps(self, row: Row, part: "Part", hypotheses: Sequence[Hypothesis]) -> Steps:
        """Return the steps that translate a part with requirements or a guard, from the hypotheses of its row."""
        request = part.request
        if request.control is None:
            translations = [self._codec.decode(each) for each in hypotheses]
        else:
            translations = yield from self._constraints.translations(row, part.text, request, hypotheses)
        if request.guard is not None:
            translations = yield from self._guard.translations(row.number, part.text, request, translations)
        return translations

    def _substituted(self, lines: Sequence[TextRequest], first: int) -> Set[int]:
        """Return the indices of the lines that the substitute translates."""
        if self.substitute is None:
            return frozenset()
        others = set()
        for number, (text, request) in enumerate(lines):
            if text.strip():
                (row,) = self._codec.encode_rows([(text, request)], [first + number])
                if (reason := self._engine.refusal(row)) is not None:
                    self.substitute.warn(reason)
                    others.add(number)
        return others

    def _substitutes(
        self, window: "Window", others: Set[int], first: int, settings: StreamSettings
    ) -> Iterator[tuple[int, list[Translation]]]:
        """Yield the index of each part that the substitute translates, and its translations."""
        if self.substitute is None or not others:
            return
        indices = [index for index, part in enumerate(window.parts) if part.line in others]
        lines = [(window.parts[index].text, window.parts[index].request) for index in indices]
        found = self.substitute.translations(lines, settings.batch_size, first + min(others))
        yield from zip(indices, found, strict=True)

    def _divide(self, text: str, request: Request) -> DividedLine:
        return DividedLine(text, request) if self._division is None else self._division.divide(text, request)

    def _encode(self, parts: Sequence["Part"], first: int, others: Set[int]) -> tuple[list[Row], LineError | None]:
        """Return the rows of the parts before the first that exceeds the model's maximum length, and its error.

        others: the indices of lines that another model translates. Raises ConfigError if the engine does not support
        another row.
        """
        rows, error = (
            self._codec.encode_rows(
                [(part.text, part.request) for part in parts], [first + part.line for part in parts]
            ),
            None,
        )
        rows = [
            row._replace(part=part.position) if part.position else row for row, part in zip(rows, parts, strict=True)
        ]
        for index, row in enumerate(rows):
            if not row.text.strip():
                continue
            try:
                self._codec.check_length(row.number, row.source, row.prefix.ids)
            except LineError as exceeded:
                rows, error = rows[:index], exceeded
                break
        for row, part in zip(rows, parts, strict=False):
            if row.text.strip() and part.line not in others:
                self._check_supported(row)
                self._warn_of_long_text(row, part.request)
        return rows, error

    def _check_supported(self, row: Row) -> None:
        """Raise ConfigError if the engine does not support a row."""
        if (reason := self._engine.refusal(row)) is not None:
            raise ConfigError(reason)

    def _warn_of_long_text(self, row: Row, request: Request) -> None:
        """Warn of the first long text that is translated as a whole, before its search begins."""
        if self._has_warned or self._division is None or len(row.source) <= _LONG_SOURCE:
            return
        remedy = "divide the line" if request.divide else "leave out --no-divide (divide=False in Python)"
        warn(
            f"line {row.number} has {len(row.source):,} tokens and is translated as a whole, which may take minutes, "
            f"because the time grows with the square of the length. To avoid this, {remedy}"
        )
        self._has_warned = True


class Part(NamedTuple):
    """A line or a sentence to translate. line: the index of the line; position: the index of the sentence in it."""

    line: int
    position: int
    text: str
    request: Request


class Window:
    """Lines that are translated together, which restores their order. parts: the parts of all lines, in order."""

    def __init__(self, lines: Sequence[DividedLine], settings: StreamSettings) -> None:
        self._lines, self._settings = lines, settings
        self.parts = [
            Part(number, position, *text)
            for number, line in enumerate(lines)
            for position, text in enumerate(line.texts())
        ]
        self._counts = Counter(part.line for part in self.parts)
        self._unfinished = Counter(self._counts)
        """Number of parts of each line that are not complete."""
        self._completed: dict[int, list[Translation]] = {}
        """The translations of completed parts that are not in `_ordered`, by the index of the part."""
        self._ordered: list[list[Translation]] = []
        """The translations of the next parts in order, after the choice among their hypotheses."""
        self._next_part = self._next_line = 0

    def complete(self, index: int, translations: list[Translation]) -> None:
        """Set the translations of a part."""
        self._completed[index] = translations
        line, progress = self.parts[index].line, self._settings.progress
        self._unfinished[line] -= 1
        if progress is not None and not self._unfinished[line]:
            progress.update(progress.done + 1, progress.status)

    def lines(self, is_end: bool = False) -> Iterator[list[Translation]]:
        """Yield the translations of the next lines until one with an incomplete part.

        is_end: whether no further part will be completed. Until then, a choice waits for a batch of parts.
        """
        self._order(is_end)
        while self._next_line < len(self._lines) and len(self._ordered) >= self._counts[self._next_line]:
            count = self._counts[self._next_line]
            yield self._lines[self._next_line].join(self._ordered[:count])
            del self._ordered[:count]
            self._next_line += 1

    def check_complete(self) -> None:
        """Raise RuntimeError if the engine has not completed all parts."""
        if self._next_part < len(self.parts):
            raise RuntimeError(f"the engine returned nothing for part {self._next_part} of {len(self.parts)}")

    def _order(self, is_end: bool) -> None:
        """Move the translations of the next parts to `_ordered`."""
        choice, start = self._settings.choice, self._next_part
        end = start
        while end in self._completed:
            end += 1
        size = 1 if choice is None else self._settings.batch_size
        for first in range(start, end, size):
            indices = range(first, min(first + size, end))
            if len(indices) < size and not is_end:
                break
            found = [self._completed.pop(index) for index in indices]
            if choice is not None:
                found = choice.choose([self.parts[index].text for index in indices], found)
            self._ordered += found
            self._next_part += len(indices)
