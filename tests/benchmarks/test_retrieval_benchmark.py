"""benchmarks/retrieval.py: its texts contain the answers, and its model has a constant cost per token."""

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
import torch
from repository import ROOT

FOLDER = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    yield import_module("retrieval")
    sys.path.remove(str(FOLDER))
    del sys.modules["retrieval"]


@pytest.mark.parametrize("length", [16, 33, 500])
def test_every_term_occurs_once_and_is_followed_by_its_letter(benchmark: ModuleType, length: int) -> None:
    sources, targets, places = benchmark.draw(np.random.default_rng(1), 20, length)
    assert sources.shape == (20, length)
    for source, target, place in zip(sources, targets, places, strict=True):
        for number, (letter, at) in enumerate(zip(target, place, strict=True)):
            assert np.flatnonzero(source == benchmark.TERM + number).tolist() == [at]
            assert source[at + 1] == letter
            assert benchmark.FIRST <= letter < benchmark.TERM


def test_only_the_soft_model_stores_more_of_a_longer_source(benchmark: ModuleType) -> None:
    held = {}
    for kind in benchmark.KINDS:
        model = benchmark.model(kind, 1).eval()
        sizes = []
        for length in (400, 800):
            sources = benchmark.draw(np.random.default_rng(1), 1, length)[0]
            written, size = benchmark.write(model, sources, 3)
            assert written.shape == (1, 3)
            sizes.append(size)
        held[kind] = sizes[1] / sizes[0]
    assert held["linear"] < 1.1
    assert held["soft"] > 1.8


def test_decoding_is_greedy_search(benchmark: ModuleType) -> None:
    """Token by token, compared with the whole output read at once."""
    model = benchmark.model("linear", 2).eval()
    sources, _, _ = benchmark.draw(np.random.default_rng(3), 2, 40)
    written, _ = benchmark.write(model, sources, 6)
    batch = benchmark.collate(list(sources), [row.tolist() for row in written], range(2))
    with torch.inference_mode():
        logits = model(batch.source, batch.source_mask, batch.inputs).logits()
    assert torch.equal(logits[:, :6].argmax(-1), written)


def test_found_counts_what_is_right(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a decoder that knows the answer for every second letter."""

    def half_right(model: object, sources: np.ndarray, count: int) -> tuple[torch.Tensor, int]:
        answers = [
            [source[np.flatnonzero(source == benchmark.TERM + n)[0] + 1] for n in range(count)] for source in sources
        ]
        letters = torch.tensor(np.array(answers))
        letters[:, ::2] = 0
        return letters, 0

    monkeypatch.setattr(benchmark, "write", half_right)
    share, _ = benchmark.found(None, 64, 10)
    assert share == 0.5
