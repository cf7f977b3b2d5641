"""The batch plan contains every pair once, keeps within its budget, and depends on its arguments only."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.data.batches.plan import BatchConfig, plan_epoch

LENGTHS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=200).map(
    lambda rows: np.array(rows, dtype=np.int32).reshape(-1, 2)
)


@settings(max_examples=100)
@given(
    lengths=LENGTHS,
    tokens=st.integers(1, 400),
    sentences=st.none() | st.integers(1, 20),
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 1000),
)
def test_every_row_once_and_within_the_budget(
    lengths: NDArray[np.int32], tokens: int, sentences: int | None, seed: int, epoch: int
) -> None:
    config = BatchConfig(tokens=tokens, sentences=sentences)
    plan = plan_epoch(lengths, config, seed, epoch)
    rows = [int(row) for batch in plan.batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    real, padded = np.zeros(2), np.zeros(2)
    for batch in plan.batches:
        widths = lengths[batch].max(axis=0) + 1
        assert len(batch) == 1 or len(batch) * widths.max() <= tokens
        assert sentences is None or len(batch) <= sentences
        real += (lengths[batch] + 1).sum(axis=0)
        padded += len(batch) * widths
    if len(lengths):
        np.testing.assert_allclose(plan.padding_waste, 1 - real / padded, atol=1e-12)
    again = plan_epoch(lengths.copy(), config, seed, epoch)
    assert [batch.tolist() for batch in again.batches] == [batch.tolist() for batch in plan.batches]


@given(lengths=LENGTHS, tokens=st.integers(1, 400), sentences=st.none() | st.integers(1, 20), seed=st.integers(0, 9))
def test_packed_batches_contain_every_row_once_and_keep_within_the_budget_of_tokens(
    lengths: NDArray[np.int32], tokens: int, sentences: int | None, seed: int
) -> None:
    plan = plan_epoch(lengths, BatchConfig(tokens=tokens, sentences=sentences, packed=True), seed, 0)
    assert sorted(int(row) for batch in plan.batches for row in batch) == list(range(len(lengths)))
    for batch in plan.batches:
        sides = lengths[batch] + 1
        assert len(batch) == 1 or sides.sum(axis=0).max() < tokens
        assert len(batch) == 1 or len(batch) * sides.max() <= 2 * tokens
        assert sentences is None or len(batch) <= sentences
    if len(lengths):
        real = (lengths + 1).sum(axis=0)
        np.testing.assert_allclose(plan.padding_waste, 1 - real / (len(plan) * tokens), atol=1e-12)


@given(lengths=LENGTHS, tokens=st.integers(1, 400), sentences=st.none() | st.integers(1, 20), seed=st.integers(0, 9))
def test_planned_batches_have_few_numbers_of_rows(
    lengths: NDArray[np.int32], tokens: int, sentences: int | None, seed: int
) -> None:
    """The budget holds with lengths that are multiples of 8."""
    plan = plan_epoch(lengths, BatchConfig(tokens=tokens, sentences=sentences, few_shapes=True), seed, 0)
    assert sorted(int(row) for batch in plan.batches for row in batch) == list(range(len(lengths)))
    for batch in plan.batches:
        rows, widest = len(batch), int(-(-(lengths[batch] + 1).max() // 8) * 8)
        assert rows == 1 or rows * widest <= tokens
        assert sentences is None or rows <= sentences


def test_most_planned_batches_have_one_of_few_numbers_of_rows() -> None:
    lengths = np.random.default_rng(0).integers(3, 60, (20_000, 2)).astype(np.int32)
    few, any_number = (
        {len(batch) for batch in plan_epoch(lengths, BatchConfig(tokens=4000, few_shapes=chosen), 1, 0).batches}
        for chosen in (True, False)
    )
    assert len(few) < 0.3 * len(any_number)


@given(
    lengths=LENGTHS.filter(len),
    tokens=st.integers(1, 400),
    sentences=st.none() | st.integers(1, 20),
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 1000),
)
def test_a_corpus_of_one_block_is_planned_as_runs_of_earlier_versions_were(
    lengths: NDArray[np.int32], tokens: int, sentences: int | None, seed: int, epoch: int
) -> None:
    """Otherwise such runs could not be resumed. The plan of version 0.1, computed one sentence at a time."""
    rng = np.random.default_rng((seed, epoch))
    ties = rng.permutation(len(lengths))
    keys = [(int(t), int(s) if t % 2 else -int(s), int(ties[row])) for row, (s, t) in enumerate(lengths.tolist())]
    batches: list[list[int]] = [[]]
    for row in sorted(range(len(lengths)), key=keys.__getitem__):
        widest = max(int(lengths[each].max()) + 1 for each in [*batches[-1], row])
        count = len(batches[-1]) + 1
        if count > 1 and (widest * count > tokens or count > (sentences or count)):
            batches.append([])
        batches[-1].append(row)
    expected = [batches[place] for place in rng.permutation(len(batches))]
    plan = plan_epoch(lengths, BatchConfig(tokens=tokens, sentences=sentences), seed, epoch)
    assert [batch.tolist() for batch in plan.batches] == expected


def corpus() -> NDArray[np.int32]:
    rng = np.random.default_rng(0)
    source = rng.integers(3, 40, 3000)
    return np.stack([source, source + rng.integers(-2, 5, 3000)], 1).astype(np.int32)


def test_epochs_and_seeds_differ_in_content_and_order_of_batches() -> None:
    plans = [plan_epoch(corpus(), BatchConfig(tokens=500), seed, epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    contents = [{frozenset(batch.tolist()) for batch in plan.batches} for plan in plans]
    assert len(contents[0] & contents[1]) < len(contents[0]) / 10
    assert len(contents[0] & contents[2]) < len(contents[0]) / 10


def test_batches_do_not_come_sorted_by_length() -> None:
    plan = plan_epoch(corpus(), BatchConfig(tokens=500), 0, 0)
    widths = [int(corpus()[batch, 1].max()) for batch in plan.batches]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.3


def test_there_is_little_padding() -> None:
    waste = plan_epoch(corpus(), BatchConfig(tokens=2000), 0, 0).padding_waste
    assert waste[1] < 0.05
    assert waste[0] < 0.15


def test_a_long_pair_has_a_batch_of_its_own() -> None:
    lengths = np.array([[5, 5], [900, 5], [5, 6], [5, 5]], dtype=np.int32)
    plan = plan_epoch(lengths, BatchConfig(tokens=100), 0, 0)
    assert [1] in [batch.tolist() for batch in plan.batches]


def test_source_padding_stays_small_where_the_target_length_changes() -> None:
    rng = np.random.default_rng(0)
    target = rng.integers(5, 30, 3000)
    source = (target * rng.uniform(0.7, 1.4, 3000)).astype(np.int32)
    lengths = np.stack([source, target], 1).astype(np.int32)
    waste = plan_epoch(lengths, BatchConfig(tokens=1000), 0, 0).padding_waste
    assert waste[0] < 0.12  # 0.134 if source lengths start again at every new target length
