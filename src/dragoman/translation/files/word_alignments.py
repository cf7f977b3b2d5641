"""`WordAlignments`: which words of a line its translation's come from, written beside the translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.base.companion import Companion
from dragoman.translation.alignment import Aligner, align_each, pharaoh
from dragoman.translation.line_warnings import LineWarnings


@dataclass(frozen=True)
class WordAlignments:
    """Writes alignments to a companion of the file of translations."""

    aligner: Aligner
    batch_size: int

    def settings(self) -> dict[str, Any]:
        """Return everything that the file depends on, as JSON values."""
        return {"written": True, **self.aligner.settings()}

    def check(self) -> None:
        """Raise ConfigError if nothing can be aligned, before a line is read."""
        self.aligner.align(["a"], ["a"], 1)

    def after(
        self,
        texts: Iterable[bytes],
        sources: Sequence[str],
        targets: Sequence[str],
        first: int,
        noted: LineWarnings,
        companion: Companion,
    ) -> Iterator[bytes]:
        """Gives `texts`, then writes a line `0-0 1-2` for each source and its target, which are complete by then.

        A pair that is longer than the model can read has none, which is noted. first: the number of the first line.
        """
        yield from texts
        found = align_each(self.aligner, sources, targets, self.batch_size)
        for place, alignment in enumerate(found):
            if alignment is None:
                noted.note("are too long to be aligned: their alignments are blank", first + place)
        companion.write("".join(f"{pharaoh(each or ())}\n" for each in found))
