"""Passes recorded with the memory of CUDA graphs, which a recorder on the CPU simulates: no replay reads freed memory.

The recorder is checked with faults that are planted.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from simulated_graphs import Recording, SimulatedGraphs, as_on_a_gpu, replaced_table  # noqa: F401
from torch import Tensor
from training_runs import SETTINGS, write_corpus

from dragoman.cli.main import main
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.positions.sinusoidal import Sinusoidal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.run import setup
from dragoman.training.updates.captured import CapturedPasses

pytestmark = pytest.mark.usefixtures("as_on_a_gpu")

SIZE = 20
POINT = TrainingPoint()


def model() -> Seq2Seq:
    torch.manual_seed(1)
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    config = {"preset": None, "width": 8, "dropout": 0.2, "encoder": stack, "decoder": stack}
    return ModelConfig.model_validate(config).build(SIZE, SIZE).train()


def batch(seed: int, rows: int = 5, length: int = 7) -> Batch:
    """A packed batch. All batches with the same number of rows and length have the same shape."""
    draw = torch.Generator().manual_seed(seed)
    sources, targets = (
        [torch.randint(4, SIZE, (length,), generator=draw).tolist() for _ in range(rows)] for _ in range(2)
    )
    tokens = rows * (length + 1) + 24
    return BatchShapes((999, 999), packed=tokens).apply(collate(sources, targets, range(rows)))  # type: ignore[no-any-return]


def gradients(trained: Seq2Seq) -> dict[str, Tensor]:
    return {name: each.grad.clone() for name, each in trained.named_parameters() if each.grad is not None}


class Passes:
    """Passes of a model with simulated graphs, and without graphs."""

    def __init__(self, precision: torch.dtype = torch.float32) -> None:
        self.trained, self.graphs = model(), SimulatedGraphs()
        runtime = Runtime(torch.device("cpu"), precision)
        self.captured = CapturedPasses(self.trained, CrossEntropy(), runtime, self.graphs)
        self.plain = CapturedPasses(self.trained, CrossEntropy(), runtime, self.graphs, active=False)

    def step(self, seed: int, read: Batch | None = None, point: TrainingPoint = POINT) -> bool:
        """Compare a pass with the same without a graph. Return whether a graph was replayed."""
        read, before, found = read or batch(seed), self.graphs.replayed, []
        for passes in (self.plain, self.captured):
            self.trained.zero_grad()
            loss = passes.run(read, point, 1 / 40, seed)
            assert loss is not None
            found.append({"loss": loss.total, **gradients(self.trained)})
        torch.testing.assert_close(found[1], found[0])
        return self.graphs.replayed > before


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16], ids=str)
def test_no_replay_reads_freed_memory(precision: torch.dtype) -> None:
    """Across a longer text, another dropout rate, evaluation, and parameters that are unfrozen."""
    passes = Passes(precision)
    trained, graphs, step = passes.trained, passes.graphs, passes.step
    frozen = trained.encoder.layers[0].feedforward.requires_grad_(False)
    assert [step(seed) for seed in range(4)] == [False, True, True, True]
    assert not step(4, batch(4, 1, 520))
    with torch.inference_mode():
        trained.eval()(*batch(5, 1, 1030).model_inputs)
    trained.train()
    gc.collect()
    assert step(6) and step(7)
    other = TrainingPoint(dropout=0.5)
    has_levels = precision == torch.float32  # in bfloat16, recordings read the factor on dropout rates
    assert [step(seed, point=other) for seed in range(8, 11)] == [not has_levels, True, True]
    frozen.requires_grad_(True)
    assert [step(seed, point=other) for seed in range(11, 14)] == [False, True, True]
    assert passes.captured.active and not graphs.stale
    assert len(graphs.recordings) == 2 + has_levels


def test_a_table_that_is_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sinusoidal, "forward", replaced_table)
    passes = Passes()
    assert [passes.step(seed) for seed in range(4)] == [False, True, True, True]
    assert not passes.step(4, batch(4, 1, 520))
    gc.collect()
    assert not passes.graphs.stale
    result = passes.captured.run(batch(5), POINT, 1.0, 5)
    assert passes.graphs.stale and "slice" in passes.graphs.stale[0]
    assert result is not None and not result.total.isfinite()


@pytest.mark.slow
@pytest.mark.parametrize("is_planted", [False, True])
def test_a_whole_training(is_planted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the parameters of a training without graphs, although dropout rates rise and one text is long.

    The planted fault is a table that the long text of the validation set replaces.
    """
    graphs = SimulatedGraphs()

    def simulated(model: Any, objective: Any, runtime: Runtime, few_shapes: bool) -> CapturedPasses:
        return CapturedPasses(model, objective, runtime, graphs)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(setup, "captured_passes", simulated)
    options = [*write_corpus(tmp_path, 30), *SETTINGS, "data.batch.few_shapes=true", "data.batch.packed=true"]
    options += ["model.positions={kind: sinusoidal}", "data.cleaning.enabled=false", "data.batch.tokens=640"]
    options += ["train.max_steps=12", "train.validate_every=6", "train.checkpoint_every=6", "train.dropout_epochs=0.5"]
    for side in "ab":
        with (tmp_path / f"{'valid' if is_planted else 'train'}.{side}").open("a") as file:
            file.write(" ".join(["park"] * 600) + "\n")
    if is_planted:
        monkeypatch.setattr(Sinusoidal, "forward", replaced_table)
        main(["train", *options, "--quiet"])
        assert graphs.stale
        return
    assert main(["train", *options, "--quiet"]) == 0
    assert len(graphs.recordings) > 1 and graphs.replayed > 4 and not graphs.stale
    monkeypatch.setattr(CapturedPasses, "run", lambda *_: None)
    assert main(["train", *options, "--quiet", "--out", "other"]) == 0
    states = [load_file(tmp_path / folder / "model.safetensors") for folder in ("run", "other")]
    for name, tensor in states[0].items():
        if not name.endswith("key.bias"):  # whose gradient is zero, except for rounding
            torch.testing.assert_close(tensor, states[1][name], rtol=1e-3, atol=1e-4)


def simulate(function: Callable[[], Tensor]) -> tuple[SimulatedGraphs, Tensor, Callable[[], None]]:
    graphs = SimulatedGraphs()
    return graphs, *graphs(function)


def test_nothing_is_computed_before_the_first_replay() -> None:
    read, written = torch.ones(3), torch.zeros(3)
    _, result, replay = simulate(lambda: written.add_(read) * 2)
    assert result.isnan().all() and torch.equal(written, torch.ones(3))  # by the run before the recording
    replay()
    assert torch.equal(written, torch.full((3,), 2.0)) and torch.equal(result, torch.full((3,), 4.0))
    read.fill_(5.0)
    replay()
    assert torch.equal(written, torch.full((3,), 7.0)) and torch.equal(result, torch.full((3,), 14.0))


def test_freed_memory_is_nan() -> None:
    held = [torch.ones(4, 2), torch.full((3,), 2)]
    graphs, result, replay = simulate(lambda: held[0][1:3, 0] * 2)
    replay()
    assert torch.equal(result, torch.full((2,), 2.0)) and not graphs.stale
    held[0] = torch.ones(4, 2)
    replay()
    assert result.isnan().all() and graphs.stale[0] == "aten.slice.Tensor [4, 2]"


def test_reading_a_value_is_an_error_as_on_a_gpu() -> None:
    values = torch.ones(3)
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"), Recording():
        values.sum().item()
