"""Word alignments as links between positions, and the Pharaoh format."""

from collections.abc import Iterable

Alignment = tuple[tuple[int, int], ...]
"""Sorted links (i, j): word i of the source and word j of the target, from 0. Words are separated by whitespace."""


def sorted_alignment(links: Iterable[tuple[int, int]]) -> Alignment:
    """Return the distinct links in order."""
    return tuple(sorted(set(links)))


def reversed_alignment(alignment: Alignment) -> Alignment:
    """Return the alignment of the target with the source."""
    return sorted_alignment((target, source) for source, target in alignment)


def format_pharaoh(alignment: Alignment) -> str:
    """Return an alignment in the Pharaoh format, such as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
