"""Masks: who may attend whom."""

import pytest
import torch

from dragoman.nn.attention.soft import normalise
from dragoman.nn.mask import Mask

CPU = torch.device("cpu")


@pytest.mark.parametrize(("new", "total"), [(2, 2), (5, 5), (2, 7), (6, 7)])
def test_causal_sees_itself_and_all_before(new: int, total: int) -> None:
    mask = Mask.causal(new, total, CPU)
    assert mask is not None
    expected = [[key <= total - new + query for key in range(total)] for query in range(new)]
    assert mask.keep.shape == (1, 1, new, total)
    assert mask.keep[0, 0].tolist() == expected


@pytest.mark.parametrize("total", [1, 9])
def test_one_new_token_hides_nothing(total: int) -> None:
    assert Mask.causal(1, total, CPU) is None


def test_padding_hides_the_same_keys_from_every_query() -> None:
    keep = torch.tensor([[True, True, False], [True, False, False]])
    mask = Mask.padding(keep)
    expanded = mask.keep.expand(2, 4, 5, 3)
    for query in range(5):
        for head in range(4):
            assert torch.equal(expanded[:, head, query], keep)
    assert not mask.has_empty_rows
    assert torch.equal(mask.bias == 0, mask.keep)
    assert bool((mask.bias[~mask.keep] == float("-inf")).all())


def test_weights_are_zero_where_masked_and_sum_to_one() -> None:
    torch.manual_seed(1)
    queries, keys = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8)
    keep = torch.tensor([[True] * 6, [True, False, True, True, False, False]])
    weights = normalise(queries @ keys.transpose(2, 3), Mask.padding(keep))
    assert bool((weights[1, :, :, ~keep[1]] == 0).all())
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    kept = normalise(queries[1:] @ keys[1:, :, keep[1]].transpose(2, 3), None)
    torch.testing.assert_close(weights[1:, :, :, keep[1]], kept)


def test_a_row_without_keys_is_zero_and_so_is_its_gradient() -> None:
    torch.manual_seed(1)
    queries = torch.randn(2, 1, 3, 4, requires_grad=True)
    keep = torch.tensor([[True, True], [False, False]])
    mask = Mask.padding(keep)
    assert mask.has_empty_rows
    weights = normalise(queries @ torch.randn(2, 1, 2, 4).transpose(2, 3), mask)
    assert bool((weights[1] == 0).all())
    weights.square().sum().backward()
    assert queries.grad is not None
    assert bool((queries.grad[1] == 0).all())
    assert bool(queries.grad.isfinite().all()) and bool((queries.grad[0] != 0).any())
