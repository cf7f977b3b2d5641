"""`Substitute`: a model that translates the lines that the best system of a model folder does not support."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from dragoman.base.log import warn
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.inference.translation.result import Translation


class Substitute:
    """Translates lines with another model, which is loaded when the first line needs it."""

    def __init__(self, own: SearchConfig, load: Callable[[], Any]) -> None:
        """own: search settings of the model that is substituted. load: returns the other model, a `Translator`."""
        self._own, self._load, self._has_warned = own, load, False

    @cached_property
    def _other(self) -> Any:
        other = self._load()
        other.warn_unfinished = False  # the caller warns of all lines
        return other

    def warn(self, reason: str) -> None:
        """Warn of the first line that is not supported, because of `reason`."""
        if not self._has_warned:
            warn(f"{reason.partition(':')[0]}: the neural model of the folder translates the lines that need it")
            self._has_warned = True

    def translations(self, lines: Sequence[TextRequest], batch_size: int, first: int) -> Iterator[list[Translation]]:
        """Yield the translations of each line by the other model. batch_size, first: as in `StreamSettings`."""
        texts, requests = [text for text, _ in lines], [self._converted(request) for _, request in lines]
        yield from self._other.translate_window(texts, requests, batch_size, first=first)

    def _converted(self, request: Request) -> Request:
        """Return a request with the search settings of the other model, apart from those that the user changed."""
        if isinstance(request.decoding, Sampling):
            return request
        chosen = {name: getattr(request.decoding, name) for name in type(self._own).model_fields}
        changed = {name: value for name, value in chosen.items() if value != getattr(self._own, name)}
        return replace(request, decoding=self._other.search_config().model_copy(update=changed))
