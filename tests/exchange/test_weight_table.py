"""`WeightTable` with the weights of another family, GPT-2: transposed matrices, fused projections, reordered rows."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.weights import LAYER, Weight, WeightTable, linear, repeat

transformers = pytest.importorskip("transformers")

SIZE, WIDTH, LAYERS = 7, 8, 2
ORDER = (4, 5, 6, 2, 3, 1, 0)
"""Our id of each of GPT-2's seven tokens. Our vocabulary has an eighth, with the id 7."""

THEIRS, OURS = f"transformer.h.{LAYER}", f"layers.{LAYER}"
LAYER_WEIGHTS = (
    *linear(f"{THEIRS}.attn.c_attn", *(f"{OURS}.{name}" for name in ("query", "key", "value")), transposed=True),
    *linear(f"{THEIRS}.attn.c_proj", f"{OURS}.output", transposed=True),
    *linear(f"{THEIRS}.mlp.c_fc", f"{OURS}.inner", transposed=True),
    *linear(f"{THEIRS}.mlp.c_proj", f"{OURS}.outer", transposed=True),
    *linear(f"{THEIRS}.ln_1", f"{OURS}.first"),
    *linear(f"{THEIRS}.ln_2", f"{OURS}.second"),
)
TABLE = WeightTable(
    [
        Weight("transformer.wte.weight", ("tokens.weight",), rows=True, fill=-1.0, aliases=("lm_head.weight",)),
        Weight("transformer.wpe.weight", ("positions",)),
        *repeat(LAYER_WEIGHTS, LAYERS),
        *linear("transformer.ln_f", "norm"),
    ],
    ORDER,
    SIZE + 1,
)


def our_model() -> nn.Module:
    def layer() -> nn.Module:
        names = dict.fromkeys(("query", "key", "value", "output"), (WIDTH, WIDTH))
        names |= {"inner": (WIDTH, 4 * WIDTH), "outer": (4 * WIDTH, WIDTH)}
        parts: dict[str, nn.Module] = {name: nn.Linear(*sizes) for name, sizes in names.items()}
        return nn.ModuleDict(parts | {"first": nn.LayerNorm(WIDTH), "second": nn.LayerNorm(WIDTH)})

    model = nn.Module()
    model.tokens, model.norm = nn.Embedding(SIZE + 1, WIDTH), nn.LayerNorm(WIDTH)
    model.positions = nn.Parameter(torch.zeros(5, WIDTH))
    model.layers = nn.ModuleList(layer() for _ in range(LAYERS))
    return model


@pytest.fixture(scope="module")
def gpt2() -> Any:
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=SIZE, n_positions=5, n_embd=WIDTH, n_layer=LAYERS, n_head=2)
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def stored(model: Any) -> dict[str, Tensor]:
    """Return the tensors as in a file, in which the tied projection occurs once."""
    return {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}


@torch.no_grad()
def test_modules_compute_the_same(gpt2: Any) -> None:
    ours = our_model()
    ours.load_state_dict(TABLE.to_ours(stored(gpt2), ours.state_dict(), Path("file")))
    states = torch.randn(3, WIDTH)
    for block, layer in zip(gpt2.transformer.h, ours.layers, strict=True):
        fused = torch.cat([layer[name](states) for name in ("query", "key", "value")], 1)
        torch.testing.assert_close(fused, block.attn.c_attn(states))
        torch.testing.assert_close(layer["output"](states), block.attn.c_proj(states))
        torch.testing.assert_close(layer["outer"](layer["inner"](states)), block.mlp.c_proj(block.mlp.c_fc(states)))
        torch.testing.assert_close(layer["second"](layer["first"](states)), block.ln_2(block.ln_1(states)))
    assert torch.equal(ours.tokens(torch.tensor(ORDER)), gpt2.transformer.wte(torch.arange(SIZE)))
    assert torch.equal(ours.tokens.weight[SIZE], torch.full((WIDTH,), -1.0))


def test_a_round_trip_changes_nothing(gpt2: Any) -> None:
    expected = our_model().state_dict()
    ours = TABLE.to_ours(stored(gpt2), expected, Path("file"))
    again = TABLE.to_theirs(ours)
    assert again.keys() == stored(gpt2).keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in stored(gpt2).items())
    assert all(tensor.is_contiguous() for tensor in [*ours.values(), *again.values()])


def test_all_differences_are_listed(gpt2: Any) -> None:
    tensors = stored(gpt2)
    tensors["transformer.h.1.attn.c_attn.weight"] = torch.zeros(3 * WIDTH, WIDTH)  # not transposed
    tensors["transformer.h.0.attn.bias"] = torch.zeros(1)
    del tensors["transformer.wpe.weight"]
    with pytest.raises(ModelError) as error:
        TABLE.to_ours(tensors, our_model().state_dict(), Path("file"))
    assert str(error.value).splitlines()[1:] == [
        "  missing: transformer.wpe.weight (5, 8)",
        "  wrong shape: transformer.h.1.attn.c_attn.weight is (24, 8), but the model needs (8, 24)",
        "  unknown: transformer.h.0.attn.bias (1,)",
    ]


def test_tensors_without_a_place_are_named() -> None:
    with pytest.raises(ModelError, match=r"no tensor for layers\.0\.gate\.weight, projection\.weight"):
        TABLE.to_theirs(
            {**our_model().state_dict(), "projection.weight": torch.ones(1), "layers.0.gate.weight": torch.ones(1)}
        )
