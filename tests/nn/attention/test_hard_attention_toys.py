"""Hard attention learns where to attend, with both gradients; no other path carries a symbol to another position.

The tests are slow; `test_every_variant_learns.py` always trains a model with each gradient, but on an easier task.
"""

import random
from typing import Any

import pytest
import torch
from torch import Tensor
from toys import fit

from dragoman.data.batches.batch import Batch, collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.hard import HardAttention
from dragoman.nn.attention.recording import recording
from dragoman.training.objectives import reinforce

SYMBOLS = range(4, 12)
STEPS, ROWS, PEAK = 300, 64, 5e-3

STACK = {"layers": 1, "heads": 1, "feedforward": 96, "norm": "pre"}
# The usual settings: with less entropy, or a discount of 1, REINFORCE does not learn to reverse in time here.
DECODERS: dict[str, dict[str, Any]] = {
    "transformer": STACK,
    "recurrent": {"kind": "recurrent", "wiring": {"kind": "luong"}, "bridge": "none"},
    "many heads": {**STACK, "layers": 2, "heads": 4},
}
LESS_NOISE = {"baseline": "soft", "soft_updates": 200, "entropy_weight": 0.01}
"""Settings with which REINFORCE trains several heads in several layers: a baseline and a start of soft attention."""
# Kernels of one token: a state contains its own symbol and position, and nothing of its neighbours.
ENCODER = {"kind": "convolutional", "layers": 1, "kernel": 1}

CASES = [
    (gradient, decoder, task)
    for gradient, task in (("straight_through", "reverse"), ("reinforce", "copy"), ("reinforce", "reverse"))
    for decoder in ("transformer", "recurrent")
]


def words(count: int, seed: int, task: str) -> list[list[int]]:
    """Words to reverse all have the same length, because one position cannot reveal both the end and a symbol."""
    draw = random.Random(seed)
    return [draw.choices(SYMBOLS, k=6 if task == "reverse" else draw.randint(3, 6)) for _ in range(count)]


def batch_of(sources: list[list[int]], task: str) -> Batch:
    targets = [source[::-1] if task == "reverse" else source for source in sources]
    return collate(sources, targets, range(len(sources)))


def trained(decoder: str, task: str, seed: int, gradient: str = "reinforce", **settings: Any) -> Seq2Seq:
    torch.manual_seed(seed)
    looking = "attention" if decoder == "recurrent" else "cross_attention"
    chosen = {**DECODERS[decoder], looking: {"kind": "hard", "gradient": gradient, **settings}}
    config = {"preset": None, "width": 48, "encoder": ENCODER, "decoder": chosen, "dropout": 0.0}
    model = ModelConfig.model_validate(config).build(len(SYMBOLS) + 4, len(SYMBOLS) + 4)
    train = words(STEPS * ROWS, seed, task)
    fit(model, (batch_of(train[step * ROWS :][:ROWS], task) for step in range(STEPS)), STEPS, PEAK)
    return model.eval()


@torch.no_grad()
def shares(model: Seq2Seq, task: str) -> tuple[float, float]:
    """Return the fractions of correct tokens and of attention to the right position, for held-out words."""
    batch = batch_of(words(200, 99, task), task)
    with recording() as recorded:
        found = model(batch.source, batch.source_mask, batch.inputs).logits().argmax(-1)
    weights = [each for module, each in recorded.items() if isinstance(module, HardAttention)][-1]
    places = torch.cat(weights, 2)[:, 0].argmax(-1)
    steps, length = torch.arange(places.size(1)), batch.target_mask.sum(1, keepdim=True) - 1
    symbol = steps < length
    wanted = (length - 1 - steps if task == "reverse" else steps).expand_as(places)
    return _share(found == batch.labels, batch.target_mask), _share(places == wanted, symbol)


def _share(right: Tensor, counted: Tensor) -> float:
    return float(right[counted].float().mean())


@pytest.mark.slow
@pytest.mark.parametrize(("gradient", "decoder", "task"), CASES)
def test_learns_where_to_attend(gradient: str, decoder: str, task: str) -> None:
    right, looked = shares(trained(decoder, task, 1, gradient), task)
    assert right >= 0.95, f"{right:.1%} of the tokens right, {looked:.1%} of the looks"
    assert looked >= 0.9, f"{right:.1%} of the tokens right, {looked:.1%} of the looks"


@pytest.mark.slow
def test_many_heads_learn_by_reinforce_with_soft_attention_as_baseline_and_start() -> None:
    """One reward per token is shared by eight selections, so the noise of the others hides the effect of each."""
    right, _ = shares(trained("many heads", "reverse", 1, **LESS_NOISE), "reverse")
    alone, _ = shares(trained("many heads", "reverse", 1), "reverse")
    assert right >= 0.95, f"{right:.1%} of the tokens right"
    assert alone < 0.9, f"{alone:.1%} of the tokens right with the default settings"


@pytest.mark.slow
@pytest.mark.parametrize("decoder", ["transformer", "recurrent"])
def test_without_the_policys_gradient_it_does_not(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entropy and baseline are still trained, and so are all layers that read the attended states."""
    monkeypatch.setattr(reinforce, "policy_loss", lambda log_probability, *_: 0.0 * log_probability.sum())
    right, looked = shares(trained(decoder, "copy", 1), "copy")
    assert right < 0.7, f"{right:.1%} of the tokens right"
    assert looked < 0.5, f"{looked:.1%} of the looks right"
