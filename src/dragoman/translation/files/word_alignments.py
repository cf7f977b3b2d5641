"""`WordAlignments`: which words of a line its translation's come from, written beside the translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.base.companion import Companion
from dragoman.base.errors import LineError
from dragoman.translation.alignment import Alignment, AttentionChoice, pharaoh
from dragoman.translation.files.noted_lines import NotedLines
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class WordAlignments:
    """How they are found. to, tags: as `Translator.request` takes them; attention: which tells them."""

    translator: Translator
    attention: AttentionChoice
    batch_size: int
    to: str | None = None
    tags: Sequence[str] = ()

    def settings(self) -> dict[str, Any]:
        """What is written depends on these, as values that JSON keeps."""
        return {"written": True, **asdict(self.attention)}

    def check(self) -> None:
        """Raises ConfigError where the model or its engine cannot tell alignments, before a line is read."""
        self._found(["a"], ["a"])

    def after(
        self,
        texts: Iterable[bytes],
        sources: Sequence[str],
        targets: Sequence[str],
        first: int,
        noted: NotedLines,
        companion: Companion,
    ) -> Iterator[bytes]:
        """Gives `texts`, then writes a line `0-0 1-2` for each source and its target, which are complete by then.

        A pair that is longer than the model can read has none, which is noted. first: the number of the first line.
        """
        yield from texts
        found = self.of(sources, targets)
        for place, alignment in enumerate(found):
            if alignment is None:
                noted.note("are too long to be aligned: their alignments are blank", first + place)
        companion.write("".join(f"{pharaoh(each or ())}\n" for each in found))

    def of(self, sources: Sequence[str], targets: Sequence[str]) -> list[Alignment | None]:
        """Of each pair, None where it is longer than the model can read. Raises ConfigError as `check`."""
        found: list[Alignment | None] = [None] * len(sources)
        places = list(range(len(sources)))
        while places:
            try:
                aligned = self._found([sources[place] for place in places], [targets[place] for place in places])
            except LineError as error:
                del places[error.place]
                continue
            for place, each in zip(places, aligned, strict=True):
                found[place] = each
            break
        return found

    def _found(self, sources: Sequence[str], targets: Sequence[str]) -> list[Alignment]:
        return self.translator.align(sources, targets, self.attention, self.batch_size, self.to, self.tags)
