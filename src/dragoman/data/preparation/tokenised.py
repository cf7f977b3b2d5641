"""Tokenising a cleaned corpus block by block, on all cores, into the shards of a `PairDataset`."""

import shutil
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.log import info
from dragoman.data.preparation.blocks import block_file, read_block, split_texts, write_block
from dragoman.data.preparation.cleaned import Cleaned
from dragoman.data.preparation.report import CleaningReport
from dragoman.data.sentences import Sentences
from dragoman.data.shards import SIDES, DatasetWriter, id_types
from dragoman.data.workers import apply
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vectors import VectorError

AT_ONCE = 2048
"""Pairs that are tokenised together."""

_TELL_EVERY = 30.0


@dataclass(frozen=True)
class TokeniseBlock:
    """Tokenises the pairs of a block that stay.

    A block file holds of the pairs the `lines`, of each side the ids and their numbers, and the lines of those that are
    `too_long`.
    """

    source: Path
    folder: Path
    tokenizers: Tokenizers
    tags: tuple[int, ...]
    limit: int | None
    file: Path

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
        pairs = [pair for start in range(0, len(lines), AT_ONCE) for pair in self._ids(sources, targets, lines, start)]
        short = np.array([not self.limit or max(map(len, pair)) <= self.limit for pair in pairs], dtype=bool)
        staying = [pair for pair, fits in zip(pairs, short, strict=True) if fits]
        arrays: dict[str, NDArray[Any]] = {"lines": lines[short], "too_long": lines[~short]}
        types = id_types((self.tokenizers.source.size, self.tokenizers.target.size), self.tokenizers.reads_vectors)
        for side, dtype, ids in zip(SIDES, types, zip(*staying, strict=True) if staying else ((), ()), strict=True):
            joined = Sentences.of([[*self.tags, *each] for each in ids] if side == "source" and self.tags else ids)
            arrays[side], arrays[f"{side}_lengths"] = joined.ids.astype(dtype), joined.lengths
        write_block(block_file(self.folder, number), arrays)

    def _ids(
        self, sources: list[str], targets: list[str], lines: NDArray[np.int64], start: int
    ) -> Iterator[tuple[Any, Any]]:
        part = slice(start, start + AT_ONCE)
        try:
            ids = self.tokenizers.source.encode_batch(sources[part])
        except VectorError as error:
            raise error.at(self.file, int(lines[start + error.place])) from None
        return zip(ids, self.tokenizers.target.encode_batch(targets[part]), strict=True)


def tokenise(
    function: TokeniseBlock, cleaned: Cleaned, writer: DatasetWriter, place: Path, workers: int | None = None
) -> CleaningReport:
    """Hand all pairs to the writer, in order; gives the report, in files in `place`, with those that are too long.

    Blocks that lie in the function's folder from an earlier call are not made again. workers: processes, None for one a
    core; the result does not depend on it.
    """
    tasks = (
        (number, np.array(cleaned.verdicts(number)))
        for number in range(len(cleaned))
        if not _is_whole(block_file(function.folder, number))
    )
    told = time.monotonic()
    for _ in apply(function, tasks, workers):
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic()
            done = sum(1 for _ in function.folder.iterdir())
            info(f"Data: {done:,} of {len(cleaned):,} blocks tokenised")
    counts = dict(cleaned.report.counts)
    for rule in counts:
        shutil.copyfile(CleaningReport.file(cleaned.folder, rule), CleaningReport.file(place, rule))
    names = ("lines", "too_long", *(f"{side}{ending}" for side in SIDES for ending in ("", "_lengths")))
    for number in range(len(cleaned)):
        lines, too_long, *sides = read_block(block_file(function.folder, number), *names)
        writer.add(lines, Sentences(*sides[:2]), Sentences(*sides[2:]))
        if len(too_long):
            counts["max_tokens"] = counts.get("max_tokens", 0) + len(too_long)
            with CleaningReport.file(place, "max_tokens").open("ab") as file:
                file.write(too_long.tobytes())
    return CleaningReport.of_files(place, cleaned.report.pairs, counts)


def _is_whole(path: Path) -> bool:
    try:
        read_block(path, "too_long")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True
