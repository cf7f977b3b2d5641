"""Graph attention against torch-geometric's GATConv, and against soft attention whose mask is the graph."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from dragoman.nn.attention.graph import GraphAttention, SparseRows, softmax_over_edges
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.scorers import AdditiveConfig, GeneralConfig, LeakyReLUConfig, ScaledDotConfig, ScorerConfig
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import Mask

NODES, WIDTH, HEADS, HEAD_WIDTH = 9, 6, 3, 4


def random_edges(seed: int, nodes: int = NODES, share: float = 0.3) -> Tensor:
    """A symmetric graph without self-loops; sparse graphs have isolated nodes."""
    draw = np.random.default_rng(seed)
    adjacency = np.triu(draw.random((nodes, nodes)) < share, 1)
    return torch.from_numpy(np.stack(np.nonzero(adjacency | adjacency.T)))


def layer(combine: str, scorer: ScorerConfig | None = None, seed: int = 1) -> GraphAttention:
    torch.manual_seed(seed)
    built = GraphAttention(
        WIDTH,
        HEADS,
        HEAD_WIDTH,
        scorer=scorer or LeakyReLUConfig(),
        combine=combine,
        dropout=0.0,
        attention_dropout=0.0,
    ).double()  # type: ignore[arg-type]
    with torch.no_grad():
        built.bias.normal_()
    return built


@pytest.mark.parametrize("combine", ["concatenate", "mean"])
@pytest.mark.parametrize("loops", [True, False])
def test_equals_gatconv(combine: str, loops: bool) -> None:
    conv = pytest.importorskip("torch_geometric.nn", reason="needs torch-geometric").GATConv
    ours = layer(combine)
    reference = conv(WIDTH, HEAD_WIDTH, HEADS, concat=combine == "concatenate", add_self_loops=loops).double()
    with torch.no_grad():
        reference.lin.weight.copy_(ours.projection.T)
        # GATConv's edges point from the neighbour (src) to the node that attends (dst)
        reference.att_dst.copy_(ours.scorer.query.squeeze(2)[None])
        reference.att_src.copy_(ours.scorer.key.squeeze(2)[None])
        reference.bias.copy_(ours.bias)
    for seed in range(5):
        edges = random_edges(seed, share=0.15)
        with_loops = torch.cat([edges, torch.arange(NODES).expand(2, -1)], 1) if loops else edges
        states = torch.randn(NODES, WIDTH, dtype=torch.float64, requires_grad=True)
        found, expected = ours(states, with_loops), reference(states, edges.flip(0))
        torch.testing.assert_close(found, expected)
        weight = torch.randn_like(found)
        ours_gradient = torch.autograd.grad((found * weight).sum(), [states, ours.projection, ours.scorer.query])
        theirs = torch.autograd.grad(
            (expected * weight).sum(), [states, reference.lin.weight, reference.att_dst], allow_unused=False
        )
        torch.testing.assert_close(ours_gradient[0], theirs[0])
        torch.testing.assert_close(ours_gradient[1], theirs[1].T)
        torch.testing.assert_close(ours_gradient[2].squeeze(2), theirs[2][0])


SCORERS: dict[str, ScorerConfig] = {
    "leaky_relu": LeakyReLUConfig(slope=0.1),
    "additive": AdditiveConfig(width=5),
    "general": GeneralConfig(),
    "scaled_dot": ScaledDotConfig(),
}


@pytest.mark.parametrize("combine", ["concatenate", "mean"])
@pytest.mark.parametrize("scorer", SCORERS)
def test_equals_soft_attention_whose_mask_is_the_graph(scorer: str, combine: str) -> None:
    ours = layer(combine, SCORERS[scorer])
    widths = {"key_width": HEAD_WIDTH, "value_width": HEAD_WIDTH, "tie_keys_and_values": True}
    config = SoftAttentionConfig(scorer=SCORERS[scorer], combine=combine, **widths)  # type: ignore[arg-type]
    dense = config.build(AttentionSizes(WIDTH, WIDTH, HEADS * HEAD_WIDTH, HEADS)).double()
    assert isinstance(dense, SoftAttention)
    dense.scorer.load_state_dict(ours.scorer.state_dict())
    with torch.no_grad():
        for linear in (dense.query, dense.key):
            linear.weight.copy_(ours.projection.T)
            linear.bias.zero_()
    edges = random_edges(7, share=0.15)
    adjacency = torch.zeros(NODES, NODES, dtype=torch.bool)
    adjacency[edges[0], edges[1]] = True
    assert not adjacency.any(1).all(), "some node has no neighbour"
    states = torch.randn(NODES, WIDTH, dtype=torch.float64)
    with recording() as weights:
        found = ours(states, edges)
        expected = dense.self_attend(states[None], Mask.graph(adjacency))[0] + ours.bias
    torch.testing.assert_close(found, expected)
    on_edges = weights[dense][0][0][:, edges[0], edges[1]]  # (h, E)
    torch.testing.assert_close(weights[ours][0].T, on_edges)


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_weights_of_each_node_sum_to_1(seed: int, nodes: int, share: float) -> None:
    edges = random_edges(seed, nodes, share)
    scores = torch.randn(edges.size(1), 2, dtype=torch.float64) * 100
    sums = torch.zeros(nodes, 2, dtype=torch.float64).index_add(
        0, edges[0], softmax_over_edges(scores, edges[0], nodes)
    )
    expected = torch.bincount(edges[0], minlength=nodes).clamp_max(1)[:, None].expand(-1, 2).double()
    torch.testing.assert_close(sums, expected)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_sparse_rows_equal_the_dense_matrix(seed: int) -> None:
    draw = np.random.default_rng(seed)
    dense = np.where(draw.random((5, 7)) < 0.3, draw.random((5, 7)) + 0.1, 0.0)
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(5))
    sparse = SparseRows(torch.from_numpy(columns), torch.from_numpy(dense[rows, columns]), torch.from_numpy(starts))
    weight = torch.randn(7, 3, dtype=torch.float64)
    torch.testing.assert_close(sparse.project(weight), torch.from_numpy(dense) @ weight)
    sums = dense.sum(1, keepdims=True)
    scaled = torch.from_numpy(dense / np.where(sums == 0, 1, sums))
    torch.testing.assert_close(sparse.scale_to_sum_1().project(weight), scaled @ weight)
