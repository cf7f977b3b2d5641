"""Passes in bfloat16 throughout on a CPU, with copies of the parameters and kernels in C."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.training.config import LoopConfig
from dragoman.training.machine.journal import Journal
from dragoman.training.machine.threads import Threads
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.objectives.r_drop import RDrop
from dragoman.training.ranks.parallel import SingleProcess
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.copies import ParameterCopies, copies_on_cpu, is_static
from dragoman.training.updates.engine import Engine
from dragoman.training.updates.update import Update

BFLOAT16, CPU = torch.bfloat16, torch.device("cpu")


def model(**settings: Any) -> Seq2Seq:
    stack = {"kind": "transformer", "layers": 2, "heads": 2, "feedforward": 64, **settings}
    torch.manual_seed(1)
    config = {"preset": None, "width": 32, "encoder": stack, "decoder": stack, "dropout": 0.1}
    return ModelConfig.model_validate(config).build(60, 60)


def batch(seed: int, packed: int = 256) -> Batch:
    draw = torch.Generator().manual_seed(seed)
    source, target = [
        [torch.randint(4, 60, (row % 9,), generator=draw).tolist() for row in range(1, 20)] for _ in range(2)
    ]
    return BatchShapes((400, 400), packed=packed).apply(collate(source, target, range(19)))


def gradients(
    folder: Path, trained: Seq2Seq, copies: ParameterCopies | None, threads: Threads | None = None, dropout: float = 0.0
) -> tuple[dict[str, Tensor], float, Engine]:
    """Return the changes of the parameters in a step with rate 1, the loss, and the engine."""
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.0)
    runtime = Runtime(CPU, BFLOAT16)
    engine = Engine(
        LoopConfig(),
        SingleProcess(trained, CrossEntropy()),
        optimiser,
        runtime,
        journal=Journal(folder / "decisions.jsonl"),
        threads=threads,
        copies=copies,
    )
    engine.clip = None
    before = {name: each.detach().clone() for name, each in trained.named_parameters()}
    result = engine.step(Update([batch(1), batch(2)]), TrainingPoint(3, 0.0, dropout), 1.0)
    changes = {name: before[name] - each.detach() for name, each in trained.named_parameters()}
    return changes, result.loss, engine


def copies_of(trained: Seq2Seq, objective: Any = None) -> ParameterCopies | None:
    return copies_on_cpu(trained, objective or CrossEntropy(), Runtime(CPU, BFLOAT16))


@pytest.mark.parametrize("count", [0, 2], ids=["no threads", "two threads"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradients_are_those_of_autocast_within_rounding(tmp_path: Path, count: int, norm: str) -> None:
    threads = Threads(2, 2) if count else None
    trained = model(norm=norm)
    found, loss, engine = gradients(tmp_path / "b", trained, copies_of(trained), threads)
    expected, expected_loss, _ = gradients(tmp_path / "c", model(norm=norm), None)
    if threads is not None:
        threads.close()
    assert engine.copies is not None
    assert abs(loss - expected_loss) < 0.01 * expected_loss
    for name, change in expected.items():
        assert (found[name] - change).norm() <= 0.1 * change.norm() + 1e-4, name


def test_the_parameters_stay_in_float32_and_are_those_of_the_model(tmp_path: Path) -> None:
    trained = model()
    before = list(trained.parameters())
    gradients(tmp_path, trained, copies_of(trained))
    for one, other in zip(before, trained.parameters(), strict=True):
        assert one is other and one.dtype == torch.float32


def test_dropout_is_drawn_from_the_step(tmp_path: Path) -> None:
    trained = [model() for _ in range(3)]
    one, two, without = (
        gradients(tmp_path / str(number), each, copies_of(each), dropout=rate)[1]
        for number, (each, rate) in enumerate(zip(trained, (1.0, 1.0, 0.0), strict=True))
    )
    assert one == two != without


def test_parameters_that_are_frozen_later_have_no_gradient(tmp_path: Path) -> None:
    trained = model()
    copies = copies_of(trained)
    gradients(tmp_path / "a", trained, copies)
    trained.encoder.requires_grad_(False)
    changes, _, _ = gradients(tmp_path / "b", trained, copies)
    for name, change in changes.items():
        assert bool(change.abs().max() == 0) == name.startswith("encoder."), name


def test_models_with_auxiliary_losses_are_computed_by_autocast(tmp_path: Path) -> None:
    experts = {"experts": {"count": 2}}
    trained = model(**experts)
    _, _, engine = gradients(tmp_path, trained, copies_of(trained))
    assert engine.copies is None


def test_layers_that_mix_precisions_are_computed_by_autocast(tmp_path: Path) -> None:
    """Layers of users may have tables in float32."""
    table = torch.eye(32)

    class Own(torch.nn.Module):
        def forward(self, states: Tensor, *_: Any) -> Tensor:
            return states @ table

    trained = model()
    trained.encoder.norm = Own()
    _, loss, engine = gradients(tmp_path, trained, copies_of(trained))
    assert engine.copies is None and loss > 0


def test_other_errors_of_a_pass_are_raised(tmp_path: Path) -> None:
    class Wrong(torch.nn.Module):
        def forward(self, states: Tensor, *_: Any) -> Tensor:
            raise RuntimeError("shapes differ")

    trained = model()
    trained.encoder.norm = Wrong()
    with pytest.raises(RuntimeError, match="shapes differ"):
        gradients(tmp_path, trained, copies_of(trained))


def test_only_losses_of_one_pass_in_bfloat16_are_computed_so() -> None:
    assert copies_of(model()) is not None
    assert copies_of(model(), RDrop(CrossEntropy(), 1.0)) is None
    assert copies_on_cpu(model(), CrossEntropy(), Runtime(CPU, torch.float32)) is None
    assert not is_static(model(normalisation={"kind": "batch"}), CrossEntropy(), Runtime(CPU, BFLOAT16))
