"""Tokenising the cleaned pairs of a block."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.preparation.blocks import block_file, read_block, split_texts, write_block
from dragoman.data.preparation.cleaning import PairRules
from dragoman.data.preparation.marking import Marking
from dragoman.data.preparation.report import MARKED
from dragoman.data.preparation.tokenised import Rows
from dragoman.data.sentences import Sentences
from dragoman.data.shards import id_types
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.vectors import VectorError

AT_ONCE = 2048
"""Pairs that are tokenised together."""

SIDES = PairRules.sides


@dataclass(frozen=True)
class TokenisePairs:
    """Tokenises the pairs of a block that stay.

    A block file holds of the pairs the `lines`, of each side the ids and their numbers, and the lines of those that are
    `too_long`; with a `marking` it also holds how much is `marked`.
    """

    source: Path
    folder: Path
    tokenizers: Tokenizers
    tags: tuple[int, ...]
    limit: int | None
    file: Path
    marking: Marking | None = None

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """task: the block's number and the verdicts on its pairs. Raises DataError for a source that is no vectors."""
        number, kept = task
        names = ("verdicts", "lines", *(f"{side}{ending}" for side in SIDES for ending in ("", "_ends")))
        verdicts, lines, *sides = read_block(block_file(self.source, number), *names)
        chosen = np.flatnonzero(kept[verdicts == 0] == 0)
        lines = lines[kept == 0]
        sources, targets = (
            split_texts(joined, ends, chosen) for joined, ends in zip(sides[::2], sides[1::2], strict=True)
        )
        marked: Counter[str] = Counter()
        parts = range(0, len(lines), AT_ONCE)
        pairs = [pair for start in parts for pair in self._ids(sources, targets, lines, start, marked)]
        short = np.array([not self.limit or max(map(len, pair)) <= self.limit for pair in pairs], dtype=bool)
        staying = [pair for pair, fits in zip(pairs, short, strict=True) if fits]
        arrays: dict[str, NDArray[Any]] = {"lines": lines[short], "too_long": lines[~short]}
        columns = zip(*staying, strict=True) if staying else ((), ())
        for (side, dtype), ids in zip(self.types.items(), columns, strict=True):
            joined = Sentences.of([[*self.tags, *each] for each in ids] if side == "source" and self.tags else ids)
            arrays[side], arrays[f"{side}_lengths"] = joined.ids.astype(dtype), joined.lengths
        if self.marking is not None:
            arrays["marked"] = np.array([marked[name] for name in MARKED], dtype=np.int64)
        write_block(block_file(self.folder, number), arrays)

    @property
    def types(self) -> dict[str, np.dtype[Any]]:
        """How the ids of each side are stored."""
        sizes = {"source": self.tokenizers.source.size, "target": self.tokenizers.target.size}
        return id_types(sizes, self.tokenizers.reads_vectors)

    def rows(self, blocks: int) -> Iterator[Rows]:
        """Those of the blocks, which all are there."""
        names = ("lines", "too_long", *(f"{side}{ending}" for side in SIDES for ending in ("", "_lengths")))
        for number in range(blocks):
            lines, too_long, *sides = read_block(block_file(self.folder, number), *names)
            yield Rows(lines, (Sentences(*sides[:2]), Sentences(*sides[2:])), too_long)

    def marked(self, blocks: int) -> dict[str, int]:
        """How many pairs of the blocks have symbols, and how many; nothing without a `marking`."""
        if self.marking is None:
            return {}
        total = sum((read_block(block_file(self.folder, number), "marked")[0] for number in range(blocks)), start=0)
        return dict(zip(MARKED, np.asarray(total).tolist(), strict=True))

    def _ids(
        self,
        sources: list[str],
        targets: list[str],
        lines: NDArray[np.int64],
        start: int,
        marked: Counter[str],
    ) -> Iterator[tuple[Any, Any]]:
        """marked: counts up how much is."""
        part = slice(start, start + AT_ONCE)
        if self.marking is not None:
            texts = zip(sources[part], targets[part], lines[part].tolist(), strict=True)
            found = [self.marking(*each) for each in texts]
            for each in found:
                numbers = each.spans > 0, each.spans, each.terms > 0, each.terms
                marked.update(dict(zip(MARKED, map(int, numbers), strict=True)))
            read, written = [each.source for each in found], [each.target for each in found]
            return zip(
                self.tokenizers.source.encode_inlined(read), self.tokenizers.target.encode_inlined(written), strict=True
            )
        try:
            ids = self.tokenizers.source.encode_batch(sources[part])
        except VectorError as error:
            raise error.at(self.file, int(lines[start + error.place])) from None
        return zip(ids, self.tokenizers.target.encode_batch(targets[part]), strict=True)
