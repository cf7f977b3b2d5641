"""Peak memory of a training step with additive multi-head attention: scores, but no hidden layer per pair."""

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.data.batches.batch import collate
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.attention import additive_scores as module
from dragoman.training.objectives.cross_entropy import CrossEntropy

PAIRS, HEADS, BLOCK = 2, 4, 1 << 17
LENGTHS = (64, 128, 256)


class Allocated(TorchDispatchMode):
    """Bytes of all tensors that operations have created and that are still alive, and their maximum so far."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        result = function(*arguments, **(keywords or {}))
        for each in result if isinstance(result, tuple | list) else [result]:
            if isinstance(each, Tensor):
                storage = each.untyped_storage()
                self.held[storage._cdata] = StorageWeakRef(storage), storage.nbytes()  # type: ignore[no-untyped-call]
        if sum(size for _, size in self.held.values()) > self.peak:  # an upper bound: some may have been freed
            self.held = {key: each for key, each in self.held.items() if not each[0].expired()}
            self.peak = max(self.peak, sum(size for _, size in self.held.values()))
        return result


def peak(length: int, width: int) -> int:
    """Bytes of an update: one layer per side, so three attentions of B·h·T·S pairs; `width` per head inside tanh."""
    scorer = {"scorer": {"kind": "additive", "width": width}}
    side = {"kind": "transformer", "layers": 1, "heads": HEADS, "feedforward": 16, "attention": scorer}
    settings = {"preset": None, "width": 16, "encoder": side, "decoder": {**side, "cross_attention": scorer}}
    torch.manual_seed(1)
    model = ModelConfig.model_validate(settings).build(8, 8).train()
    optimiser = torch.optim.Adam(model.parameters())
    texts = [[4] * (length - 1)] * PAIRS  # and the end, so T = S = length
    batch = collate(texts, texts, range(PAIRS))
    with Allocated() as allocated:
        CrossEntropy()(model, batch).total.backward()
        optimiser.step()
    return allocated.peak


def matrices(peaks: list[int]) -> float:
    """Growth of the peak in units of B·h·T·S float32: the second coefficient of a parabola by three lengths."""
    (one, two, three), (first, second, third) = LENGTHS, peaks
    curvature = ((third - second) / (three - two) - (second - first) / (two - one)) / (three - one)
    return curvature / (4 * PAIRS * HEADS)


def test_memory_of_a_training_step_grows_as_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the hidden width does not change the growth with T·S; three attentions keep only necessary tensors."""
    monkeypatch.setattr(module, "_CPU_BLOCK", BLOCK)
    narrow, wide = (matrices([peak(length, width) for length in LENGTHS]) for width in (8, 16))
    assert 3 < narrow < 8
    assert abs(wide - narrow) < 0.5


def test_the_plain_formula_would_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CPU_BLOCK", 1 << 40)
    assert matrices([peak(length, 8) for length in LENGTHS]) > 20
