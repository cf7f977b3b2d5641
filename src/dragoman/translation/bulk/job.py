"""`Job`: all that a machine has to know to translate as the others do."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.checkpoint.folder import fingerprint_of
from dragoman.translation.bulk.shard import Shard
from dragoman.translation.files.faulty_lines import OnError
from dragoman.translation.files.line_translation import LineTranslation
from dragoman.translation.request import Request
from dragoman.translation.translator import WINDOW_BATCHES, Translator


@dataclass(frozen=True)
class Job:
    """models: folders, by absolute paths; threads: of the translator of one actor; shards: those that are not done.

    settings: what the translations depend on, where the command runs.
    """

    models: tuple[Path, ...]
    shards: tuple[Shard, ...]
    request: Request
    batch_size: int
    engine: str
    precision: str | None
    threads: int
    on_error: OnError
    settings: Mapping[str, Any]

    @property
    def window(self) -> int:
        """Records that an actor translates in one go."""
        return WINDOW_BATCHES * self.batch_size

    def load(self) -> Translator:
        """The model, on this machine. Raises what `Translator.load` does."""
        return Translator.load(self.models, "cpu", self.engine, self.precision, self.threads)

    def found(self, translator: Translator) -> dict[str, Any]:
        """What the translations depend on, on this machine, as values that JSON keeps."""
        translation = LineTranslation(translator, self.request, None, None, self.batch_size, on_error=self.on_error)
        return {**translation.settings(), "model": fingerprint_of(self.models), "precision": self.precision}


def with_absolute_paths(request: Request) -> Request:
    """The same, with the files of its search named so that another machine finds them."""
    changes: dict[str, Any] = {}
    for field, name in (("unknown", "path"), ("fusion", "language_model")):
        part = getattr(request.decoding, field, None)
        path = getattr(part, name, None)
        if part is not None and path is not None:
            changes[field] = part.model_copy(update={name: Path(path).absolute()})
    if not changes:
        return request
    return replace(request, decoding=request.decoding.model_copy(update=changes))  # type: ignore[union-attr]
