"""Small recurrent translators learn to copy and to reverse: all cells, wirings, experts, and without attention."""

import random
from typing import Any

import pytest
import torch
from recurrent_models import SYSTEM_WIRINGS, WIRINGS
from searching import searched
from toys import fit

from dragoman.data.batches.batch import Batch, collate
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq

SYMBOLS = range(4, 12)
ROWS, PEAK = 48, 7e-3


def words(count: int, seed: int, longest: int) -> list[list[int]]:
    draw = random.Random(seed)
    return [draw.choices(SYMBOLS, k=draw.randint(3, longest)) for _ in range(count)]


def batch_of(sources: list[list[int]], task: str) -> Batch:
    targets = [source[::-1] if task == "reverse" else source for source in sources]
    return collate(sources, targets, range(len(sources)))


CASES = [
    ("gru", "luong", "reverse", {"attention": {"scorer": {"kind": "general"}}}, 6, 180),
    ("lstm", "bahdanau", "reverse", {}, 6, 180),
    ("gru", "bahdanau", "copy", {"attention": None, "bridge": "both"}, 4, 240),
    ("gru", "tutorial", "copy", {"bridge": "both"}, 6, 220),
    ("rnn", "bahdanau", "reverse", {}, 6, 180),
    ("gru", "bahdanau", "reverse", {}, 6, 180),
    ("gru", "feeding", "copy", {"attention": {"scorer": {"kind": "general"}}, "bridge": "none"}, 6, 320),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "wiring", "task", "settings", "longest", "steps"), CASES)
def test_learns(cell: str, wiring: str, task: str, settings: dict[str, Any], longest: int, steps: int) -> None:
    torch.manual_seed(1)
    side = {"kind": "recurrent", "cell": cell}
    config = {
        "preset": None,
        "width": 48,
        "encoder": side,
        "decoder": {**side, "wiring": WIRINGS[wiring], **settings},
        "dropout": 0.0,
    }
    model = ModelConfig.model_validate(config).build(len(SYMBOLS) + 4, len(SYMBOLS) + 4)
    reaches(model, task, longest, steps)


GNMT = {
    "encoder": {"bidirectional": "first", "connections": {"kind": "residual", "first_layer": 3}},
    "decoder": {"connections": {"kind": "residual", "first_layer": 3}, "wiring": SYSTEM_WIRINGS["gnmt"]},
}
DEEP_ATT = {
    "encoder": {"bidirectional": "interleaved", "connections": {"kind": "fast_forward"}},
    "decoder": {"connections": {"kind": "fast_forward"}, "wiring": SYSTEM_WIRINGS["deep_att"]},
}
EXPERTS = {
    "count": 8, "active": 4, "feedforward": 48, "capacity": None, "balance": 0, "importance": 0.01,
    "noise": {"load": 0.01}, "sigmoid": True,
}  # fmt: skip
MOE = {
    "encoder": {"layers": 3, "bidirectional": "first", "experts": {**EXPERTS, "after_layers": [2]}},
    "decoder": {"layers": 2, "wiring": SYSTEM_WIRINGS["gnmt"], "experts": {**EXPERTS, "after_layers": [1]}},
}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("system", [GNMT, DEEP_ATT, MOE], ids=["GNMT", "Deep-Att", "MoE"])
def test_deep_systems_learn(system: dict[str, Any], task: str) -> None:
    """LSTM stacks of two to four layers."""
    torch.manual_seed(1)
    side = {"kind": "recurrent", "cell": "lstm", "layers": 4}
    config = {"preset": None, "width": 48, "dropout": 0.0} | {key: {**side, **each} for key, each in system.items()}
    reaches(ModelConfig.model_validate(config).build(len(SYMBOLS) + 4, len(SYMBOLS) + 4), task, 6, 320)


def reaches(model: Seq2Seq, task: str, longest: int, steps: int) -> None:
    """Train the model and require 95% of the symbols of unseen sequences to be right."""
    train, held_out = words(steps * ROWS, 1, longest), words(200, 2, longest)
    fit(model, (batch_of(train[step * ROWS :][:ROWS], task) for step in range(steps)), steps, PEAK)
    model.eval()
    batch = batch_of(held_out, task)
    with torch.inference_mode():
        memory = model.encode(batch.source, batch.source_mask)
        found = searched(model.decoder, memory, SearchConfig(beam=1))
    wanted = [source[::-1] if task == "reverse" else source for source in held_out]
    right = sum(
        sum(one == other for one, other in zip(best[0].tokens, target, strict=False))
        for best, target in zip(found, wanted, strict=True)
    )
    share = right / sum(map(len, wanted))
    assert share >= 0.95, f"{share:.1%} of the symbols right"
