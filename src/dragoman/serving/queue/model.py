"""`Model`: what translates the lines of a queue."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dragoman.serving.queue.ticket import Found
from dragoman.translation.continuous import ContinuousTranslation
from dragoman.translation.lines import Line

Translate = Callable[[Sequence[Line]], Iterator[Found]]
"""The hypotheses of each line, in order. What is wrong with one line may raise, and costs the batch a second try."""


def _never() -> None:
    """No batch takes in lines while it is computed."""


class Model(NamedTuple):
    """continuous: opens a batch that takes in lines while it is computed; gives None where there is no such thing."""

    translate: Translate
    continuous: Callable[[], ContinuousTranslation | None] = _never
