"""Passes that are recorded and replayed compute what passes without a recording compute.

A recording on the CPU, which repeats a function and overwrites its results, stands for a CUDA graph.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode
from training_runs import BESIDE, SETTINGS, write_corpus
from variant_settings import cases

from dragoman.cli.main import main
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes, few_shapes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.auxiliary import collecting
from dragoman.nn.dropout import scale_dropout
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.run import setup
from dragoman.training.updates import captured as module
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
    rate = settings.pop("dropout", 0.2)
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16, **settings}
    config = {"preset": None, "width": 8, "dropout": rate, "encoder": stack, "decoder": stack}
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
    for seed in range(4):
        read, factor = batch(seed), 1 / (3 + seed)
        trained.zero_grad()
        torch.manual_seed(seed)
        loss = objective(trained, read, POINT)
        (loss.total * factor).backward()
        expected = gradients(trained)
        trained.zero_grad()
        result = captured.run(read, POINT, factor, seed)
        assert result is not None
        torch.testing.assert_close(result.total, loss.total.detach())
        torch.testing.assert_close(float(result.cross_entropy), float(loss.cross_entropy), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(gradients(trained), expected)
    assert captured.replays == 3  # a shape is recorded when it occurs again


def test_gradients_of_several_batches_are_added() -> None:
    trained = model()
    captured = passes(trained)
    captured.run(batch(0), POINT, 1.0, 0)
    trained.zero_grad()
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

    def replays(point: TrainingPoint, rows: int = 5) -> list[int]:
        before = captured.replays
        return [captured.run(batch(seed, rows), point, 1.0, seed) and captured.replays - before for seed in range(3)]

    assert replays(POINT) == replays(POINT, 30) == [0, 1, 2]
    shared = [graph.results.gradients for graph in captured._graphs.values() if graph is not None]
    assert len(shared) == 2 and all(one is other for one, other in zip(*shared, strict=True))
    assert replays(TrainingPoint(dropout=0.0)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("precision", "settings", "expected"),
    [
        (torch.bfloat16, {}, [0, 1, 2, 3, 4, 5]),
        (torch.float32, {}, [0, 1, 1, 2, 2, 3]),
        (torch.bfloat16, {"dropout": {"residual": 0.1, "attention": 0.1}}, [0, 1, 1, 2, 2, 3]),
    ],
)
def test_recordings_in_bfloat16_are_repeated_with_other_dropout_rates(
    precision: torch.dtype, settings: Any, expected: list[int]
) -> None:
    trained = model(**settings)
    captured = CapturedPasses(trained, CrossEntropy(), Runtime(torch.device("cpu"), precision), repeated)
    found, losses = [], []
    for step in range(6):
        loss = captured.run(batch(0), TrainingPoint(dropout=step // 2 / 2), 1.0, 1)
        assert loss is not None
        found.append(captured.replays)
        losses.append(float(loss.total))
    assert found == expected
    assert losses[0] == losses[1] and losses[2] == losses[3] and len(set(losses)) == 3


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

    def stand_in(model: Any, objective: Any, runtime: Runtime, few_shapes: bool) -> CapturedPasses:
        assert few_shapes
        recorded.append(CapturedPasses(model, objective, runtime, repeated))
        return recorded[-1]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(setup, "captured_passes", stand_in)
    batches = ["data.batch.few_shapes=true", f"data.batch.packed={packed}"]
    options = [*write_corpus(tmp_path, 60), *SETTINGS, *batches, "train.dropout_epochs=2", "train.max_steps=40"]
    if several:
        options += [*BESIDE, *(f"auxiliary_tasks.tasks.reversed.{each}" for each in batches)]
    assert main(["train", *options, "--quiet"]) == 0
    assert recorded[0].active and recorded[0].replays > 0.4 * 40 * (1 + several)
    monkeypatch.setattr(CapturedPasses, "run", lambda *_: None)
    assert main(["train", *options, "--quiet", "--out", "other"]) == 0
    states = [
        {
            name: each
            for name, each in load_file(tmp_path / folder / "model.safetensors").items()
            if not name.endswith("key.bias")  # has no effect; Adam enlarges the rounding errors of its gradient
        }
        for folder in ("run", "other")
    ]
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
    before = captured.replays
    for seed in range(2):
        captured.run(batch(seed), POINT, 1.0, seed)
    assert captured.replays == before + 1
    assert all(each.grad is not None for each in frozen.parameters())


def wrong(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    results, replay = repeated(function)

    def shifted() -> None:
        replay()
        results.gradients[0].add_(1.0)

    return results, shifted


def empty(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    """A graph without operations, as torch records on another device than the current one."""
    return function(), lambda: None


class LateError:
    """A graph whose later replays differ: something that it reads was freed."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.results, self.repeat = repeated(function)
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        return iter((self.results, self.replay))

    def replay(self) -> None:
        self.repeat()
        self.count += 1
        if self.count > 1:
            self.results.gradients[0].mul_(2)


