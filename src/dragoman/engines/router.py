"""`Router`: passes each row to a fast engine if it supports the row, and everything else to the reference engine.

`continuous_engine`, `concurrent_engine` and `visible_engine` return the engine of a translator, or one of those that
its router has, for another use.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.base.log import warn
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import AttentionEngine, ContinuousEngine, CopyableEngine, Engine, Pair, Row
from dragoman.engines.torch.engine import TorchEngine
from dragoman.models.attention_weights import AttentionChoice, AttentionMap
from dragoman.models.interface import LengthLimits


class Router:
    """Uses `preferred` for the rows that it supports, and `reference` for other rows, scores and attention.

    If `preferred` was requested by name, each reason why it does not support a row is logged once, as a warning.
    """

    def __init__(self, preferred: Engine, reference: AttentionEngine, is_requested: bool = True) -> None:
        """preferred, reference: two engines of the same model. is_requested: whether the user named `preferred`."""
        self.preferred, self.reference, self._is_requested = preferred, reference, is_requested
        self._warned: set[str] = set()

    @property
    def precision(self) -> str:
        """See `Engine.precision`."""
        return self.preferred.precision

    @property
    def limits(self) -> LengthLimits:
        """The limits of the reference engine, which are at least as large as those of the preferred engine."""
        return self.reference.limits

    def refusal(self, row: Row) -> str | None:
        """Return the reference engine's reason if neither engine supports the row; otherwise None."""
        return None if self.preferred.refusal(row) is None else self.reference.refusal(row)

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        """See `Engine.hypotheses`."""
        assigned: dict[Engine, list[int]] = {}
        for number, row in enumerate(rows):
            reason = self.preferred.refusal(row)
            assigned.setdefault(self.preferred if reason is None else self.reference, []).append(number)
            if reason is not None and self._is_requested and reason not in self._warned:
                self._warned.add(reason)
                warn(reason)
        for engine, indices in assigned.items():
            for position, hypotheses in engine.hypotheses([rows[number] for number in indices], batch_size):
                yield indices[position], hypotheses

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        """See `Engine.scores`; computed by the reference engine."""
        return self.reference.scores(pairs, batch_size)

    def attention(self, source: Sequence[int], target: Sequence[int]) -> list[AttentionMap]:
        """See `AttentionEngine.attention`; computed by the reference engine."""
        return self.reference.attention(source, target)

    def source_attention(self, pairs: Sequence[Pair], batch_size: int, choice: AttentionChoice) -> list[np.ndarray]:
        """See `AttentionEngine.source_attention`; computed by the reference engine."""
        return self.reference.source_attention(pairs, batch_size, choice)

    def without_weights(self) -> list[str]:
        """See `AttentionEngine.without_weights`; computed by the reference engine."""
        return self.reference.without_weights()


def continuous_engine(engine: Engine) -> ContinuousEngine | None:
    """Return the engine, or the engine that a router prefers, if it supports continuous batching; otherwise None."""
    preferred = engine.preferred if isinstance(engine, Router) else engine
    return preferred if isinstance(preferred, ContinuousEngine) else None


def concurrent_engine(engine: Engine) -> Engine | None:
    """Return an engine of the same model that can translate in another thread at the same time, or None.

    It is a copy with one thread or, if the engine cannot be copied, PyTorch's engine on the CPU.
    """
    preferred = engine.preferred if isinstance(engine, Router) else engine
    if isinstance(preferred, CopyableEngine):
        copied = preferred.copy(threads=1)
        return Router(copied, engine.reference, is_requested=False) if isinstance(engine, Router) else copied
    reference = engine.reference if isinstance(engine, Router) else engine
    return reference if isinstance(reference, TorchEngine) and reference.device.type == "cpu" else None


def visible_engine(engine: Engine) -> TorchEngine:
    """Return the engine that computes with PyTorch, whose computation is visible.

    Raises ConfigError if an engine has no such engine beside it.
    """
    visible = engine.reference if isinstance(engine, Router) else engine
    if not isinstance(visible, TorchEngine):
        raise ConfigError(
            "the computation of this engine is not visible: load a model folder with --engine torch or auto; exported "
            "and statistical models cannot be inspected"
        )
    return visible
