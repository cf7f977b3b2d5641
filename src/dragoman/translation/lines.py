"""Texts, each with the request for its translation."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, TypeVar

from dragoman.base.errors import ConfigError, DataError
from dragoman.translation.request import Request, Requests

Item = TypeVar("Item")
Line = tuple[str, Request]

_FREE = {"requests": "", "prefixes": ", blank where it is free"}


def check_batch_size(batch_size: int) -> None:
    """Raises ConfigError unless it is at least 1."""
    if batch_size < 1:
        raise ConfigError(f"the batch size must be at least 1 sentence, not {batch_size}")


def check_counts(texts: Sequence[str], others: Sequence[Any], name: str) -> None:
    """Raises DataError unless there are as many of the others, whose name is `name`, as texts."""
    if isinstance(texts, str) or isinstance(others, str):
        raise TypeError("texts and prefixes are lists of strings, not one string")
    if len(texts) != len(others):
        raise DataError(f"{len(texts)} texts and {len(others)} {name}: give each text one{_FREE[name]}")


def check_pairs(sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raise DataError unless there are as many targets as sources."""
    if len(sources) != len(targets):
        raise DataError(f"{len(sources)} sources and {len(targets)} targets: each source needs one target")


def with_requests(texts: Iterable[str], requests: Requests, name: str) -> Iterator[Line]:
    """Each text with its request; name: what they are called in the message where they are not as many."""
    if isinstance(requests, Request):
        yield from ((text, requests) for text in texts)
        return
    for count, (text, request) in enumerate(zip_longest(texts, requests)):
        if text is None or request is None:
            few, many = ("texts", name) if text is None else (name, "texts")
            raise DataError(f"{count} {few}, but more {many}: give each text one{_FREE[name]}")
        yield text, request


def chunks(items: Iterable[Item], size: int) -> Iterator[tuple[Item, ...]]:
    """Runs of `size` items, the last one perhaps shorter."""
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk
