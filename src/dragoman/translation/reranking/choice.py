"""`Choice`: which of a text's hypotheses is taken, after the search or the sampler has found them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dragoman.base.errors import DragomanError
from dragoman.translation.result import Translation


class Choice(Protocol):
    """An order of hypotheses by what single steps of a search do not see."""

    def choose(self, sources: Sequence[str], found: Sequence[list[Translation]]) -> list[list[Translation]]:
        """The hypotheses of each text, the best first, with the score that orders them; none is left out.

        Equal ones stay in the order that they are given in. What a text gets does not depend on the others.
        """
        ...

    def settings(self) -> dict[str, Any]:
        """All that the order depends on, as values that JSON keeps."""
        ...


def ordered(hypotheses: Sequence[Translation], scores: Sequence[float]) -> list[Translation]:
    """By falling score, which they get."""
    order = sorted(range(len(hypotheses)), key=lambda place: -scores[place])
    return [replace(hypotheses[place], score=float(scores[place])) for place in order]


def chosen(
    choice: Choice, sources: Sequence[str], found: Iterable[list[Translation]], size: int
) -> Iterator[list[Translation]]:
    """What `choice` makes of each text's hypotheses, `size` texts at a time, in order.

    Where `found` raises a DragomanError, that comes after all that was found before it.
    """
    waiting: list[list[Translation]] = []
    done = 0
    try:
        for hypotheses in found:
            waiting.append(hypotheses)
            if len(waiting) == size:
                yield from choice.choose(sources[done : done + size], waiting)
                done, waiting = done + size, []
    except DragomanError:
        yield from choice.choose(sources[done : done + len(waiting)], waiting)
        raise
    yield from choice.choose(sources[done : done + len(waiting)], waiting)
