"""CTranslate2's batches, which cannot be interrupted, are small, and none is started after a cancellation."""

from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.decode.search import SearchConfig
from dragoman.engines.ctranslate2 import _MOST_WORK, CTranslate2Engine
from dragoman.engines.engine import Row
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.text.tokenizers import TextConfig, train_tokenizers


class FakeTranslator:
    """Records the batches. The result of a line is its source."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int]] = []

    def translate_batch(self, sources: list[list[str]], _: Any, beam_size: int, **settings: Any) -> list[Any]:
        self.batches.append((len(sources), max(map(len, sources)), beam_size))
        return [SimpleNamespace(result=lambda: SimpleNamespace(hypotheses=[["</s>"]], scores=[0.0])) for _ in sources]


def engine(fake: FakeTranslator, workers: int = 1) -> CTranslate2Engine:
    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": {"size": 300}}), ["a dog ."], ["ein Hund ."])
    limits = LengthLimits(LengthLimit("source", None, ""), LengthLimit("target", None, ""))
    exported: Any = SimpleNamespace(translator=fake, positions=None, limits=limits, tokenizers=tokenizers)
    return CTranslate2Engine(exported, workers)


@pytest.mark.parametrize(("beam", "length"), [(1, 10), (5, 10), (5, 120), (8, 200), (5, 4000)])
def test_batches_are_limited_by_their_work(beam: int, length: int) -> None:
    fake = FakeTranslator()
    rows = [Row(number, "", [5] * length, SearchConfig(beam=beam)) for number in range(150)]
    assert len(list(engine(fake).hypotheses(rows, 64))) == 150
    assert all(count == 1 or count * size * beam <= _MOST_WORK for count, size, beam in fake.batches)
    assert max(count for count, _, _ in fake.batches) == max(1, min(64, _MOST_WORK // ((length + 1) * beam)))


def test_no_batch_is_started_after_a_cancellation() -> None:
    fake, cancellation = FakeTranslator(), Cancellation()
    rows = [Row(number, "", [5] * 10, SearchConfig(beam=2)) for number in range(100)]
    with cancellation.active():
        results = engine(fake).hypotheses(rows, 10)
        next(results)
        assert len(fake.batches) == 2
        cancellation.cancel()
        with pytest.raises(Cancelled):
            list(results)
    assert len(fake.batches) == 2
