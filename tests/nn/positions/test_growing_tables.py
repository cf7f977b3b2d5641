"""Tables of positions, which captured CUDA graphs read: they grow for longer texts, and are never replaced or freed."""

import gc
from threading import Event, Thread

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from dragoman.nn.positions.rotary import _rotations
from dragoman.nn.positions.sinusoidal import Sinusoidal, sinusoids
from dragoman.nn.positions.tables import growing_table

CPU = torch.device("cpu")


def numbers(length: int, factor: int) -> Tensor:
    return factor * torch.arange(length)


def test_a_table_has_the_rows_that_are_needed() -> None:
    table = growing_table(numbers)
    for rows, length in ((1, 512), (512, 512), (513, 1024), (5000, 8192)):
        assert torch.equal(table(rows, CPU, 3), numbers(length, 3))
    assert table(600, CPU, 3) is table(1000, CPU, 3)
    assert table(600, CPU, 3) is not table(600, CPU, 4)
    assert table(600, torch.device("meta"), 3).is_meta


def test_threads_share_one_table() -> None:
    entered, proceed = Event(), Event()
    lengths: list[int] = []

    def compute(length: int) -> Tensor:
        lengths.append(length)
        entered.set()
        assert proceed.wait(30)
        return torch.zeros(length)

    table = growing_table(compute)
    found: list[Tensor] = []
    threads = [Thread(target=lambda: found.append(table(600, CPU))) for _ in range(2)]
    threads[0].start()
    assert entered.wait(30)
    threads[1].start()
    proceed.set()
    for thread in threads:
        thread.join()
    assert lengths == [1024] and found[0] is found[1]


@pytest.mark.parametrize("scheme", ["sinusoidal", "rotary"])
def test_the_table_of_a_short_text_outlives_longer_texts(scheme: str) -> None:
    """A captured graph keeps the address of the table, and nothing else."""
    encoding = Sinusoidal(6, base=123.0)

    def table(length: int) -> StorageWeakRef:
        read = encoding(0, length) if scheme == "sinusoidal" else _rotations(length, CPU, 6, 123.0)
        return StorageWeakRef(read.untyped_storage())

    with torch.inference_mode():
        before = table(7)
        for length in (600, 3000):
            table(length)
    gc.collect()
    assert not before.expired()
    assert before.cdata == table(9).cdata
    torch.testing.assert_close(encoding(0, 9), sinusoids(9, 6, 123.0))
