"""The k best of a row equal those of a stable sort, including ties and grouping."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from dragoman.decode.beam.beam_search import best


def judge(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    ordered, indices = values.sort(dim=1, descending=True, stable=True)
    return ordered[:, :count], indices[:, :count]


@given(
    rows=st.integers(1, 3),
    width=st.integers(1, 900),
    count=st.integers(1, 12),
    levels=st.integers(1, 50),
    seed=st.integers(),
)
def test_equals_a_stable_sort_when_many_values_tie(rows: int, width: int, count: int, levels: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed % 2**32)
    values = torch.randint(-levels, levels + 1, (rows, width), generator=generator).float() / 3
    values[values == levels / 3] = -torch.inf
    zero = values == 0
    values[zero] = torch.where(torch.rand(int(zero.sum()), generator=generator) < 0.5, 0.0, -0.0)
    count = min(count, width)
    found, wanted = best(values, count), judge(values, count)
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1], wanted[1])


def test_equals_a_stable_sort_on_a_vocabulary() -> None:
    values = torch.randn(7, 10_007, generator=torch.Generator().manual_seed(0))
    for rows in (values, values.bfloat16().float()):  # half precision has many ties
        found, wanted = best(rows, 11), judge(rows, 11)
        assert torch.equal(found[0], wanted[0])
        assert torch.equal(found[1], wanted[1])