def failing(function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    raise RuntimeError("operation not permitted when stream is capturing\nmore lines")


@pytest.mark.parametrize(
    ("capture", "settings", "reason"),
    [
        (wrong, {}, "its results differ from those without it"),
        (empty, {}, "its results differ from those without it"),
        (LateError, {}, "its results differ from those without it"),
        (failing, {}, "operation not permitted when stream is capturing"),
        (repeated, {"experts": {"count": 2, "active": 1}}, "the model has auxiliary losses or counters"),
    ],
    ids=["wrong results", "no operations", "wrong results later", "an error", "auxiliary losses"],
)
def test_a_recording_that_cannot_be_used_is_not_used(
    capture: Any, settings: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The gradients are those of passes without it, and there is one warning."""
    trained = model(dropout=0.0, **settings)
    captured = passes(trained, capture)
    for seed in range(4):
        trained.zero_grad()
        torch.manual_seed(seed)
        CrossEntropy()(trained, batch(seed), POINT).total.backward()
        expected = gradients(trained)
        trained.zero_grad()
        result = captured.run(batch(seed), POINT, 1.0, seed)
        if "experts" in settings:
            assert result is None and not captured.static
        else:
            torch.testing.assert_close(gradients(trained), expected)
    assert not captured.active
    message = capsys.readouterr().err
    assert message.count("without CUDA graphs") == 1 and reason in message and "more lines" not in message


def test_a_graph_is_compared_again_after_many_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROVE_EVERY", 6)
    compared: list[int] = []
    agree = module._agree
    monkeypatch.setattr(module, "_agree", lambda *some: compared.append(captured.replays) or agree(*some))
    captured = passes(model())
    for seed in range(14):
        captured.run(batch(seed % 3), POINT, 1.0, seed)
    assert compared == [1, 2, 7, 13]


def test_results_that_overflow_are_not_judged() -> None:
    some = [torch.tensor(1.0), torch.tensor(1.0), torch.tensor([1.0, float("inf")])]
    assert module._agree(some, some)
    assert not module._agree([*some[:2], torch.tensor([1.0, float("nan")])], [*some[:2], torch.ones(2)])


def test_without_memory_for_graphs_a_run_goes_on_without_them(capsys: pytest.CaptureFixture[str]) -> None:
    """As long as there are graphs, a pass that does not fit is computed again when they have been deleted."""
    trained = model()
    captured = passes(trained)
    compute, fails = CapturedPasses._compute, [True]

    def limited(each: Any, point: TrainingPoint) -> Any:
        if len(each.rows) == 30 and fails:
            fails.clear()
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute(captured, each, point)

    captured._compute = limited  # type: ignore[method-assign]
    for seed in range(2):
        captured.run(batch(seed), POINT, 1.0, seed)
    assert captured.run(batch(3, 30), POINT, 1.0, 3) is not None
    assert not captured.active and not captured._graphs
    assert "memory" in capsys.readouterr().err
    fails.append(True)  # without graphs, the batch itself is too large
    with pytest.raises(torch.OutOfMemoryError):
        captured.run(batch(3, 30), POINT, 1.0, 3)


def test_packed_batches_in_bfloat16_have_no_casts_inside() -> None:
    """Their gradients are as close to those in float32 as those of autocast, and have the parameters' precision."""
    point, read = TrainingPoint(dropout=0.0), batch(0)
    trained = model(layers=2, dropout=0.0)
    found = {}
    for name, precision in (("wide", torch.float32), ("half", torch.bfloat16)):
        trained.zero_grad()
        runtime = Runtime(torch.device("cpu"), precision)
        with CastCounter() as counter:
            CapturedPasses(trained, CrossEntropy(0.1), runtime, repeated).run(read, point, 0.1, 1)
        found[name] = gradients(trained)
    trained.zero_grad()
    with torch.autocast("cpu", torch.bfloat16), CastCounter() as autocast, scale_dropout(0.0):
        (CrossEntropy(0.1)(trained, read, point).total * 0.1).backward()
    found["autocast"] = gradients(trained)
    assert all(each.dtype == torch.float32 for each in found["half"].values())

    def error(name: str) -> float:
        pairs = [(found[name][key], found["wide"][key]) for key in found["wide"]]
        return float(sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)) ** 0.5

    assert error("half") < max(0.03, 2 * error("autocast"))
    assert counter.casts < autocast.casts / 3


class CastCounter(TorchDispatchMode):
    """Counts conversions between float32 and bfloat16 of matrices."""

    casts = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        if function is torch.ops.aten._to_copy.default and result.dim() > 1 and result.is_floating_point():
            self.casts += 1
        return result


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
