"""One token is retrieved among 32, and in the slow tests among 8192, by models of linear cost. Chance is 1 in 8.

Soft attention of the decoder reaches every position of the source; as the target is short, its cost is linear in the
source too. One model has linear attention over the source and a window in the decoder: distant tokens are never
compared, so a target as long as the source would have the same cost per token. `python benchmarks/retrieval.py` trains
a larger model to retrieve eight terms at once, and measures the cost.

Each encoder gets a task within its abilities: with a window, to detect that the previous token is the mark, at any
distance from everything else; with linear attention, whose weights are too even to pick out a neighbour, to pass on a
token that is itself marked. Texts grow during training, because with random parameters, attention spread over 8192
tokens contains almost nothing of a single one.
"""

from typing import Any

import numpy as np
import pytest
import torch
from searching import searched

from dragoman.data.batches.batch import Batch, collate, pad
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.symbols import EOS
from dragoman.training.objectives.cross_entropy import CrossEntropy

LETTERS, LONGEST = 8, 8192
MARK = 4 + LETTERS
"""Ids: letters from 4 on, then the mark, then marked letters."""
SIZE = MARK + 1 + LETTERS
FLAT = {"attention": {"kind": "window", "window": 4}, "cross_attention": {"kind": "linear"}}
"""A decoder whose cost per token does not depend on the lengths of source and target."""


def draw(rng: np.random.Generator, rows: int, length: int, task: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sources of random letters that contain the mark before one of them, or one marked letter; target: that letter."""
    sources = rng.integers(4, MARK, (rows, length))
    places = rng.integers(1, length, rows)
    answers = sources[np.arange(rows), places]
    if task == "letter after the mark":
        sources[np.arange(rows), places - 1] = MARK
    else:
        sources[np.arange(rows), places] += MARK + 1 - 4
    return list(sources), list(answers[:, None])


def batch(rng: np.random.Generator, length: int, task: str) -> Batch:
    rows = max(2, min(32, 2048 // length))
    return collate(*draw(rng, rows, length, task), range(rows))


SLOW = pytest.mark.slow
CURRICULUM = ((8, 150), (32, 50), (128, 40), (512, 30), (2048, 15), (LONGEST, 6))
"""Lengths of training texts, and numbers of updates."""
LENGTHS = pytest.mark.parametrize(
    "longest", [32, *(pytest.param(each, marks=SLOW) for each in (128, 512, 2048, LONGEST))]
)
"""Every change is tested on texts of 32 tokens."""


@pytest.mark.parametrize(
    ("task", "encoder", "decoder", "positions"),
    [
        ("letter after the mark", {"kind": "window", "window": 2}, {}, {"kind": "relative"}),
        pytest.param("marked letter", {"kind": "linear"}, {}, {"kind": "none"}, marks=SLOW),
        pytest.param("letter after the mark", {"kind": "window", "window": 2}, FLAT, {"kind": "relative"}, marks=SLOW),
    ],
    ids=["window", "linear", "whole model"],
)
@LENGTHS
def test_finds_one_token_in_a_long_text(
    task: str, encoder: dict[str, Any], decoder: dict[str, Any], positions: dict[str, Any], longest: int
) -> None:
    torch.manual_seed(4)
    rng = np.random.default_rng(3)
    stack = {"layers": 1, "heads": 2, "feedforward": 32, "norm": "pre"}
    settings = {
        "preset": None,
        "width": 32,
        "encoder": {**stack, "attention": encoder},
        "decoder": {**stack, **decoder},
        "positions": positions,
        "dropout": 0.0,
    }
    model = ModelConfig.model_validate(settings).build(SIZE, SIZE).train()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    objective = CrossEntropy(label_smoothing=0.0)
    for length, steps in CURRICULUM:
        for _ in range(steps if length <= longest else 0):
            optimiser.zero_grad()
            loss = objective(model, batch(rng, length, task))
            (loss.total / loss.tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    model.eval()
    sources, answers = draw(np.random.default_rng(4), 24, longest, task)
    tokens, keep = pad(sources, after=(EOS,))
    with torch.inference_mode():
        found = searched(model.decoder, model.encode(tokens, keep), SearchConfig(beam=1))
    right = sum(each[0].tokens == tuple(answer) for each, answer in zip(found, answers, strict=True))
    assert right >= 22, f"{right} of 24 right"


@pytest.mark.parametrize(
    ("attention", "positions"),
    [
        ({"kind": "window", "window": 4}, {"kind": "relative"}),
        pytest.param({"kind": "linear"}, {"kind": "none"}, marks=SLOW),
    ],
    ids=["window", "linear"],
)
@LENGTHS
def test_a_decoder_remembers_a_token_of_a_long_text(
    attention: dict[str, Any], positions: dict[str, Any], longest: int
) -> None:
    """Asked at the end of the target tokens: for the letter three tokens earlier, or for the marked one."""
    torch.manual_seed(4)
    rng = np.random.default_rng(3)
    windowed = attention["kind"] == "window"
    stack = {"layers": 1, "heads": 2, "feedforward": 32, "norm": "pre"}
    decoder = {**stack, "attention": attention}
    settings = {"preset": None, "width": 32, "encoder": stack, "decoder": decoder, "dropout": 0.0}
    positions = {"positions": {"kind": "none"}, "target_positions": positions}
    model = ModelConfig.model_validate({**settings, **positions}).build(SIZE, SIZE).train()

    def ask(rows: int, length: int, parts: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits after the last of `length` tokens, read in `parts` steps, and the expected letter."""
        texts, answers = draw(rng, rows, length, "letter after the mark" if windowed else "marked letter")
        tokens = torch.from_numpy(np.stack(texts))
        letters = tokens[:, -4].clone() if windowed else torch.from_numpy(np.stack(answers)[:, 0])
        if windowed:
            letters = tokens[:, -4] = torch.from_numpy(rng.integers(4, MARK, rows))
        source = torch.full((rows, 1), EOS)
        state = model.decoder.start(model.encode(source, torch.ones_like(source, dtype=torch.bool)))
        for part in tokens.split(-(-length // parts), 1):
            output, state = model.decoder.step(part, state)
        return output.last_logits(), letters

    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    for length, steps in CURRICULUM:
        for _ in range(steps if length <= longest else 0):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(*ask(max(2, min(32, 2048 // length)), length)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    model.eval()
    with torch.inference_mode():
        logits, letters = ask(24, longest, parts=64)
    right = int((logits.argmax(1) == letters).sum())
    assert right >= 22, f"{right} of 24 right"
