"""`ContinuousTranslation`: continuous batching of lines, which are submitted while others are translated."""

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
    """The engine that admits rows while it decodes others, if a translator's engine is or prefers one."""
    if isinstance(engine, PreferredEngine):
        engine = engine.preferred
    return engine if isinstance(engine, ContinuousEngine) else None


class ContinuousTranslation:
    """Translates plain lines as `WindowTranslation` does, and returns each as soon as it is completed. Close it.

    Plain lines are those that the engine does not refuse, that fit the model, and whose request has neither control nor
    guard: the others need `WindowTranslation`.
    """

    def __init__(self, engine: ContinuousEngine, codec: Codec, batch_size: int) -> None:
        """batch_size: the largest number of lines that are decoded together."""
        self._engine, self._codec, self._batch_size = engine, codec, batch_size
        self._session: Session | None = None
        self._numbers = count()
        self._lines: dict[int, TextRequest] = {}

    @property
    def queued(self) -> int:
        """Submitted lines that were not started at the last call of `completed`."""
        return 0 if self._session is None else self._session.queued

    @property
    def in_progress(self) -> int:
        """Submitted lines that `completed` has not returned."""
        return len(self._lines)

    def submit(self, lines: Sequence[TextRequest]) -> list[TextRequest]:
        """Queue the plain lines; returns the others, in order. Raises ResourceError."""
        rows = self._plain(lines)
        if self._session is None and rows:
            self._session = self._engine.session(list(rows.values()), self._batch_size)
        elif self._session is not None:
            requests = {place: self._engine.request(row) for place, row in rows.items()}
            requests = {place: request for place, request in requests.items() if self._session.accepts(request)}
            if requests:
                self._session.submit(list(requests.values()))
            rows = {place: rows[place] for place in requests}
        self._lines.update((next(self._numbers), lines[place]) for place in rows)
        return [line for place, line in enumerate(lines) if place not in rows]

    def completed(self, timeout: float) -> list[tuple[TextRequest, list[Translation]]]:
        """The lines completed since the last call, with their hypotheses.

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
        """The rows of plain lines, by index; those with more source tokens first, so that no long one ends last."""
        plain = [
            place
            for place, (text, request) in enumerate(lines)
            if text.strip() and request.control is None and request.guard is None
        ]
        rows: dict[int, Row] = {}
        with suppress(ConfigError, DataError):  # `WindowTranslation` will report which line is at fault
            for place, row in zip(plain, self._codec.rows([lines[each] for each in plain], first=1), strict=True):
                if self._codec.has_positions_for(row.source, row.prefix.ids) and self._engine.refusal(row) is None:
                    rows[place] = row
        return dict(sorted(rows.items(), key=lambda item: -len(item[1].source)))
