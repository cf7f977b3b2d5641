"""`ContinuousTranslation`: continuous batching, in which lines are submitted while others are translated."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from dragoman.base.errors import ConfigError, DataError
from dragoman.translation.codec import Codec
from dragoman.translation.engine import ContinuousEngine, Engine, Row, Session
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.request import TextRequest
from dragoman.translation.result import Translation


def continuous_engine(engine: Engine) -> ContinuousEngine | None:
    """Return the engine, or the one that it prefers, if it supports continuous batching; else None."""
    if isinstance(engine, PreferredEngine):
        engine = engine.preferred
    return engine if isinstance(engine, ContinuousEngine) else None


class ContinuousTranslation:
    """Translates plain lines as `WindowTranslation` does, and returns each as soon as it is completed. Must be closed.

    Plain lines fit the model, are not refused by the engine, and have a request without control and guard. Others need
    `WindowTranslation`.
    """

    def __init__(self, engine: ContinuousEngine, codec: Codec, batch_size: int) -> None:
        """batch_size: maximum number of lines decoded together."""
        self._engine, self._codec, self._batch_size = engine, codec, batch_size
        self._session: Session | None = None
        self._numbers = count()
        self._lines: dict[int, TextRequest] = {}

    @property
    def queued(self) -> int:
        """The number of submitted lines that were not started at the last call of `completed`."""
        return 0 if self._session is None else self._session.queued

    @property
    def in_progress(self) -> int:
        """The number of submitted lines that `completed` has not returned."""
        return len(self._lines)

    def submit(self, lines: Sequence[TextRequest]) -> list[TextRequest]:
        """Queue the plain lines, and return the others, in order. Raises ResourceError."""
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

    def completed(self, timeout: float) -> list[tuple[TextRequest, list[Translation]]]:
        """Return the lines completed since the last call, with their hypotheses.

        timeout: seconds to wait for at least one. Raises ModelError and ResourceError as `Session.completed`.
        """
        if self._session is None:
            return []
        return [
            (self._lines.pop(number), [self._codec.translation(each) for each in hypotheses])
            for number, hypotheses in self._session.completed(timeout)
        ]

    def close(self) -> None:
        """Drop all lines that are not completed."""
        if self._session is not None:
            self._session.close()

    def _plain(self, lines: Sequence[TextRequest]) -> dict[int, Row]:
        """Return the rows of plain lines by index, the longest source first, so that no long one ends last."""
        plain = [
            index
            for index, (text, request) in enumerate(lines)
            if text.strip() and request.control is None and request.guard is None
        ]
        rows: dict[int, Row] = {}
        with suppress(ConfigError, DataError):  # `WindowTranslation` reports the faulty line
            for index, row in zip(plain, self._codec.rows([lines[each] for each in plain], first=1), strict=True):
                if self._codec.has_positions_for(row.source, row.prefix.ids) and self._engine.refusal(row) is None:
                    rows[index] = row
        return dict(sorted(rows.items(), key=lambda item: -len(item[1].source)))
