"""benchmarks/training: batches of the plain loop, windows at the gate, programs that are not installed."""

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from repository import ROOT

from dragoman.data.batches.batch import collate
from dragoman.models.kinds.encoder_decoder import ModelConfig

FOLDER = ROOT / "benchmarks" / "training"
MODULES = ("contender", "gate", "sizes", "worker", "programs", "programs.plain", "programs.reference")
PAIRS = [(list(range(4, 4 + 1 + row % 7)), list(range(20, 22 + row % 5))) for row in range(60)]


@pytest.fixture(scope="module")
def benchmark() -> Iterator[SimpleNamespace]:
    """The benchmark's modules, which are not a package."""
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name.rpartition(".")[2]: import_module(name) for name in MODULES})
    sys.path.remove(str(FOLDER))
    for name in MODULES:
        del sys.modules[name]


def task(benchmark: SimpleNamespace, folder: Path, tokens: int = 40) -> Any:
    for side, place in (("source", 0), ("target", 1)):
        lines = [" ".join(map(str, pair[place])) + "\n" for pair in PAIRS]
        (folder / f"train.{side}").write_text("".join(lines))
    facts = {"size": 40, "pad": 0, "bos": 1, "eos": 2, "unk": 3}
    (folder / "corpus.json").write_text(json.dumps(facts))
    return benchmark.worker.Task(folder, folder, "small", tokens, False, "cpu", 1, 1, {})


def test_the_plain_loop_reads_every_pair_once_per_epoch_within_the_budget(
    benchmark: SimpleNamespace, tmp_path: Path
) -> None:
    seen: list[tuple[int, ...]] = []
    for source, inputs, labels in benchmark.plain.batches(task(benchmark, tmp_path)):
        assert max(source.numel(), labels.numel()) <= 40
        for row in range(len(source)):
            keep = labels[row] != 0
            assert inputs[row, 0] == 1
            assert labels[row][keep][-1] == 2
            assert inputs[row][keep].tolist()[1:] == labels[row][keep].tolist()[:-1]
            seen.append((*source[row][source[row] != 0].tolist()[:-1], 0, *labels[row][keep].tolist()[:-1]))
        if len(seen) == len(PAIRS):
            break
    assert sorted(seen) == sorted((*source, 0, *target) for source, target in PAIRS)


def test_a_window_has_the_requested_number_of_updates(benchmark: SimpleNamespace) -> None:
    orders, given = os.pipe()
    told, answers = os.pipe()
    os.write(given, b'{"updates": 2}\n{"updates": 1}\n')
    gate = benchmark.gate.Gate(orders, answers, "wall", cuda=False)
    for update in range(1, 4):  # the third `next` ends the first window and starts the second
        gate.next()
        gate.count(10 * update, 100 * update, float(update))
    gate._left = 0
    os.write(given, b'{"updates": 1}\n')
    gate.next()
    ready, first, second = (json.loads(line) for line in os.read(told, 10_000).decode().splitlines())
    assert ready == {"ready": True}
    assert (first["tokens"], first["updates"], first["largest"]) == (30, 2, 200)
    assert first["loss"] == pytest.approx((10 * 1 + 20 * 2) / 30)
    assert (second["tokens"], second["updates"], second["loss"]) == (30, 1, 3.0)
    assert second["seconds"] >= 0


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("nothing_of_this_name", "nothing_of_this_name is not installed for"),
        pytest.param("plain", "FileNotFoundError", marks=pytest.mark.slow),
    ],
)
def test_an_unavailable_program_gives_a_reason(
    benchmark: SimpleNamespace, tmp_path: Path, program: str, why: str
) -> None:
    contender = benchmark.contender.Contender("it", program)
    asked = {"folder": str(tmp_path), "model": "small", "tokens": 40, "device": "cpu", "threads": 1, "seed": 1}
    asked["clock"] = "wall"
    with pytest.raises(benchmark.contender.Skipped, match=why):
        contender.start(sys.executable, asked, tmp_path / "own", 60)
    contender.stop()


def test_the_rate_rises_and_falls(benchmark: SimpleNamespace) -> None:
    rate, warmup = benchmark.sizes.rate, benchmark.sizes.WARMUP
    assert rate(warmup) == max(rate(step) for step in range(1, 3 * warmup))
    assert rate(4 * warmup) == pytest.approx(rate(warmup) / 2)


def test_the_reference_computes_what_dragoman_computes(benchmark: SimpleNamespace) -> None:
    torch.manual_seed(1)
    stack = {"layers": 2, "heads": 4, "feedforward": 24}
    settings = {"preset": None, "width": 16, "encoder": stack, "decoder": stack}
    ours = ModelConfig.model_validate(settings).build(30, 30).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.3)
    theirs = benchmark.plain.PlainTransformer(benchmark.sizes.Sizes(16, 2, 4, 24), 30, 0).eval()
    benchmark.reference.copy_parameters(ours, theirs)
    pairs = collate([[5, 9, 4], [7]], [[8, 9], [20, 21, 22, 5]], range(2))
    expected = ours(pairs.source, pairs.source_mask, pairs.inputs).logits()
    found = theirs(pairs.source, pairs.inputs)
    torch.testing.assert_close(found[pairs.target_mask], expected[pairs.target_mask], rtol=1e-4, atol=1e-4)
