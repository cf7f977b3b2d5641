"""`ContinuousTranslation`: lines that are given and found one by one, while others are under way."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import count

from dragoman.base.errors import ConfigError, DataError
from dragoman.translation.codec import Codec
from dragoman.translation.engine import ContinuousEngine, Engine, OpenBatch, Row
from dragoman.translation.engines.preferred import PreferredEngine
from dragoman.translation.lines import Line
from dragoman.translation.result import Translation


def continuous_engine(engine: Engine) -> ContinuousEngine | None:
    """Of a translator's engines the one that takes in rows while it computes others, if there is one."""
    if isinstance(engine, PreferredEngine):
        engine = engine.preferred
    return engine if isinstance(engine, ContinuousEngine) else None


class ContinuousTranslation:
    """What it finds is what `WindowTranslation` finds. It takes plain lines only: the rest is for a window.

    Plain are lines that the engine can search, that fit the model, and of whose translations no more is asked than that
    they are found: nothing to hold, no guard.
    """

    def __init__(self, engine: ContinuousEngine, codec: Codec, batch_size: int) -> None:
        """batch_size: lines that are computed together."""
        self._engine, self._codec, self._batch_size = engine, codec, batch_size
        self._batch: OpenBatch | None = None
        self._numbers = count()
        self._lines: dict[int, Line] = {}

    @property
    def waiting(self) -> int:
        """Lines that were given, and not begun with when it was last asked what is found."""
        return 0 if self._batch is None else self._batch.waiting

    @property
    def under_way(self) -> int:
        """Lines that were given, and not found."""
        return len(self._lines)

    def put(self, lines: Sequence[Line]) -> list[Line]:
        """Those that it does not take, in order. Raises ResourceError."""
        rows = self._plain(lines)
        if self._batch is None and rows:
            self._batch = self._engine.open_batch([rows[place] for place in rows], self._batch_size)
        elif self._batch is not None:
            rows = {place: row for place, row in rows.items() if self._batch.has_room_for(row)}
            if rows:
                self._batch.put([rows[place] for place in rows])
        self._lines.update((next(self._numbers), lines[place]) for place in rows)
        return [line for place, line in enumerate(lines) if place not in rows]

    def found(self, seconds: float) -> list[tuple[Line, list[Translation]]]:
        """Lines that are done since the last time, and their hypotheses; waits so long for one.

        Raises what `OpenBatch.found` raises.
        """
        if self._batch is None:
            return []
        return [
            (self._lines.pop(number), [self._codec.translation(each) for each in hypotheses])
            for number, hypotheses in self._batch.found(seconds)
        ]

    def close(self) -> None:
        """What is not done is given up."""
        if self._batch is not None:
            self._batch.close()

    def _plain(self, lines: Sequence[Line]) -> dict[int, Row]:
        """By place, those with more source tokens first, so that no long one is left over at the end."""
        plain = [
            place
            for place, (text, request) in enumerate(lines)
            if text.strip() and request.control is None and request.guard is None
        ]
        rows: dict[int, Row] = {}
        with suppress(ConfigError, DataError):  # whose line it is, the window's translation tells
            for place, row in zip(plain, self._codec.rows([lines[each] for each in plain], first=1), strict=True):
                if self._codec.has_positions_for(row.source, row.prefix.ids) and self._engine.refusal(row) is None:
                    rows[place] = row
        return dict(sorted(rows.items(), key=lambda item: -len(item[1].source)))
