"""With R-Drop a small model learns to copy, and its passes with different dropout masks agree better than without."""

import pytest
import torch

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.r_drop import RDrop

SIZE = 14


def batch(draw: torch.Generator, rows: int) -> Batch:
    lengths = torch.randint(3, 6, (rows,), generator=draw).tolist()
    words = [torch.randint(4, SIZE, (length,), generator=draw).tolist() for length in lengths]
    return collate(words, words, range(rows))


def trained(objective: CrossEntropy | RDrop) -> Seq2Seq:
    torch.manual_seed(1)
    stack = {"layers": 1, "heads": 2, "feedforward": 64}
    settings = {"preset": None, "width": 32, "encoder": stack, "decoder": stack, "dropout": 0.1}
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE).train()
    optimiser, draw = torch.optim.Adam(model.parameters(), 4e-3), torch.Generator().manual_seed(1)
    for _ in range(200):
        pairs = batch(draw, 32)
        optimiser.zero_grad()
        (objective(model, pairs).total / pairs.target_tokens).backward()
        optimiser.step()
    return model


@pytest.mark.slow  # loss and gradient are compared with the equations in `test_r_drop.py`
def test_it_learns_and_its_passes_agree() -> None:
    plain = CrossEntropy()
    with_it, without = trained(RDrop(plain, 5)), trained(plain)
    held_out = batch(torch.Generator().manual_seed(2), 200)
    torch.manual_seed(3)
    apart = [RDrop(plain, 5.0)(model.train(), held_out).auxiliary["r_drop"] for model in (with_it, without)]
    assert apart[0] < apart[1] / 2, apart
    with torch.no_grad():
        model = with_it.eval()
        right = model(held_out.source, held_out.source_mask, held_out.inputs).logits().argmax(2) == held_out.labels
    assert float(right[held_out.target_mask].float().mean()) > 0.9
