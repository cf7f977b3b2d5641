"""Compiled layers compute the same as uncompiled ones, in a few graphs for all shapes of batches."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from engines import build_engine
from pydantic import ValidationError

from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.tasks.translation.config import TranslationLoopConfig as LoopConfig
from dragoman.tasks.translation.job import check_compilable
from dragoman.training.machine.compilation import compile_layers, explain_compiler_errors, uncompiled
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.profiling.stopwatch import Stopwatch, time_methods
from dragoman.training.updates.update import Update

SIZE, CPU = 30, torch.device("cpu")
LONG = 256
"""Number of keys from which a CPU uses the fused kernel, as a GPU always does."""
SHAPES = ((4, 8, 9), (3, 11, 12), (5, 16, 16), (2, 24, 25), (7, 10, 10))
"""Numbers of sentences, and of tokens of the longest source and target."""


@pytest.fixture(autouse=True)
def nothing_compiled_yet() -> Iterator[None]:
    """Reset torch's count of compilations, which is per process."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Counting:
    """A backend that runs graphs unchanged, and counts them."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        return graph.forward


def batch(rows: int, source: int, target: int) -> Batch:
    """A batch of sentences of decreasing length."""
    words = torch.Generator().manual_seed(source)

    def sentences(longest: int) -> list[list[int]]:
        return [torch.randint(5, SIZE, (max(1, longest - row),), generator=words).tolist() for row in range(rows)]

    return collate(sentences(source), sentences(target), range(rows))


def model(dropout: float = 0.0, **changes: Any) -> Seq2Seq:
    stack = {"layers": 2, "heads": 2, "feedforward": 24, **changes.get("stack", {})}
    changes = {name: value for name, value in changes.items() if name != "stack"}
    settings = {"preset": None, "width": 16, "encoder": stack, "decoder": stack, "dropout": dropout, **changes}
    torch.manual_seed(4)
    return ModelConfig.model_validate(settings).build(SIZE, SIZE)


def gradient(model: Seq2Seq, read: Batch, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    loss = CrossEntropy()(model.train(), read).total
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return torch.cat([each.flatten() for each in gradients if each is not None])


def padded(read: Batch) -> Batch:
    return read


def packed(read: Batch) -> Batch:
    return BatchShapes((LONG * 9, LONG * 9), 64).apply(read)  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "longer"),
    [
        ({}, LONG),
        ({"positions": {"kind": "rotary"}, "stack": {"layers": 1, "norm": "pre", "activation": "swiglu"}}, LONG),
        ({"stack": {"layers": 1, "experts": {"count": 3, "active": 2}}, "decoder": {"kind": "recurrent"}}, 0),
    ],
    ids=["sinusoidal", "rotary", "experts"],
)
def test_gradients_are_those_of_uncompiled_layers(changes: dict[str, Any], longer: int) -> None:
    plain, compiled = model(**changes), model(**changes)
    counting = Counting()
    compile_layers(compiled, CPU, counting)
    for rows, source, target in SHAPES[: 2 if longer and not changes else 1]:
        read = batch(rows, source + longer, target + longer)
        expected = gradient(plain, read)
        for each in (read, packed(read)) if longer and not changes else (read,):
            torch.testing.assert_close(gradient(compiled, each), expected, rtol=1e-4, atol=1e-4)
    assert counting.graphs, "nothing was compiled"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("positions", "shaped"),
    [
        ("sinusoidal", padded),
        ("rotary", padded),
        ("sinusoidal", packed),
    ],
    ids=["sinusoidal", "rotary", "packed"],
)
def test_one_graph_for_all_encoder_layers_and_one_for_all_decoder_layers(
    positions: str, shaped: Callable[[Batch], Batch]
) -> None:
    compiled, counting = model(dropout=0.1, positions={"kind": positions}), Counting()
    compile_layers(compiled, CPU, counting)
    more = 18 if shaped is packed else 0  # further rows, so that their number is not the model's width
    for rows, source, target in SHAPES[: None if positions == "sinusoidal" else 3]:
        gradient(compiled, shaped(batch(rows + more, source + LONG, target + 2 * LONG)))
    # torch treats two sizes that are equal in the first batch as one, and recompiles once
    assert 2 <= counting.graphs <= 4
    before = counting.graphs
    for rows, source, target in SHAPES[:1]:
        gradient(compiled, shaped(batch(rows + more + 9, source + 2 * LONG, target + 3 * LONG)))
    assert counting.graphs == before


def test_translating_is_not_compiled() -> None:
    compiled, counting = model(stack={"layers": 1}), Counting()
    compile_layers(compiled, CPU, counting)
    read = batch(2, LONG, LONG)
    with uncompiled(True):
        plain = compiled(read.source, read.source_mask, read.inputs).hidden
    assert counting.graphs == 0
    torch.testing.assert_close(compiled(read.source, read.source_mask, read.inputs).hidden, plain)
    assert counting.graphs > 0


@pytest.mark.slow
def test_profiling_does_not_compile_the_layers_again() -> None:
    compiled, counting = model(stack={"layers": 1}), Counting()
    compile_layers(compiled, CPU, counting)
    read, watch = batch(2, LONG, LONG), Stopwatch(CPU)
    gradient(compiled, read)
    before = counting.graphs
    watch.running = True
    with time_methods(watch, compiled):
        gradient(compiled, read)
    assert counting.graphs == before > 0
    assert {path[-1] for path in watch.seconds} >= {"encoder", "decoder"}


def test_parameters_keep_their_names() -> None:
    compiled = model()
    names = list(compiled.state_dict())
    compile_layers(compiled, CPU)
    assert list(compiled.state_dict()) == names


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager_decomp_partition", "inductor"])
def test_torchs_own_compiler(backend: str) -> None:
    """Compiled dropout has other masks than uncompiled, but the same ones for the same seed, as resuming requires.

    The first backend runs the graphs of forward and backward pass unchanged; only the second compiles them to C++,
    which takes a minute.
    """
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler on a CPU")
    other = {"stack": {"layers": 1}, "decoder": {"kind": "recurrent"}}
    plain, compiled, dropping = model(**other), model(**other), model(dropout=0.3, **other)
    compile_layers(compiled, CPU, backend)
    dropping.load_state_dict(compiled.state_dict())
    read = batch(3, 8, 9)
    torch.testing.assert_close(gradient(compiled, read), gradient(plain, read), rtol=1e-4, atol=1e-4)
    compile_layers(dropping, CPU, backend)
    assert torch.equal(gradient(dropping, read, seed=2), gradient(dropping, read, seed=2))
    assert not torch.equal(gradient(dropping, read, seed=2), gradient(dropping, read, seed=3))


def test_compiler_failures_are_reported(tmp_path: Path) -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no compiler here\nwith a long story")

    compiled = model(stack={"layers": 1})
    compile_layers(compiled, CPU, failing)
    optimiser = torch.optim.SGD(compiled.parameters(), lr=0.0)
    decisions = Journal(tmp_path / "decisions.jsonl")
    engine = build_engine(compiled, CrossEntropy(), optimiser, decisions, 1.0)
    with pytest.raises(ConfigError, match=r"could not be compiled \(.*no compiler here.*remove train.compile"):
        engine.step(Update([batch(*SHAPES[0])]), TrainingPoint(1), 0.1)


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="of another kind"), explain_compiler_errors():
        raise RuntimeError("of another kind")


def test_a_model_without_transformer_layers_is_refused() -> None:
    train = LoopConfig.model_validate({"compile": True})
    check_compilable(ModelConfig(), train)
    check_compilable(ModelConfig.model_validate({"decoder": {"kind": "recurrent"}}), train)
    with pytest.raises(ConfigError, match="a recurrent model has none"):
        check_compilable(ModelConfig.model_validate({"preset": "rnn"}), train)


@pytest.mark.parametrize(
    "settings", [{"objective": {"kind": "sequence_reward"}}, {"teacher_forcing": {"kind": "linear", "steps": 10}}]
)
def test_reading_its_own_output_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="reads its own output"):
        LoopConfig.model_validate({"compile": True, **settings})
    LoopConfig.model_validate(settings)
