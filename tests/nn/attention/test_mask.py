"""Masks: which keys a query may attend, padding, causality and graphs."""

import pytest
import torch

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.linear import LinearAttentionConfig
from dragoman.nn.attention.soft import SoftAttentionConfig
from dragoman.nn.attention.weights import normalise
from dragoman.nn.attention.window import WindowAttentionConfig
from dragoman.nn.mask import Mask

CPU = torch.device("cpu")


@pytest.mark.parametrize(("new", "total"), [(2, 2), (5, 5), (2, 7), (6, 7)])
def test_causal_sees_itself_and_all_before(new: int, total: int) -> None:
    mask = Mask.causal(new, total, CPU)
    assert mask is not None
    expected = [[key <= total - new + query for key in range(total)] for query in range(new)]
    assert mask.allowed.shape == (1, 1, new, total)
    assert mask.allowed[0, 0].tolist() == expected


@pytest.mark.parametrize("total", [1, 9])
def test_one_new_token_hides_nothing(total: int) -> None:
    assert Mask.causal(1, total, CPU) is None


def test_padding_hides_the_same_keys_from_every_query() -> None:
    keep = torch.tensor([[True, True, False], [True, False, False]])
    mask = Mask.padding(keep)
    expanded = mask.allowed.expand(2, 4, 5, 3)
    for query in range(5):
        for head in range(4):
            assert torch.equal(expanded[:, head, query], keep)
    assert not mask.has_empty_rows
    assert torch.equal(mask.bias == 0, mask.allowed)
    assert bool((mask.bias[~mask.allowed] == float("-inf")).all())


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


GRAPHS = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(3)) < 0.5
NODES = torch.tensor([[True] * 5, [True, True, True, False, False]])


@pytest.mark.parametrize("recorded", [False, True], ids=["fused", "explicit"])
def test_attention_over_a_graph_equals_torch(recorded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared with torch's own multi-head attention with the same weights, whose mask is True at hidden keys."""
    monkeypatch.setattr("dragoman.nn.attention.soft._FUSED_FROM_KEYS", 10**6 if recorded else 1)
    torch.manual_seed(1)
    ours = SoftAttentionConfig().build(AttentionSizes(query=8, memory=8, output=8, heads=2)).double()
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    states, edges = torch.randn(2, 5, 8, dtype=torch.float64), GRAPHS | torch.eye(5, dtype=torch.bool)
    # padding attends to itself; otherwise torch gives NaN
    hidden = ~(edges & NODES[:, None, :] | torch.eye(5, dtype=torch.bool))
    expected, _ = theirs(states, states, states, attn_mask=hidden.repeat_interleave(2, 0))
    found = ours.self_attend(states, Mask.graph(edges, NODES))
    torch.testing.assert_close(found[NODES], expected[NODES])


def test_a_node_without_edges_attends_to_nothing() -> None:
    torch.manual_seed(1)
    edges = torch.zeros(3, 3, dtype=torch.bool)
    edges[0, 1] = True
    weights = normalise(torch.randn(2, 4, 3, 3), Mask.graph(edges))
    assert torch.equal(weights, torch.tensor([[0.0, 1, 0], [0, 0, 0], [0, 0, 0]]).expand(2, 4, 3, 3))


@pytest.mark.parametrize("config", [WindowAttentionConfig(), LinearAttentionConfig()], ids=["window", "linear"])
def test_attention_that_never_compares_all_pairs_refuses_a_graph(config: WindowAttentionConfig) -> None:
    attention = config.build(AttentionSizes(query=8, memory=8, output=8, heads=2))
    with pytest.raises(ConfigError, match=f"kind {config.kind} cannot be restricted to the edges of a graph"):
        attention.self_attend(torch.randn(2, 5, 8), Mask.graph(GRAPHS, NODES))
