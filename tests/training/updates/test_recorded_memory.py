"""What a recorded pass or decoding step reads from outside lives as long as the model, whatever is computed meanwhile.

A CUDA graph refers to memory by its address: a table that is replaced for a longer text, another data type or another
mode would be read after it was freed. Tensors from outside are all those that the operations read and did not make,
however the code holds them; only weak references are kept here.
"""

import copy
import gc
import random
from typing import Any

import pytest
import torch
from simulated_graphs import Recording, SimulatedGraphs, as_on_a_gpu, replaced_table  # noqa: F401
from variant_settings import SIZE, cases

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.shapes import BatchShapes
from dragoman.engines.cuda.engine import unsupported
from dragoman.engines.cuda.slots import Slots, SlotSizes
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.positions.sinusoidal import Sinusoidal
from dragoman.nn.positions.union import POSITIONS
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.captured import CapturedPasses

pytestmark = pytest.mark.usefixtures("as_on_a_gpu")

CPU = torch.device("cpu")
POINT = TrainingPoint()
LONG = 520
"""More tokens than the first tables of positions have."""

NOT_RECORDED = ("'experts': {", "'hard'", "'batch'", "'diversity': 0.5")
"""Parts of models with auxiliary losses, random decisions or running statistics."""


def batch(config: ModelConfig, seed: int, rows: int = 3, length: int = 6) -> Batch:
    chance = random.Random(seed)
    sources, targets = ([[chance.randrange(4, SIZE) for _ in range(length)] for _ in range(rows)] for _ in range(2))
    shapes = BatchShapes((999, 999), packed=rows * (length + 1) + 8 if config.packs else None)
    return shapes.apply(collate(sources, targets, range(rows)))  # type: ignore[no-any-return]


def addresses(trained: Seq2Seq, read: Batch) -> set[int]:
    """Return where the tensors are that a forward pass reads, except those of the batch."""
    recording = Recording()
    with torch.no_grad(), recording:
        trained(*read.model_inputs)
    own: set[int] = set()
    read.map_tensors(lambda tensor: own.add(tensor.untyped_storage()._cdata) or tensor)  # type: ignore[func-returns-value]
    return set(recording.outside) - own


def compute_other_things(trained: Seq2Seq, config: ModelConfig) -> None:
    """Long texts, bfloat16, evaluation, a copy in another data type, and a collection of garbage."""
    limits = trained.limits
    length = min(LONG, *(each.positions or LONG for each in (limits.source, limits.target))) - 1
    long = batch(config, 9, 1, length)
    CrossEntropy()(trained, long, POINT)
    with torch.autocast("cpu", torch.bfloat16):
        CrossEntropy()(trained, batch(config, 8), POINT)
    other = copy.deepcopy(trained).double()
    with torch.inference_mode():
        for each in (trained.eval(), other.eval()):
            each(*batch(config, 7).model_inputs)
    trained.train()
    gc.collect()


def check(settings: dict[str, Any]) -> bool:
    """Record a pass of a model and replay it after other computations. Return whether its passes can be recorded."""
    torch.manual_seed(1)
    config = ModelConfig.model_validate(settings)
    trained, graphs = config.build(SIZE, SIZE).train(), SimulatedGraphs()
    captured = CapturedPasses(trained, CrossEntropy(), Runtime(CPU), graphs)
    for seed in range(2):
        captured.run(batch(config, seed), POINT, 0.1, seed)
    if not captured.active:
        return False
    before = addresses(trained, batch(config, 2))
    compute_other_things(trained, config)
    (recording,) = graphs.recordings
    freed = [each.layout[1] for each in recording.outside.values() if each.storage.expired()]
    assert not freed, f"{settings} {freed}"
    assert addresses(trained, batch(config, 2)) == before, settings
    result = captured.run(batch(config, 3), POINT, 0.1, 3)
    assert result is not None and not graphs.stale
    torch.manual_seed(3)
    torch.testing.assert_close(result.total, CrossEntropy()(trained, batch(config, 3), POINT).total.detach())
    return True


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 24))])
def test_a_pass_of_any_model_reads_lasting_memory(part: int) -> None:
    chosen = [settings for settings in cases().values() if not any(word in str(settings) for word in NOT_RECORDED)][
        part::16
    ]
    recorded = [check(settings) for settings in chosen]
    assert sum(recorded) > 0.9 * len(recorded) > 1


STACK: dict[str, Any] = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}


def positioned(positions: dict[str, Any]) -> ModelConfig:
    return ModelConfig.model_validate(
        {"preset": None, "width": 8, "encoder": STACK, "decoder": STACK, "positions": positions}
    )


WITHOUT_LENGTH = ("fraction",)
"""Schemes that need the length of the text, which a decoder does not know."""


@pytest.mark.parametrize("kind", [each for each in sorted(POSITIONS._built_in) if each not in WITHOUT_LENGTH])
def test_tables_of_positions_last(kind: str) -> None:
    config = positioned({"kind": kind})
    trained = config.build(SIZE, SIZE).train()
    recording = Recording()
    with torch.no_grad(), recording:
        trained(*batch(config, 1).model_inputs)
    before = addresses(trained, batch(config, 2))
    own = [each for each in recording.outside.values() if each.storage.cdata in before]
    compute_other_things(trained, config)
    assert own and not [each for each in own if each.storage.expired()]
    assert addresses(trained, batch(config, 2)) == before


def test_a_table_that_is_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sinusoidal, "forward", replaced_table)
    with pytest.raises(AssertionError, match=r"torch\.Size\(\[\d+, 8\]\)"):
        check(positioned({"kind": "sinusoidal"}).model_dump())


DECODED: list[dict[str, Any]] = [
    {"kind": "sinusoidal"},
    {"kind": "sinusoidal", "join": "concatenate", "layout": "halves"},
    {"kind": "rotary"},
    {"kind": "learned"},
    {"kind": "none"},
    {"kind": "index"},
    {"kind": "one_hot", "join": "concatenate", "width": 40},
]


@pytest.mark.parametrize("positions", DECODED, ids=str)
@pytest.mark.parametrize("beam", [1, 2])
def test_a_decoding_step_reads_lasting_memory(positions: dict[str, Any], beam: int) -> None:
    """The slots of longer texts are built while those of short texts are in use, as in a server."""
    torch.manual_seed(1)
    model = positioned(positions).build(SIZE, SIZE).eval()
    assert unsupported(model) is None
    sizes = SlotSizes(2, beam, 8, 12)
    with torch.inference_mode():
        plain, repeated = (Slots(model.decoder, SIZE, sizes) for _ in range(2))  # type: ignore[arg-type]
        for slots in (plain, repeated):
            slots.state["active"].fill_(True)
            slots.state["limit"].fill_(10)
            slots.state["divisors"].fill_(1.0)
            slots.state["largest"].fill_(1.0)
        graphs = SimulatedGraphs()
        _, replay = graphs(repeated.step)
        plain.step()
        for target in (16, 768):
            Slots(model.decoder, SIZE, SlotSizes(1, 1, 8, target)).step()  # type: ignore[arg-type]
        gc.collect()
        assert not [each for each in graphs.recordings[0].outside.values() if each.storage.expired()]
        for _ in range(3):
            replay()
            plain.step()
        assert not graphs.stale
        for name, expected in plain.state.items():
            torch.testing.assert_close(
                repeated.state[name], expected, equal_nan=True, msg=lambda text, name=name: name + text
            )
