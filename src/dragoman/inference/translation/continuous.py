"""`ContinuousTranslation`: continuous batching, in which lines are submitted while others are translated."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import count

from dragoman.base.errors import ConfigError, DataError
from dragoman.engines.engine import ContinuousEngine, Row, Session
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.line_division import LineDivision
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.result import Translation


class ContinuousTranslation:
    """Translates plain lines like `LineStream`, but returns each as soon as it is completed. Must be closed.

    A plain line is within the model's maximum length, is supported by the engine, and has a request without control or
    guard, and is neither in capital letters nor translated sentence by sentence. All other lines need `LineStream`.
    """

    def __init__(self, engine: ContinuousEngine, codec: Codec, batch_size: int, division: LineDivision | None) -> None:
        """batch_size: maximum number of lines decoded together. division: divides lines; None if they are no text."""
        self._engine, self._codec, self._batch_size, self._division = engine, codec, batch_size, division
        self._session: Session | None = None
        self._numbers = count()
        self._lines: dict[int, TextRequest] = {}

    @property
    def queued(self) -> int:
        """Number of submitted lines whose decoding had not started at the last call of `completed`."""
        return 0 if self._session is None else self._session.queued

    @property
    def in_progress(self) -> int:
        """Number of submitted lines that `completed` has not yet returned."""
        return len(self._lines)

    def submit(self, lines: Sequence[TextRequest]) -> list[TextRequest]:
        """Queue the plain lines, and return the other lines, in order. Raises ResourceError if memory is exhausted."""
        rows = self._plain(lines)
        if self._session is None and rows:
            self._session = self._engine.session(list(rows.values()), self._batch_size)
        elif self._session is not None:
            requests = {index: self._engine.request(row) for index, row in rows.items()}
            requests = {index: request for index, request in requests.items() if self._session.accepts(request)}
            if requests:
                self._session.submit(list(requests.values()))
            rows = {index: rows[index] for index in requests}
        self._lines.update((next(self._numbers), lines[index]) for index in rows)
        return [line for index, line in enumerate(lines) if index not in rows]

    def cancel(self, lines: Collection[TextRequest]) -> None:
        """Complete submitted lines without hypotheses as soon as possible."""
        if self._session is not None and lines:
            for number, line in self._lines.items():
                if line in lines:
                    self._session.cancel(number)

    def completed(self, timeout: float) -> list[tuple[TextRequest, list[Translation]]]:
        """Return the lines completed since the last call, with their hypotheses; [] if a line was cancelled.

        timeout: seconds to wait for at least one line. Raises ModelError and ResourceError like `Session.completed`.
        """
        if self._session is None:
            return []
        return [
            (self._lines.pop(number), [self._codec.decode(each) for each in hypotheses])
            for number, hypotheses in self._session.completed(timeout)
        ]

    def close(self) -> None:
        """Discard all lines that are not completed."""
        if self._session is not None:
            self._session.close()

    def _plain(self, lines: Sequence[TextRequest]) -> dict[int, Row]:
        """Return the rows of plain lines by index, the longest sources first, so that no long line is left for last."""
        plain = [
            index
            for index, (text, request) in enumerate(lines)
            if text.strip()
            and request.is_plain
            and (self._division is None or self._division.divide(text, request).is_plain)
        ]
        rows: dict[int, Row] = {}
        with suppress(ConfigError, DataError):  # `LineStream` reports the faulty line
            for index, row in zip(
                plain, self._codec.encode_rows([lines[each] for each in plain], [1] * len(plain)), strict=True
            ):
                if self._codec.has_positions_for(row.source, row.prefix.ids) and self._engine.refusal(row) is None:
                    rows[index] = row
        return dict(sorted(rows.items(), key=lambda item: -len(item[1].source)))
