"""Every position scheme: its effect, its refusals, and its independence of padding and of the start position."""

from typing import Any

import pytest
import torch
from closeness import assert_close
from pydantic import ValidationError
from random_parameters import perturb
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from dragoman.base.errors import ConfigError, DataError
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.positions.absolute import AbsoluteScheme, Added, Concatenated
from dragoman.nn.positions.learned import Learned, LearnedConfig
from dragoman.nn.positions.naive import FractionConfig, IndexConfig, OneHotConfig
from dragoman.nn.positions.relative import Relative, RelativeConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.sinusoidal import SinusoidalConfig

WIDTH = 6
ABSOLUTE: dict[str, type[AbsoluteScheme]] = {
    "sinusoidal": SinusoidalConfig,
    "learned": LearnedConfig,
    "index": IndexConfig,
    "one_hot": OneHotConfig,
    "fraction": FractionConfig,
}


def vectors(scheme: AbsoluteScheme, start: int, length: int, keep: Tensor | None = None) -> Tensor:
    """The vectors (B, length, WIDTH) that `join: add` adds to zeros."""
    positions = scheme.model_copy(update={"join": "add"}).build_embedding(WIDTH)
    rows = 1 if keep is None else len(keep)
    return positions.embed(torch.zeros(rows, length, WIDTH), start, keep)


def model(width: int = 8, **positions: Any) -> Seq2Seq:
    """Two pre-norm layers per side, with random biases and tables."""
    torch.manual_seed(3)
    stack = {"layers": 2, "heads": 2, "feedforward": 12, "norm": "pre"}
    config = {"preset": None, "width": width, "encoder": stack, "decoder": stack, **positions}
    built = ModelConfig.model_validate(config).build(20, 20).eval()
    return perturb(built)


def test_the_lectures_numbers() -> None:
    ones = torch.ones(WIDTH)
    torch.testing.assert_close(vectors(IndexConfig(), 2, 2)[0], torch.stack((2 * ones, 3 * ones)))
    assert torch.equal(vectors(OneHotConfig(), 1, 3)[0], torch.eye(WIDTH)[1:4])
    assert torch.equal(vectors(OneHotConfig(limit=4), 0, 4)[0], torch.eye(WIDTH)[:4])
    keep = torch.tensor([[True] * 4, [True, True, False, False]])
    found = vectors(FractionConfig(), 0, 4, keep)
    torch.testing.assert_close(found[0, :, 0], torch.tensor([0.25, 0.5, 0.75, 1.0]))
    torch.testing.assert_close(found[1, :2, WIDTH - 1], torch.tensor([0.5, 1.0]))
    torch.testing.assert_close(vectors(FractionConfig(), 0, 4)[0], found[0])


@pytest.mark.parametrize("kind", ABSOLUTE)
def test_concatenated_vectors_are_projected_back(kind: str) -> None:
    torch.manual_seed(1)
    scheme = ABSOLUTE[kind].model_validate({"join": "concatenate", "width": 5})
    positions, added = scheme.build_embedding(WIDTH), scheme.model_copy(update={"join": "add"}).build_embedding(5)
    assert isinstance(positions, Concatenated) and isinstance(added, Added)
    added.encoding.load_state_dict(positions.encoding.state_dict())
    tokens, keep = torch.randn(2, 4, WIDTH), torch.ones(2, 4, dtype=torch.bool)
    p = added.embed(torch.zeros(2, 4, 5), 0, keep)
    expected = tokens @ positions.back.weight[:, :WIDTH].t() + p @ positions.back.weight[:, WIDTH:].t()
    torch.testing.assert_close(positions.embed(tokens, 0, keep), expected + positions.back.bias)


