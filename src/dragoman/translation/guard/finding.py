"""`Finding`: what is wrong with a translation, as far as its text and its source's show it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["repetition", "empty", "copy", "script", "numbers"]

TOLD: dict[Kind, str] = {
    "repetition": "repeated a phrase",
    "empty": "were empty",
    "copy": "were their source again",
    "script": "were in another script",
    "numbers": "had other numbers than their source",
}
"""What a summary says of translations, by the kind of what was found."""


class Finding(NamedTuple):
    """kind: which detector's; what: the phrase, the letters or the numbers that it is about."""

    kind: Kind
    what: str


@dataclass(frozen=True)
class Guarded:
    """What the guard had to do with a text.

    found: in the translation that the search thought best; left: in the one that is given; search: which of the other
    searches found that one, by its name in docs/guard.md, empty where it is the first one's.
    """

    found: tuple[Finding, ...]
    left: tuple[Finding, ...]
    search: str = ""

    def outcomes(self) -> dict[str, bool]:
        """What a summary says of the text, of each kind once, and whether it was mended."""
        left = {finding.kind for finding in self.left}
        kinds = dict.fromkeys(finding.kind for finding in (*self.found, *self.left))
        return {TOLD[kind]: kind not in left for kind in kinds}


def together(parts: Iterable[Guarded | None]) -> Guarded | None:
    """Of a text that was translated in parts; None where nothing was found in any."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    found = tuple(finding for part in some for finding in part.found)
    left = tuple(finding for part in some for finding in part.left)
    return Guarded(found, left, ", ".join(dict.fromkeys(part.search for part in some if part.search)))
