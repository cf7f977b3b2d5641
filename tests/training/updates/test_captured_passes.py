"""Passes that are recorded and replayed compute what passes without a recording compute.

A recording on the CPU, which repeats a function and overwrites its results, stands for a CUDA graph.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from training_runs import BESIDE, SETTINGS, write_corpus
from variant_settings import cases

from dragoman.cli.main import main
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes, few_shapes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.auxiliary import collecting
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.run import setup
from dragoman.training.updates.captured import CapturedPasses

SIZE = 20
POINT = TrainingPoint()


def batch(seed: int, rows: int = 5) -> Batch:
    """A packed batch. All batches with equal numbers of rows have the same shape."""
    draw = torch.Generator().manual_seed(seed)

    def sentence() -> list[int]:
        return torch.randint(4, SIZE, (int(torch.randint(6, 8, (), generator=draw)),), generator=draw).tolist()

    sides = [[sentence() for _ in range(rows)] for _ in range(2)]
    sources, targets = sides
    shapes = BatchShapes((99, 99), packed=64 if rows == 5 else 256)
    return shapes.apply(collate(sources, targets, range(rows)))  # type: ignore[no-any-return]


def model(**settings: Any) -> Seq2Seq:
    torch.manual_seed(1)
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16, **settings}
    config = {"preset": None, "width": 8, "dropout": 0.2, "encoder": stack, "decoder": stack}
    return ModelConfig.model_validate(config).build(SIZE, SIZE).train()


def repeated(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    results = function()

    def replay() -> None:
        for stored, new in zip(results.values, function().values, strict=True):
            stored.copy_(new)

    return results, replay


def passes(trained: Seq2Seq, capture: Any = repeated, objective: CrossEntropy | None = None) -> CapturedPasses:
    return CapturedPasses(trained, objective or CrossEntropy(), Runtime(torch.device("cpu")), capture)


def gradients(trained: Seq2Seq) -> dict[str, torch.Tensor]:
    return {name: each.grad.clone() for name, each in trained.named_parameters() if each.grad is not None}


@pytest.mark.parametrize(
    "objective", [CrossEntropy(0.1), CrossEntropy(0.0), CrossEntropy(0.2, torch.full((SIZE,), 1 / SIZE))]
)
def test_replayed_passes_have_the_loss_and_gradient_of_the_objective(objective: CrossEntropy) -> None:
    trained = model()
    captured = passes(trained, objective=objective)
    used = []
    for seed in range(4):
        read, factor = batch(seed), 1 / (3 + seed)
        trained.zero_grad()
        torch.manual_seed(seed)
        loss = objective(trained, read, POINT)
        (loss.total * factor).backward()
        expected = gradients(trained)
        trained.zero_grad()
        result = captured.run(read, POINT, factor, seed)
        used.append(result is not None)
        if result is None:
            continue
        torch.testing.assert_close(result.total, loss.total.detach())
        torch.testing.assert_close(float(result.cross_entropy), float(loss.cross_entropy), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradients(trained), expected)
    assert used == [False, True, True, True]  # a shape is recorded when it occurs again


def test_gradients_of_several_batches_are_added() -> None:
    trained = model()
    captured = passes(trained)
    assert captured.run(batch(0), POINT, 1.0, 0) is None
    captured.run(batch(1), POINT, 1.0, 1)
    first = gradients(trained)
    trained.zero_grad()
    captured.run(batch(2), POINT, 1.0, 2)
    second = gradients(trained)
    trained.zero_grad()
    for seed in (1, 2):
        captured.run(batch(seed), POINT, 1.0, seed)
    torch.testing.assert_close(gradients(trained), {name: first[name] + second[name] for name in first})


def test_each_shape_and_dropout_has_its_own_recording() -> None:
    """The recordings with former dropout rates are given up, so that they need no memory."""
    captured = passes(model())
    assert [captured.run(batch(seed), POINT, 1.0, seed) is not None for seed in range(2)] == [False, True]
    assert [captured.run(batch(seed, 30), POINT, 1.0, seed) is not None for seed in range(2)] == [False, True]
    shared = [graph.results.gradients for graph in captured._graphs.values() if graph is not None]
    assert len(shared) == 2 and all(one is other for one, other in zip(*shared, strict=True))
    without = TrainingPoint(dropout=0.0)
    assert [captured.run(batch(seed), without, 1.0, seed) is not None for seed in range(2)] == [False, True]


@pytest.mark.parametrize(
    ("packed", "several"),
    [pytest.param("true", True, marks=pytest.mark.slow), ("false", False)],
    ids=["two packed tasks", "one padded task"],
)
def test_a_run_repeats_most_of_its_passes(
    packed: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its dropout rates rise, and if it has several tasks. Its parameters are those of usual passes."""
    recorded: list[CapturedPasses] = []
    used: list[bool] = []
    run = CapturedPasses.run

    def counted(passes: CapturedPasses, *arguments: Any) -> Any:
        result = run(passes, *arguments)
        used.append(result is not None)
        return result

    def stand_in(model: Any, objective: Any, runtime: Runtime, few_shapes: bool) -> CapturedPasses:
        assert few_shapes
        recorded.append(CapturedPasses(model, objective, runtime, repeated))
        return recorded[-1]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(CapturedPasses, "run", counted)
    monkeypatch.setattr(setup, "captured_passes", stand_in)
    batches = ["data.batch.few_shapes=true", f"data.batch.packed={packed}"]
    options = [*write_corpus(tmp_path, 60), *SETTINGS, *batches, "train.dropout_epochs=2", "train.max_steps=40"]
    if several:
        options += [*BESIDE, *(f"auxiliary_tasks.tasks.reversed.{each}" for each in batches)]
    assert main(["train", *options, "--quiet"]) == 0
    assert recorded[0].active and len(used) == 40 * (1 + several)
    assert sum(used) > 0.4 * len(used)
    monkeypatch.setattr(CapturedPasses, "run", lambda *_: None)
    assert main(["train", *options, "--quiet", "--out", "other"]) == 0
    states = [load_file(tmp_path / folder / "model.safetensors") for folder in ("run", "other")]
    torch.testing.assert_close(states[0], states[1], rtol=1e-3, atol=1e-4)


