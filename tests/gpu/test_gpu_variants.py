"""Every model variant on a GPU has the loss, gradient and searches of the CPU, and finite values in half precision."""

import copy
from typing import Any

import pytest
import torch
from searching import searched
from torch import Tensor
from variant_checks import BATCH, SOURCES, built
from variant_settings import Case, Settings, cases

from dragoman.data.batches.batch import Batch, pad
from dragoman.data.batches.shapes import BatchShapes
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import EOS
from dragoman.training.objectives.cross_entropy import CrossEntropy


def gradient(model: Seq2Seq, device: str, batch: Batch = BATCH) -> tuple[float, dict[str, Tensor]]:
    torch.manual_seed(3)
    model.zero_grad()
    loss = CrossEntropy()(model, batch.to(torch.device(device)))
    loss.total.backward()
    found = {name: each.grad.cpu().clone() for name, each in model.named_parameters() if each.grad is not None}
    return float(loss.total), found


def distance(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Return the relative distance over all parameters."""
    squares = [
        (float((found[name].double() - each).square().sum()), float(each.square().sum()))
        for name, each in expected.items()
    ]
    return (sum(one for one, _ in squares) / (sum(other for _, other in squares) + 1e-24)) ** 0.5


def tokens(model: Seq2Seq, device: str, beam: int) -> list[list[tuple[int, ...]]]:
    source, mask = pad(SOURCES, after=(EOS,))
    memory = model.encode(source.to(device), mask.to(device))
    config = SearchConfig(beam=beam, length_factor=0.0, length_margin=6)
    return [[each.tokens for each in found] for found in searched(model.decoder, memory, config)]


def draws(settings: Any) -> bool:
    """Return whether the loss depends on random numbers, which a GPU draws differently."""
    return any(word in str(settings) for word in ("hard", "drawn", "noise"))


@pytest.mark.parametrize("case", cases().items() if torch.cuda.is_available() else [], ids=lambda each: str(each[0]))
def test_a_variant_computes_what_it_computes_on_a_cpu(case: tuple[Case, Settings]) -> None:
    _, settings = case
    model_config = ModelConfig.model_validate(settings)
    model = built(model_config, 1).double().train()
    gpu = copy.deepcopy(model).cuda()
    (loss, expected), (found_loss, found) = gradient(model, "cpu"), gradient(gpu, "cuda")
    if not draws(settings):
        assert found_loss == pytest.approx(loss, rel=1e-9)
        assert distance(found, expected) < 1e-7
        if model_config.packs:
            longest = BATCH.source.size(1), BATCH.labels.size(1)
            packed_loss, packed = gradient(gpu, "cuda", BatchShapes(longest, 64).apply(BATCH))
            assert packed_loss == pytest.approx(loss, rel=1e-9)
            assert distance(packed, expected) < 1e-7
    single = copy.deepcopy(gpu).float()
    with torch.autocast("cuda", torch.bfloat16):
        _, half = gradient(single, "cuda")
    assert all(each.isfinite().all() for each in half.values())
    with torch.inference_mode():
        for beam in (1, 3):
            assert tokens(gpu.eval(), "cuda", beam) == tokens(model.eval(), "cpu", beam)
