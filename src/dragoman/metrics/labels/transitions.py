"""Which tags may follow each other in a scheme, such as I-X only after B-X or I-X in IOB2."""

from collections.abc import Sequence
from itertools import pairwise

from dragoman.metrics.labels.spans import Scheme, parse_tag

OUTSIDE = "O"


def may_follow(tag: str, previous: str, scheme: Scheme) -> bool:
    """Return whether a tag may follow another one. Before the first and after the last word of a sentence is O.

    Raises DataError if a tag does not belong to the scheme.
    """
    (before, old), (prefix, new) = parse_tag(previous, scheme), parse_tag(tag, scheme)
    if scheme in ("IOBES", "BILOU"):
        inside = prefix in "IE"
        return inside and old == new if before in "BI" else not inside
    dependent = "I" if scheme == "IOB2" else "B"
    return prefix != dependent or (before != OUTSIDE and old == new)


def find_forbidden(tags: Sequence[str], scheme: Scheme) -> tuple[str, str] | None:
    """Return the first two successive tags of a sentence that the scheme does not allow; None if all are allowed.

    O stands for the positions before the first and after the last word.
    """
    return next(
        (
            (before, after)
            for before, after in pairwise([OUTSIDE, *tags, OUTSIDE])
            if not may_follow(after, before, scheme)
        ),
        None,
    )
