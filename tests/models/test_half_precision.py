"""The gradient of every variant in bfloat16 and float16 is close to float32's, without overflow or missing parts."""

import pytest
import torch
from torch import Tensor, nn
from variant_settings import Case, cases

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.training.objectives.cross_entropy import CrossEntropy

SIZE = 20
SCALE = 2.0**10
DRAWING = ("hard", "experts")
"""Variants in which rounding can change the attended position or the expert, and thus the whole gradient."""


def batch() -> Batch:
    draw = torch.Generator().manual_seed(2)
    rows = [torch.randint(4, SIZE, (length,), generator=draw).tolist() for length in (3, 9, 5, 12, 7, 8, 4, 6)]
    return collate(rows, [row[::-1] for row in rows], range(len(rows)))


def gradient(model: nn.Module, precision: torch.dtype) -> Tensor:
    torch.manual_seed(7)
    with torch.autocast("cpu", precision, enabled=precision != torch.float32):
        loss = CrossEntropy()(model, batch())
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss.total / loss.tokens * SCALE, parameters, allow_unused=True)
    return torch.cat([each.flatten() / SCALE for each in found if each is not None])


@pytest.mark.parametrize("case", cases(), ids="-".join)
def test_gradients_survive_half_precision(case: Case) -> None:
    settings = cases()[case]
    torch.manual_seed(1)
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE).train()
    exact = gradient(model, torch.float32)
    for precision, likeness in ((torch.bfloat16, 0.99), (torch.float16, 0.999)):
        found = gradient(model, precision)
        assert found.isfinite().all(), precision
        if not any(word in str(settings) for word in DRAWING):
            assert float(nn.functional.cosine_similarity(found, exact, dim=0)) > likeness, precision
