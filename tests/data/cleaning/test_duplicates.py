"""Deduplication on disk finds the same duplicates as a set in memory."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.data.cleaning import duplicates
from dragoman.data.cleaning.duplicates import mark_duplicates


@given(
    blocks=st.lists(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=40), max_size=8),
    elsewhere=st.lists(st.lists(st.integers(0, 12), max_size=9), max_size=3),
    bucket=st.integers(1, 40),
)
def test_all_but_the_first_of_equals_are_marked(
    blocks: list[list[tuple[int, bool]]], elsewhere: list[list[int]], bucket: int
) -> None:
    """Entries are a text's number, and whether the pair was dropped before. elsewhere: texts of earlier corpora."""
    generator = np.random.default_rng(0)
    digests = generator.integers(0, 2**63, (13, 2)).astype(np.uint64)
    digests[1, 0] = digests[0, 0]  # half a digest in common is not a duplicate
    pairs = [entry for block in blocks for entry in block]
    verdicts = np.array([5 if dropped else 0 for _, dropped in pairs], dtype=np.uint8)
    expected, seen = verdicts.copy(), {text for block in elsewhere for text in block}
    for place, (text, dropped) in enumerate(pairs):
        if not dropped:
            expected[place] = 9 if text in seen else 0
            seen.add(text)

    def stream() -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        start = 0
        for block in blocks:
            kept = [place for place, (_, dropped) in enumerate(block) if not dropped]
            yield np.array(kept, np.int64) + start, digests[[block[place][0] for place in kept]]
            start += len(block)

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(duplicates, "BUCKET", bucket)
        before = (digests[block] for block in elsewhere)
        count = sum(map(len, elsewhere))
        mark_duplicates(stream(), verdicts, 9, Path(folder), before=before, count_before=count)
        assert list(Path(folder).iterdir()) == []
    assert verdicts.tolist() == expected.tolist()
