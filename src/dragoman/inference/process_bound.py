"""`ProcessBound`: the base class of loaded models."""

from typing import NoReturn, Self

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.card.shown_model import ShownModel


class ProcessBound(ShownModel):
    """A loaded model with an engine, whose memory and threads belong to one process."""

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce__(self) -> NoReturn:
        """Raise ConfigError, because pickling the engine would fail with an error that does not say what to do."""
        raise ConfigError(
            "a loaded model cannot be pickled or sent to another process: send the path of its folder, and call "
            "dragoman.load in that process. Threads can share a model"
        )
