"""Sinusoidal positions against the formula of the paper, at any length."""

from math import cos, sin

import pytest
import torch

from dragoman.base.errors import DataError
from dragoman.nn.embedding import Embedding, token_table
from dragoman.nn.positions.absolute import Added
from dragoman.nn.positions.sinusoidal import Sinusoidal, SinusoidalConfig, sinusoids


def formula(position: int, place: int, width: int, base: float) -> float:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(pos / base^(2i/d))."""
    angle = position / base ** (2 * (place // 2) / width)
    return sin(angle) if place % 2 == 0 else cos(angle)


def added(scheme: Sinusoidal, length: int, start: int = 0) -> torch.Tensor:
    return Added(scheme).embed(torch.zeros(1, length, scheme.width), start, None)[0]


@pytest.mark.parametrize(
    ("length", "width", "base"), [(40, 16, 10000.0), (9, 7, 10000.0), (600, 8, 100.0), (3, 2, 9.0)]
)
def test_equals_the_formula(length: int, width: int, base: float) -> None:
    expected = [[formula(position, place, width, base) for place in range(width)] for position in range(length)]
    torch.testing.assert_close(sinusoids(length, width, base), torch.tensor(expected), rtol=0, atol=1e-6)
    scheme = Sinusoidal(width, base)
    torch.testing.assert_close(added(scheme, length), torch.tensor(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [16, 7])
def test_halves_are_the_same_numbers_with_sines_first(width: int) -> None:
    paper, halves = sinusoids(600, width), sinusoids(600, width, layout="halves")
    assert torch.equal(halves, torch.cat((paper[:, 0::2], paper[:, 1::2]), 1))
    assert torch.equal(added(Sinusoidal(width, layout="halves"), 600), halves)  # also where the table grows


def test_a_limit_refuses_longer_texts() -> None:
    limited = Sinusoidal(8, limit=5)
    assert added(limited, 5).shape == (5, 8)
    with pytest.raises(DataError, match=r"6 tokens or more, but the model has only 5 positions"):
        added(limited, 1, start=5)


@pytest.mark.parametrize("start", [0, 1, 17, 511, 512, 3000])
def test_a_start_position_selects_a_slice(start: int) -> None:
    scheme = Sinusoidal(12)
    assert torch.equal(added(scheme, 5, start), added(scheme, start + 5)[start:])
    fresh = added(Sinusoidal(12), 5, start)
    torch.testing.assert_close(fresh, sinusoids(start + 5, 12)[start:])


@pytest.mark.parametrize(("first", "length", "start"), [(2, 5, 0), (2, 511, 3), (1000, 4, 1)])
def test_the_first_position_has_any_number(first: int, length: int, start: int) -> None:
    scheme = SinusoidalConfig(first=first, limit=start + length).encoding(12)
    assert torch.equal(added(scheme, length, start), sinusoids(first + start + length, 12)[first + start :])


def test_a_table_that_grew_in_translation_can_be_used_in_training() -> None:
    scheme = Sinusoidal(8)
    with torch.inference_mode():
        added(scheme, 700)
    values = torch.zeros(1, 900, 8, requires_grad=True)
    for length in (650, 900):
        (Added(scheme).embed(values[:, :length], 0, None) * scheme(0, length)).sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(added(scheme, 900), sinusoids(900, 8))


def test_the_type_of_the_embeddings_is_kept_and_nothing_is_stored() -> None:
    scheme = Sinusoidal(8)
    assert Added(scheme).embed(torch.zeros(1, 3, 8, dtype=torch.bfloat16), 0, None).dtype == torch.bfloat16
    assert not scheme.state_dict() and not list(scheme.parameters())


def test_embeddings_are_scaled_by_the_root_of_the_width() -> None:
    table = token_table(11, 16)
    embedding = Embedding(table, SinusoidalConfig().build_embedding(16), 0.0)
    tokens = torch.tensor([[3, 9, 3]])
    expected = table.weight[tokens] * 4 + sinusoids(8, 16)[5:]
    torch.testing.assert_close(embedding(tokens, start=5), expected)
    unscaled = Embedding(table, SinusoidalConfig().build_embedding(16), 0.0, scaled=False)
    torch.testing.assert_close(unscaled(tokens, start=5), table.weight[tokens] + sinusoids(8, 16)[5:])
