"""`Directions`: from which language into which a server translates, and by which models."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dragoman.serving.directions.served_model import ServedModel
from dragoman.serving.errors import Refusal


class Step(NamedTuple):
    """A model that is asked for one language."""

    model: ServedModel
    target: str


Route = tuple[Step, ...]
"""One model, or one into a pivot and one out of it."""


class Directions:
    """Of several models for a direction the first serves it."""

    def __init__(self, models: Sequence[ServedModel], pivots: Iterable[str]) -> None:
        self.models = models
        self._routes: dict[tuple[str, str], Route] = {}
        for model in models:
            for target in model.targets:
                self._routes.setdefault((model.source, target), (Step(model, target),))
        direct = dict(self._routes)
        for pivot in pivots:
            for (source, middle), first in direct.items():
                for (other, target), second in direct.items():
                    if middle == other == pivot and source != target:
                        self._routes.setdefault((source, target), (*first, *second))

    @property
    def sources(self) -> tuple[str, ...]:
        """The languages that can be translated."""
        return tuple(dict.fromkeys(source for source, _ in self._routes))

    @property
    def all_targets(self) -> tuple[str, ...]:
        """The languages that some can be translated into."""
        return tuple(dict.fromkeys(target for _, target in self._routes))

    def targets(self, source: str) -> tuple[str, ...]:
        """What a language can be translated into."""
        return tuple(target for other, target in self._routes if other == source)

    def route(self, source: str, target: str) -> Route:
        """Raises Refusal for a direction that there is not."""
        if (found := self._routes.get((source, target))) is not None:
            return found
        if source not in self.sources:
            raise Refusal(f"{source} is not supported: this server translates from {_named(self.sources)}")
        raise Refusal(
            f"{target} is not supported: this server translates from {source} into {_named(self.targets(source))}"
        )


def _named(languages: Iterable[str]) -> str:
    return ", ".join(languages)
