"""The rows of an epoch: permutations, weights, and the mixing of large corpora."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.batches import epoch as module
from dragoman.data.batches import permutation
from dragoman.data.batches.epoch import EpochRows, Part
from dragoman.data.batches.permutation import Permutation
from dragoman.data.batches.plan import BatchConfig, plan_epoch


def rows(parts: list[Part], seed: int = 1, epoch: int = 0) -> list[list[int]]:
    found = EpochRows(parts, seed, epoch)
    return [sorted(found.block(number).tolist()) for number in range(len(found))]


def shrink(patch: pytest.MonkeyPatch) -> None:
    for name, value in (("BLOCK", 64), ("SMALL", 200), ("CHUNK", 4)):
        patch.setattr(module, name, value)
    patch.setattr(permutation, "TABLE", 20)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


@settings(max_examples=100)
@given(size=st.integers(1, 5000), key=st.integers(0, 2**63))
def test_a_network_is_a_permutation(size: int, key: int) -> None:
    order = Permutation(size, key)
    order._table = None
    assert sorted(order.at(np.arange(size)).tolist()) == list(range(size))


def test_a_network_mixes_like_a_table() -> None:
    """Cells of (position, number) in a 20 × 20 grid, steps between neighbours, and two adjacent keys."""
    size = 1 << 20
    assert size > permutation.TABLE
    first, second = (Permutation(size, 5, key).at(np.arange(size)) for key in (0, 1))
    places = np.arange(size) * 20 // size
    for numbers in (first, second, np.roll(first, 1) - first + size, (first + second) % size):
        cells = np.bincount(places * 20 + (numbers % size) * 20 // size, minlength=400)
        expected = np.bincount(places)[:, None] / 20
        statistic = ((cells.reshape(20, 20) - expected) ** 2 / expected).sum()
        assert 250 < statistic < 560  # 381 or 400 degrees of freedom, 5 standard deviations
    assert (first == second).sum() < 10


@given(
    parts=st.lists(st.tuples(st.integers(1, 300), st.sampled_from([1, 2, 3])), min_size=1, max_size=4),
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 99),
)
def test_integer_weights_read_every_row_that_often(parts: list[tuple[int, int]], seed: int, epoch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        found = Counter(row for block in rows([Part(*part) for part in parts], seed, epoch) for row in block)
    expected = [weight for size, weight in parts for _ in range(size)]
    assert [found[row] for row in range(len(expected))] == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize(("size", "weight", "epochs"), [(10, 0.5, 2), (1000, 0.25, 4), (999, 1.5, 2), (7, 0.1, 70)])
def test_parts_of_a_corpus_take_turns(small_blocks: None, size: int, weight: float, epochs: int) -> None:
    found = [[row for block in rows([Part(size, weight)], epoch=epoch) for row in block] for epoch in range(epochs)]
    counts = np.bincount(np.concatenate(found), minlength=size)
    assert counts.max() - counts.min() <= 1
    assert abs(counts.mean() - weight * epochs) < 0.05 * weight * epochs + 0.4 * epochs * (size < 10)
    for each in found:
        assert max(Counter(each).values()) <= np.ceil(weight) + 1
    assert sorted(found[0]) != sorted(found[1]) or weight > 1
    other = [row for block in rows([Part(size, weight)], seed=2) for row in block]
    assert sorted(other) != sorted(found[0]) or size < 10


def test_each_block_has_rows_from_all_over_the_corpus(small_blocks: None) -> None:
    """A corpus sorted by domain is read mixed: every block contains about its share of every tenth."""
    blocks = rows([Part(6400, 1.0)])
    assert len(blocks) == 100
    tenths = np.array([np.bincount(np.array(block) // 640, minlength=10) for block in blocks])
    # draws of 16 chunks: without replacement their variance is slightly below 16 · 0.1 · 0.9
    assert 0.7 < (tenths / 4).var() / (16 * 0.1 * 0.9) < 1.3
    again = rows([Part(6400, 1.0)], epoch=1)
    common = [len(set(one) & set(other)) for one, other in zip(blocks, again, strict=True)]
    assert np.mean(common) < 3


def test_a_plan_of_many_blocks_has_every_row_once_and_knows_its_length(small_blocks: None) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 60, (3001, 2)).astype(np.int32)
    parts = [Part(2000, 1.0), Part(1001, 2.0)]
    plan = plan_epoch(lengths, BatchConfig(tokens=300), 3, 4, parts)
    assert len(plan) == sum(1 for _ in plan.batches)
    counts = np.bincount(np.concatenate(plan.batches), minlength=3001)
    assert counts.tolist() == [1] * 2000 + [2] * 1001
    real, padded = np.zeros(2), np.zeros(2)
    for batch in plan.batches:
        widths = lengths[batch].max(axis=0) + 1
        assert len(batch) == 1 or len(batch) * widths.max() <= 300
        real += (lengths[batch] + 1).sum(axis=0)
        padded += len(batch) * widths
    np.testing.assert_allclose(plan.padding_waste, 1 - real / padded, atol=1e-12)
    again = plan_epoch(lengths, BatchConfig(tokens=300), 3, 4, parts)
    places = [len(plan) - 1, 0, len(plan) // 2, -1]
    assert [again.batches[place].tolist() for place in places] == [plan.batches[place].tolist() for place in places]
    assert [batch.tolist() for batch in again.batches[5:8]] == [batch.tolist() for batch in list(plan.batches)[5:8]]
    with pytest.raises(IndexError):
        plan.batches[len(plan)]