def test_a_learned_table_has_one_row_per_position_and_learns() -> None:
    positions = LearnedConfig(limit=5).build_embedding(WIDTH)
    assert isinstance(positions, Added) and isinstance(positions.encoding, Learned)
    found = positions.embed(torch.zeros(2, 3, WIDTH), 2, None)
    assert torch.equal(found[1], positions.encoding.table[2:])
    found.sum().backward()
    gradient = positions.encoding.table.grad
    assert gradient is not None
    assert torch.equal(gradient.sum(1), torch.tensor([0.0, 0, 2, 2, 2]) * WIDTH)


@pytest.mark.parametrize("scheme", [LearnedConfig(limit=5), OneHotConfig(limit=5)], ids=lambda scheme: scheme.kind)
def test_the_last_position_is_the_limits(scheme: AbsoluteScheme) -> None:
    vectors(scheme, 0, 5)
    vectors(scheme, 4, 1)
    for start, length in ((0, 6), (5, 1), (3, 3)):
        with pytest.raises(DataError, match=f"the text has {start + length} tokens or more, .* only 5 positions"):
            vectors(scheme, start, length)


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ({"kind": "one_hot", "limit": 9}, "8 components support at most 8 positions, not 9"),
        ({"kind": "one_hot", "limit": 9, "join": "concatenate", "width": 4}, "4 components .* not 9"),
        ({"kind": "fraction"}, "fraction need the length of the whole text, which is unknown in a decoder"),
        ({"kind": "relative", "keys": False, "values": False}, "have no effect if keys and values are both false"),
    ],
)
def test_incompatible_schemes_are_refused(positions: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        model(positions=positions)


def test_rotary_needs_equal_even_widths() -> None:
    with pytest.raises(ValidationError, match="have width 3: choose width and heads so that d/h is even"):
        model(6, positions={"kind": "rotary"})
    with pytest.raises(ConfigError, match="widths are 4 and 6"):
        RotaryConfig().build_relative(2, 4, 6, 4)


def test_the_tables_of_distances_have_the_queries_width() -> None:
    """With the scorers general and additive it may differ from the keys'."""
    attention = {"scorer": {"kind": "general"}, "query_width": 3, "key_width": 5}
    stack = {"layers": 1, "heads": 2, "feedforward": 12, "attention": attention}
    config = {"preset": None, "width": 8, "encoder": stack, "decoder": stack, "positions": {"kind": "relative"}}
    built = ModelConfig.model_validate(config).build(20, 20)
    tokens = torch.randint(4, 20, (2, 5))
    assert built(tokens, torch.ones_like(tokens, dtype=torch.bool), tokens).logits().shape == (2, 5, 20)
    shapes = {name.rpartition(".")[2]: value.shape for name, value in built.named_parameters() if "relation" in name}
    assert shapes == {"key_table": (33, 3), "value_table": (33, 4)}


@torch.no_grad()
def test_padding_does_not_change_a_text_of_fractions() -> None:
    built = model(positions={"kind": "fraction", "join": "add"}, target_positions={"kind": "none"})
    source, inputs = torch.randint(4, 20, (1, 5)), torch.randint(4, 20, (1, 3))
    keep = torch.ones(1, 9, dtype=torch.bool)
    keep[:, 5:] = False
    alone = built(source, keep[:, :5], inputs).logits()
    padded = built(nn.functional.pad(source, (0, 4), value=7), keep, inputs).logits()
    assert_close(padded, alone)
    longer = built(torch.cat((source, source[:, :2]), 1), torch.ones(1, 7, dtype=torch.bool), inputs).logits()
    assert not torch.allclose(longer, alone, atol=1e-3)


@torch.no_grad()
def test_an_encoder_without_positions_cannot_tell_the_order() -> None:
    """So results that depend on the order of the source, such as reversing it, are impossible."""
    source, inputs = torch.tensor([[5, 9, 7, 12, 2]]), torch.tensor([[1, 6, 8]])
    keep, order = torch.ones_like(source, dtype=torch.bool), [3, 0, 4, 2, 1]

    def differs(**positions: Any) -> bool:
        built = model(**positions)
        one, two = built(source, keep, inputs).logits(), built(source[:, order], keep, inputs).logits()
        return not torch.allclose(one, two, atol=1e-4)

    sides = {"target_positions": {"kind": "sinusoidal"}}
    assert not differs(positions={"kind": "none"}, **sides)
    for kind in ("sinusoidal", "learned", "relative", "rotary", "alibi", "index", "one_hot", "fraction"):
        assert differs(positions={"kind": kind}, **sides), kind


@torch.no_grad()
def test_alibi_cannot_tell_an_encoders_left_from_its_right() -> None:
    """Its bias is the same on both sides; only the end of the sentence, on one side, breaks the symmetry."""
    built = model(positions={"kind": "alibi"}, target_positions={"kind": "none"})
    source, inputs = torch.tensor([[5, 9, 7, 12]]), torch.tensor([[1, 6, 8]])

    def read(tokens: Tensor) -> Tensor:
        return built(tokens, torch.ones_like(tokens, dtype=torch.bool), inputs).logits()

    assert_close(read(source.flip(1)), read(source))
    end = torch.tensor([[2]])
    assert not torch.allclose(read(torch.cat((source.flip(1), end), 1)), read(torch.cat((source, end), 1)), atol=1e-3)


def test_layer_normalisation_undoes_an_index_that_is_added() -> None:
    """This is the reason why index and fraction are concatenated by default."""
    tokens = torch.randn(1, 5, WIDTH)
    norm = nn.LayerNorm(WIDTH)
    added = tokens + vectors(IndexConfig(), 0, 5)
    assert_close(norm(added), norm(tokens))
    assert IndexConfig().join == FractionConfig().join == "concatenate"


class _Largest(TorchDispatchMode):
    """The largest number of elements of any tensor that an operation returns."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.elements = max(self.elements, result.untyped_storage().nbytes() // result.element_size())
        return result


def test_shaws_tables_make_no_tensor_of_pairs_and_widths() -> None:
    """A sentence's (T, S, d_k) would be 16 times as large as the weights (B, h, T, S) here."""
    batch, heads, length, width = 2, 2, 40, 64
    layer = RelativeConfig(distance=10).build_relative(heads, width, width, width)
    assert isinstance(layer, Relative)
    queries = torch.randn(batch, heads, length, width, requires_grad=True)
    offsets = torch.arange(length)[None] - torch.arange(length)[:, None]
    with _Largest() as largest:
        weights = layer.score_bias(queries, offsets).softmax(-1)
        layer.value_bias(weights, offsets).sum().backward()
    assert largest.elements == batch * heads * length * max(length, width)


def test_the_gradients_of_shaws_tables() -> None:
    layer = Relative(2, 3, 4).double()
    offsets = torch.arange(6)[None] - torch.arange(5)[:, None]
    queries = torch.randn(2, 2, 5, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(2, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *given: layer.score_bias(given[0], offsets), (queries, layer.key_table))
    assert torch.autograd.gradcheck(lambda *given: layer.value_bias(given[0], offsets), (weights, layer.value_table))


def test_a_rotation_cached_in_translation_can_be_used_in_training() -> None:
    rotary = RotaryConfig(base=777.0).build_relative(1, 4, 4, 4)  # a separate base: tables are shared
    with torch.inference_mode():
        rotary.rotate(torch.randn(1, 1, 3, 4), 0)
    queries = torch.randn(1, 1, 3, 4, requires_grad=True)
    rotary.rotate(queries, 0).square().sum().backward()
    assert queries.grad is not None
    torch.testing.assert_close(queries.grad, 2 * queries.detach())  # rotations preserve lengths
    for start in (4, 5000):
        second = rotary.rotate(queries, start)[..., 1, :]
        torch.testing.assert_close(second, rotary.rotate(queries[..., 1:, :], start + 1)[..., 0, :])
