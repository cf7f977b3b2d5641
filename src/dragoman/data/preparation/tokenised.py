"""Tokenising a cleaned corpus block by block, on all cores, into the shards of a `Dataset`."""

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.progress import Work
from dragoman.data.preparation.blocks import block_file, read_block
from dragoman.data.preparation.cleaned import Cleaned
from dragoman.data.preparation.report import CleaningReport
from dragoman.data.sentences import Sentences
from dragoman.data.shards import DatasetWriter
from dragoman.data.workers import apply


class Rows(NamedTuple):
    """Rows of a dataset: the lines of the corpus where they stand (N,), and their sides.

    too_long: lines of those that are left out, because they have more tokens than they may.
    """

    lines: NDArray[np.int64]
    sides: tuple[Sentences, ...]
    too_long: NDArray[np.int64]


class TokeniseBlock(Protocol):
    """Tokenises what stays of a block, and writes a file of that number into `folder`; can be sent to a process."""

    @property
    def folder(self) -> Path: ...

    @property
    def types(self) -> dict[str, np.dtype[Any]]:
        """How the ids of each side are stored."""
        ...

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """task: the block's number and the verdicts on what is in it."""
        ...

    def rows(self, blocks: int) -> Iterator[Rows]:
        """What stands in the first so many files, in order."""
        ...


def tokenise(
    function: TokeniseBlock, cleaned: Cleaned, writer: DatasetWriter, place: Path, workers: int | None = None
) -> CleaningReport:
    """Hand all rows to the writer, in order; gives the report, in files in `place`, with those that are too long.

    Blocks that lie in the function's folder from an earlier call are not made again. workers: processes, None for one a
    core; the result does not depend on it.
    """
    missing = [number for number in range(len(cleaned)) if not _is_whole(block_file(function.folder, number))]
    sizes, total = np.diff(cleaned.starts), int(cleaned.starts[-1])
    tasks = ((number, np.array(cleaned.verdicts(number))) for number in missing)
    with Work("Tokenising", cleaned.items, total, done=total - int(sizes[missing].sum())) as work:
        for number, _ in zip(missing, apply(function, tasks, workers), strict=True):
            work.tell(work.done + int(sizes[number]))
    counts = dict(cleaned.report.counts)
    for rule in counts:
        shutil.copyfile(CleaningReport.file(cleaned.folder, rule), CleaningReport.file(place, rule))
    for lines, sides, too_long in function.rows(len(cleaned)):
        writer.add(lines, *sides)
        if len(too_long):
            counts["max_tokens"] = counts.get("max_tokens", 0) + len(too_long)
            with CleaningReport.file(place, "max_tokens").open("ab") as file:
                file.write(too_long.tobytes())
    return CleaningReport.of_files(place, cleaned.report.total, counts, cleaned.unit)


def _is_whole(path: Path) -> bool:
    try:
        read_block(path, "lines")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True
