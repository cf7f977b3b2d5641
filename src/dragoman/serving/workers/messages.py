"""What a server and its worker processes say to one another, over sockets that only they have."""

from dataclasses import dataclass, replace

from dragoman.base.errors import DragomanError
from dragoman.serving.config import EngineConfig, ModelConfig
from dragoman.serving.queue.ticket import Found
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Nursed:
    """What a nursery is started for: a model, and what computes it in each worker."""

    model: ModelConfig
    engine: EngineConfig


@dataclass(frozen=True)
class Ready:
    """The nursery can fork; or a worker can translate. is_shared: whether workers have the nursery's weights."""

    is_shared: bool


def without_tokenizer(found: Found) -> Found:
    """To be sent: a tokenizer is a hundred times as large as what it belongs to, and the other end has it."""
    return [replace(each, tokenizer=None) for each in found]  # type: ignore[arg-type]


def with_tokenizer(found: Found, tokenizer: Tokenizer) -> Found:
    """As it was before it was sent."""
    return [replace(each, tokenizer=tokenizer) for each in found]


@dataclass(frozen=True)
class Done:
    """All lines of a batch were given."""


@dataclass(frozen=True)
class Failed:
    """What was wrong with a batch, or with the model."""

    error: Exception

    @classmethod
    def of(cls, error: Exception) -> "Failed":
        """Errors that are raised on purpose can be sent; another one is its message."""
        return cls(error if isinstance(error, DragomanError) else RuntimeError(f"{type(error).__name__}: {error}"))
