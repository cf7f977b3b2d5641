"""The loader: order, start, resampling by (seed, epoch, row), failures, and the end of its thread."""

import os
import signal
import threading
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
import torch
from waiting import wait_until

from dragoman.base.errors import ResourceError
from dragoman.data.batches.loader import Loader
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.batches.resampling import Resampler
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.data.preparation.prepare import prepare
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.bpe import BPEConfig


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpora:
    folder = tmp_path_factory.mktemp("corpus")
    lines = [f"sentence{'s' * (number % 7)} number {number}\tSatz Nummer {number}" for number in range(200)]
    (folder / "pairs.tsv").write_text("\n".join(lines))
    text = TextConfig(subword=BPEConfig(size=350, dropout=0.2))
    return prepare(CorpusConfig(pairs=folder / "pairs.tsv"), CleaningConfig(), text, folder / "cache")


def loader(
    prepared: PreparedCorpora, start: int = 0, tokens: int = 100, dropout: bool = False, epoch: int = 3
) -> Loader:
    plan = plan_epoch(prepared.dataset.lengths, BatchConfig(tokens=tokens), 1, epoch)
    return Loader(
        prepared.dataset, plan, start, Resampler(prepared.tokenizers, 1, processes=0) if dropout else None, epoch
    )


def loader_threads() -> int:
    return sum(thread.name == "dragoman-loader" for thread in threading.enumerate())


def test_batches_come_in_plan_order_with_their_own_sentences(prepared: PreparedCorpora) -> None:
    made = loader(prepared)
    batches = list(made)
    assert len(batches) == len(made) == len(made.plan.batches)
    for batch, rows in zip(batches, made.plan.batches, strict=True):
        assert batch.rows == tuple(rows.tolist())
        for place, row in enumerate(batch.rows):
            source, target = prepared.dataset[row]
            assert batch.source[place][batch.source_mask[place]].tolist() == [*source.tolist(), EOS]
            assert batch.labels[place][batch.target_mask[place]].tolist() == [*target.tolist(), EOS]
            assert batch.inputs[place][batch.target_mask[place]].tolist() == [BOS, *target.tolist()]


@pytest.mark.parametrize("dropout", [False, True])
def test_starting_later_continues_the_same_sequence_of_batches(prepared: PreparedCorpora, dropout: bool) -> None:
    whole = list(loader(prepared, dropout=dropout))
    rest = list(loader(prepared, start=5, dropout=dropout))
    assert len(rest) == len(whole) - 5
    for batch, same in zip(rest, whole[5:], strict=True):
        assert torch.equal(batch.source, same.source)
        assert torch.equal(batch.labels, same.labels)
    assert list(loader(prepared, start=len(whole), dropout=dropout)) == []


def sentences(loader: Loader) -> dict[int, tuple[list[int], list[int]]]:
    found = {}
    for batch in loader:
        for place, row in enumerate(batch.rows):
            source = batch.source[place][batch.source_mask[place]].tolist()
            found[row] = (source, batch.labels[place][batch.target_mask[place]].tolist())
    return found


def test_dropout_depends_on_seed_epoch_and_row_only(prepared: PreparedCorpora) -> None:
    first = sentences(loader(prepared, dropout=True))
    assert sentences(loader(prepared, tokens=37, dropout=True)) == first  # other batches, same splits
    assert sentences(loader(prepared, dropout=True, epoch=4)) != first
    stored = sentences(loader(prepared))
    assert first != stored
    for row, (source, target) in first.items():
        assert prepared.tokenizers.source.decode(source) == prepared.tokenizers.source.decode(stored[row][0])
        assert prepared.tokenizers.target.decode(target) == prepared.tokenizers.target.decode(stored[row][1])


def test_an_abandoned_iteration_ends_its_thread(prepared: PreparedCorpora) -> None:
    before = loader_threads()
    iterator = iter(loader(prepared))
    assert len(list(islice(iterator, 2))) == 2
    assert loader_threads() == before + 1
    del iterator
    wait_until(lambda: loader_threads() == before)


def test_ctrl_c_while_an_abandoned_thread_ends_is_no_error(
    prepared: PreparedCorpora, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has reached the run before; here, Python would print a traceback of an ignored exception."""
    join, calls = threading.Thread.join, []

    def interrupted_once(thread: threading.Thread, timeout: float | None = None) -> None:
        calls.append(thread)
        if len(calls) == 1:
            raise KeyboardInterrupt
        join(thread, timeout)

    before = loader_threads()
    iterator = iter(loader(prepared))
    next(iterator)
    monkeypatch.setattr(threading.Thread, "join", interrupted_once)
    iterator.close()  # type: ignore[attr-defined]
    assert len(calls) == 2 and loader_threads() == before


def test_a_failure_in_the_thread_is_raised_in_place_of_its_batch(prepared: PreparedCorpora) -> None:
    made = loader(prepared)
    made.plan.batches[3] = made.plan.batches[3] + 10_000
    iterator = iter(made)
    assert [batch.rows for batch in islice(iterator, 3)] == [tuple(rows.tolist()) for rows in made.plan.batches[:3]]
    with pytest.raises(IndexError, match="row 1"):
        next(iterator)


def worker_processes() -> list[int]:
    """Child processes of this one that serve."""
    children = (
        (path, (path / "stat").read_text().rpartition(")")[2].split())
        for path in Path("/proc").iterdir()
        if path.name.isdigit() and (path / "stat").exists()
    )
    return [
        int(path.name)
        for path, (_, parent, *_) in children
        if int(parent) == os.getpid() and b"workers" in (path / "cmdline").read_bytes()
    ]


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_several_processes_split_like_one_and_all_of_them_end(prepared: PreparedCorpora) -> None:
    expected = sentences(loader(prepared, dropout=True))
    with closing(Resampler(prepared.tokenizers, 1, processes=2)) as resampler:
        plan = loader(prepared).plan
        assert sentences(Loader(prepared.dataset, plan, 0, resampler, 3)) == expected
        first = worker_processes()
        assert len(first) == 2
        iterator = iter(Loader(prepared.dataset, plan, 0, resampler, 3))
        next(iterator)
        del iterator  # a reader that stops early leaves nothing for the next
        assert sentences(Loader(prepared.dataset, plan, 0, resampler, 3)) == expected
        assert sorted(worker_processes()) == sorted(first)
    assert worker_processes() == []


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_a_process_that_dies_is_an_error_and_the_next_epoch_has_a_new_one(prepared: PreparedCorpora) -> None:
    with closing(Resampler(prepared.tokenizers, 1, processes=1)) as resampler:
        made = Loader(prepared.dataset, loader(prepared).plan, 0, resampler, 3)
        iterator = iter(made)
        next(iterator)
        os.kill(worker_processes()[0], signal.SIGKILL)
        with pytest.raises(ResourceError, match="signal 9"):
            list(iterator)
        assert len(list(made)) == len(made)