def test_parameters_that_are_unfrozen_later_are_trained() -> None:
    trained = model()
    frozen = trained.encoder.layers[0].feedforward
    frozen.requires_grad_(False)
    captured = passes(trained)
    for seed in range(2):
        captured.run(batch(seed), POINT, 1.0, seed)
    assert trained.decoder.projection.weight.grad is not None
    assert all(each.grad is None for each in frozen.parameters())
    frozen.requires_grad_(True)
    assert [captured.run(batch(seed), POINT, 1.0, seed) is not None for seed in range(2)] == [False, True]
    assert all(each.grad is not None for each in frozen.parameters())


def wrong(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    results, replay = repeated(function)

    def shifted() -> None:
        replay()
        results.gradients[0].add_(1.0)

    return results, shifted


def failing(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    raise RuntimeError("operation not permitted when stream is capturing\nmore lines")


@pytest.mark.parametrize(
    ("capture", "settings", "reason"),
    [
        (wrong, {}, "its results differ from those without it"),
        (failing, {}, "operation not permitted when stream is capturing"),
        (repeated, {"experts": {"count": 2, "active": 1}}, "the model has auxiliary losses or counters"),
    ],
    ids=["wrong results", "an error", "auxiliary losses"],
)
def test_a_recording_that_cannot_be_used_is_not_used(
    capture: Any, settings: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = model(**settings)
    captured = passes(trained, capture)
    captured.run(batch(0), POINT, 1.0, 0)
    result = captured.run(batch(1), POINT, 1.0, 1)
    if result is not None:  # the pass was repeated without the recording
        found = gradients(trained)
        trained.zero_grad()
        torch.manual_seed(1)
        CrossEntropy()(trained, batch(1), POINT).total.backward()
        torch.testing.assert_close(found, gradients(trained))
    assert (result is not None) == (capture is wrong)
    assert not captured.active
    assert captured.run(batch(1), POINT, 1.0, 1) is None
    message = capsys.readouterr().err
    assert "without CUDA graphs" in message and reason in message and "more lines" not in message


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_no_value_is_read_while_a_pass_is_recorded(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one would wait for the GPU, which is impossible in a CUDA graph. The tensors here have no values."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda _: False)  # it does not know the device `meta`
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    packed = batch(0).map_tensors(lambda tensor: tensor.to("meta"))
    padded = replace(packed, packing=None, source_packing=None)
    count = 0
    for settings in list(cases().values())[part::8]:
        config = ModelConfig.model_validate(settings)
        if any(word in str(settings) for word in ("'experts': {", "'hard'", "'batch'")):
            continue  # not recorded
        trained = config.build(SIZE, SIZE).train().to("meta")
        parameters = [each for each in trained.parameters() if each.requires_grad]
        with collecting(1) as auxiliary:
            total, _ = CrossEntropy().static_sums(trained, packed if config.packs else padded)
        assert torch.autograd.grad(total, parameters, allow_unused=True) or auxiliary.penalties
        count += 1
    assert count > 5


def test_there_are_few_shapes() -> None:
    shapes = {few_shapes(torch.ones(rows, length), 99, True) for rows in range(1, 1000) for length in range(1, 65)}
    assert len(shapes) <= 8 * 60
    assert all(few_shapes(torch.ones(rows, 5), 99, True)[0] <= max(8, rows * 1.126 + 1) + 8 for rows in range(1, 3000))
