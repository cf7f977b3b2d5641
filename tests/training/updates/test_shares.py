"""Division of an update: every sentence once, equal passes, about equal tokens, and whole batches if possible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.training.updates.sharing import divide_update
from dragoman.training.updates.update import MicroBatch


def corpus(sizes: list[int]) -> tuple[list[np.ndarray], np.ndarray]:
    """Batches with these numbers of sentences, of about 400 tokens each, as in a plan."""
    rng = np.random.default_rng(sum(sizes))
    rows = np.split(rng.permutation(sum(sizes)).astype(np.int64), np.cumsum(sizes)[:-1])
    lengths = np.zeros((sum(sizes), 2), np.int32)
    for batch in rows:
        lengths[batch] = max(1, 200 // len(batch)) + rng.integers(0, 3, (len(batch), 2))
    return rows, lengths


def rows_of(parts: list[MicroBatch]) -> list[int]:
    return [row for part in parts if part.real for row in part.rows.tolist()]


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.integers(1, 5), st.booleans(), st.integers(0, 2))
def test_every_sentence_is_in_exactly_one_part(sizes: list[int], ranks: int, whole: bool, halvings: int) -> None:
    batches, lengths = corpus(sizes)
    found = divide_update(batches, lengths, ranks, whole, halvings)
    assert len(found) == ranks
    assert len({len(parts) for parts in found}) == 1, "a rank with fewer passes would leave the others waiting"
    assert sorted(row for parts in found for row in rows_of(parts)) == list(range(sum(sizes)))
    assert all(len(part.rows) for parts in found for part in parts)
    keys = [part.key for parts in found for part in parts if part.real]
    assert len(set(keys)) == len(keys), "two parts would draw the same dropout masks"
    if whole and not halvings:
        real = {tuple(part.rows.tolist()) for parts in found for part in parts if part.real}
        assert real == {tuple(batch.tolist()) for batch in batches}


@pytest.mark.parametrize(("count", "ranks"), [(1, 2), (1, 4), (3, 2), (2, 4), (5, 4), (8, 4), (3, 4)])
def test_ranks_have_about_the_same_number_of_tokens(count: int, ranks: int) -> None:
    batches, lengths = corpus([40, 35, 50, 20, 45, 38, 42, 30][:count])
    found = divide_update(batches, lengths, ranks)
    tokens = [int((lengths[rows_of(parts)] + 1).sum()) for parts in found]
    longest = int((lengths + 1).sum(1).max())
    sizes = [int((lengths[batch] + 1).sum()) for batch in batches]
    rest = count % ranks
    uncut = rest == 0 or (rest > 1 and ranks % rest == 0)  # different batches, divisible one by one or not
    assert max(tokens) - min(tokens) <= 2 * longest + uncut * (max(sizes) - min(sizes))
    assert len(found[0]) <= -(-count // ranks) + (rest != 0 and ranks % rest != 0)


def test_whole_batches_keep_the_keys_of_one_process() -> None:
    batches, lengths = corpus([10, 20, 30, 40])
    found = divide_update(batches, lengths, 2)
    assert sorted(part.key for parts in found for part in parts) == [(0,), (1,), (2,), (3,)]
    for parts in found:
        for part in parts:
            assert part.rows is batches[part.key[0]]


def test_more_ranks_than_sentences_need_placeholders() -> None:
    batches, lengths = corpus([2])
    found = divide_update(batches, lengths, 4)
    assert sorted(part.real for parts in found for part in parts) == [False, False, True, True]
