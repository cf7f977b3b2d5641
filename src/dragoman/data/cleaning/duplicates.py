"""Exact deduplication of any number of pairs, by dividing digests into buckets on disk and sorting each bucket."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

BUCKET = 1 << 18
"""Mean number of digests per bucket. A digest takes 24 bytes, and another 24 bytes while its bucket is sorted."""

_MAX_BUCKETS = 1 << 12


def mark_duplicates(
    chunks: Iterable[tuple[NDArray[np.int64], NDArray[np.uint64]]],
    verdicts: NDArray[np.uint8],
    mark: int,
    folder: Path,
    *,
    before: Iterable[NDArray[np.uint64]] = (),
    count_before: int = 0,
) -> None:
    """Write `mark` into `verdicts` for every pair with the same digest as an earlier pair.

    chunks: indices (m,) of the pairs, ascending over all chunks, and digests (m, 2). verdicts: one verdict per pair;
    may be memory-mapped. folder: folder for the temporary buckets. before: digests of the pairs of earlier corpora,
    which count as earlier pairs. count_before: approximate number of these digests.

    Repetitions within a chunk are removed first, and different digests are evenly distributed, so that all buckets have
    about the same size. Only one bucket or chunk is in memory at a time.
    """
    count = 1 << max(0, (len(verdicts) + count_before - 1) // BUCKET).bit_length()
    count = min(count, _MAX_BUCKETS)
    known = ((np.full(len(digests), -1), digests) for digests in before)
    with TemporaryDirectory(dir=folder, prefix="buckets-") as buckets:
        for indices, digests in chain(known, chunks):
            # Stored indices start at 1, so that pairs of earlier corpora have 0 and come first among equal digests.
            entries = _mark_repetitions(np.column_stack([digests, (indices + 1).astype(np.uint64)]), verdicts, mark)
            bucket_of = (entries[:, 0] >> np.uint64(40)) % np.uint64(count)
            order = np.argsort(bucket_of, kind="stable")
            bounds = np.searchsorted(bucket_of[order], np.arange(count + 1, dtype=np.uint64))
            for bucket in np.flatnonzero(np.diff(bounds)).tolist():
                with (Path(buckets) / str(bucket)).open("ab") as file:
                    file.write(entries[order[bounds[bucket] : bounds[bucket + 1]]].tobytes())
        for path in Path(buckets).iterdir():
            _mark_repetitions(np.fromfile(path, dtype=np.uint64).reshape(-1, 3), verdicts, mark)


def _mark_repetitions(entries: NDArray[np.uint64], verdicts: NDArray[np.uint8], mark: int) -> NDArray[np.uint64]:
    """Mark repetitions among entries (two halves of a digest, index + 1). Returns the first entry of each digest."""
    entries = entries[np.lexsort((entries[:, 2], entries[:, 1], entries[:, 0]))]
    is_repeated = np.zeros(len(entries), dtype=bool)
    is_repeated[1:] = (entries[1:, :2] == entries[:-1, :2]).all(1)
    repeated = entries[is_repeated, 2].astype(np.int64)
    verdicts[repeated[repeated > 0] - 1] = mark
    return entries[~is_repeated]
