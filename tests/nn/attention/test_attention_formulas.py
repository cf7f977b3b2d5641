"""Scorers, normalisers and aggregations against the decks' formulas, written out in NumPy for each query and key."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from random_parameters import perturb
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.scorers import Additive, General, LeakyReLU
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import CausalSpan, Mask

ROWS, LENGTH, KEYS, HEADS, QUERY, MEMORY = 3, 4, 5, 2, 8, 12
Array = NDArray[np.float64]
SCORERS = ("dot", "scaled_dot", "general", "additive", "leaky_relu")
AGGREGATIONS = {
    "project": {},
    "concatenate": {"combine": "concatenate"},
    "mean": {"combine": "mean", "value_width": 7},
    "tied keys and values": {"tie_keys_and_values": True},
    "own widths": {"key_width": 3, "value_width": 6},
}


def attention(sizes: AttentionSizes, **settings: Any) -> SoftAttention:
    torch.manual_seed(4)
    built = SoftAttentionConfig.model_validate(settings).build(sizes).double()
    assert isinstance(built, SoftAttention)
    return perturb(built)


def score(built: SoftAttention, head: int, query: Array, key: Array) -> float:
    """a(k, q) of one query and one key."""
    kind = built.config.scorer.kind
    if kind in ("dot", "scaled_dot"):
        return float(query @ key) / (1 if kind == "dot" else np.sqrt(len(key)))
    scorer = built.scorer
    if kind == "general":
        assert isinstance(scorer, General)
        return float(query @ numbers(scorer.weight)[head] @ key)
    if kind == "leaky_relu":
        assert isinstance(scorer, LeakyReLU)
        total = float(query @ numbers(scorer.query)[head, :, 0] + key @ numbers(scorer.key)[head, :, 0])
        return total if total > 0 else scorer.slope * total
    assert isinstance(scorer, Additive)
    hidden = query @ numbers(scorer.query)[head] + key @ numbers(scorer.key)[head]
    return float(numbers(scorer.vector)[head] @ np.tanh(hidden))


def normalised(scores: list[float], normaliser: str) -> list[float]:
    """norm_i(p) = p_i / Σ_j p_j of deck 002: p is exp(score) for softmax, log(1 + exp(score)) for sum."""
    positive = [float(np.exp(each) if normaliser == "softmax" else np.log1p(np.exp(each))) for each in scores]
    return [each / sum(positive) for each in positive]


def written_out(built: SoftAttention, queries: Array, states: Array, keep: Array) -> Array:
    """Compute one row, head, query and key at a time."""
    width = {name: getattr(built, name).out_features // HEADS for name in ("query", "key")}
    value_layer = built.key if built.config.tie_keys_and_values else built.value
    result = []
    for row in range(len(queries)):
        asked, held, worth = (
            project(layer, each)
            for layer, each in ((built.query, queries[row]), (built.key, states[row]), (value_layer, states[row]))
        )
        for place in range(queries.shape[1]):
            heads = []
            for head in range(HEADS):
                wide = worth.shape[1] // HEADS
                kept = [key for key in range(states.shape[1]) if keep[row, key]]
                query = asked[place, head * width["query"] :][: width["query"]]
                scores = [score(built, head, query, held[key, head * width["key"] :][: width["key"]]) for key in kept]
                weights = normalised(scores, built.config.normaliser)
                heads.append(sum(w * worth[key, head * wide :][:wide] for w, key in zip(weights, kept, strict=True)))
            together = np.mean(heads, 0) if built.combine == "mean" else np.concatenate(heads)
            result.append(project(built.output, together) if built.combine == "project" else together)
    return np.array(result).reshape(*queries.shape[:2], -1)


def project(layer: torch.nn.Linear, vectors: Array) -> Array:
    return vectors @ numbers(layer.weight).T + numbers(layer.bias)


def numbers(tensor: Tensor) -> Array:
    return tensor.detach().numpy().astype(np.float64)


def states() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    keep = torch.tensor([[True] * KEYS, [True, True, False, False, False], [True, False, True, True, False]])
    return (
        torch.randn(ROWS, LENGTH, QUERY, dtype=torch.float64),
        torch.randn(ROWS, KEYS, MEMORY, dtype=torch.float64),
        keep,
    )


@pytest.mark.parametrize("normaliser", ["softmax", "sum"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("scorer", SCORERS)
def test_attention_is_its_formula(scorer: str, aggregation: str, normaliser: str) -> None:
    sizes = AttentionSizes(QUERY, MEMORY, QUERY, HEADS)
    built = attention(sizes, scorer={"kind": scorer}, normaliser=normaliser, **AGGREGATIONS[aggregation])
    queries, memory, keep = states()
    padding = Mask.padding(keep)
    found = built.cross_attend(queries, built.project_memory(memory, padding), padding)
    expected = written_out(built, queries.numpy(), memory.numpy(), keep.numpy())
    assert found.shape[-1] == built.output_width == expected.shape[-1]
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "scorer", [{"kind": "general"}, {"kind": "additive"}, {"kind": "additive", "width": 9}, {"kind": "leaky_relu"}]
)
def test_widths_of_queries_and_keys_may_differ(scorer: dict[str, Any]) -> None:
    sizes = AttentionSizes(QUERY, MEMORY, QUERY, HEADS)
    built = attention(sizes, scorer=scorer, query_width=3, key_width=5)
    queries, memory, keep = states()
    padding = Mask.padding(keep)
    found = built.cross_attend(queries, built.project_memory(memory, padding), padding)
    expected = written_out(built, queries.numpy(), memory.numpy(), keep.numpy())
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scorer", ["dot", "scaled_dot"])
def test_dot_products_refuse_different_widths(scorer: str) -> None:
    with pytest.raises(ConfigError, match=f"{scorer}.*a head has 3 and 5.*general or additive"):
        attention(AttentionSizes(QUERY, MEMORY, QUERY, HEADS), scorer={"kind": scorer}, query_width=3, key_width=5)


def test_tied_keys_and_values_must_have_equal_widths() -> None:
    with pytest.raises(ConfigError, match="widths are 3 and 4"):
        attention(AttentionSizes(QUERY, MEMORY, QUERY, HEADS), tie_keys_and_values=True, key_width=3)


def test_without_projections_outputs_are_means_of_inputs() -> None:
    """Deck 004: y_i = Σ_{j ≤ i} α_ij x_j with α_ij = softmax over j ≤ i of x_i · x_j, without any parameter."""
    built = attention(AttentionSizes(QUERY, QUERY, QUERY, 1), projections=False, scorer={"kind": "dot"})
    assert not list(built.parameters())
    inputs = states()[0]
    found, _ = built.causal_self_attend(inputs, None, CausalSpan(0, LENGTH, inputs.device))
    for row, place in product(range(ROWS), range(LENGTH)):
        x = inputs[row].numpy()
        weights = np.exp([x[place] @ x[other] for other in range(place + 1)])
        expected = sum(w * x[other] for other, w in enumerate(weights / weights.sum()))
        np.testing.assert_allclose(found[row, place].numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("normaliser", ["softmax", "sum"])
@pytest.mark.parametrize("scorer", SCORERS)
def test_masked_keys_have_no_weight_and_a_query_without_keys_gets_zeros(scorer: str, normaliser: str) -> None:
    sizes = AttentionSizes(QUERY, MEMORY, QUERY, HEADS)
    built = attention(sizes, scorer={"kind": scorer}, normaliser=normaliser, combine="concatenate").float()
    queries, memory, keep = (each if each.dtype == torch.bool else each.float() for each in states())
    keep = keep & torch.tensor([[True], [False], [True]])
    memory.requires_grad_()
    padding = Mask.padding(keep)
    with recording() as recorded:
        found = built.cross_attend(queries, built.project_memory(memory, padding), padding)
    weights = recorded[built][0]
    assert bool((weights[~keep[:, None, None, :].expand_as(weights)] == 0).all())
    torch.testing.assert_close(weights.sum(-1)[[0, 2]], torch.ones(2, HEADS, LENGTH))
    assert bool((found[1] == 0).all())
    (found * 1e3).sum().backward()  # a large gradient, as of a summed loss
    assert memory.grad is not None and bool(memory.grad.isfinite().all())
    assert bool((memory.grad[~keep] == 0).all()) and bool((memory.grad[keep] != 0).any())
    assert all(bool(parameter.grad.isfinite().all()) for parameter in built.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("normaliser", ["softmax", "sum"])
@pytest.mark.parametrize("scorer", SCORERS)
@torch.no_grad()
def test_a_beam_shares_the_memory_of_its_sentence(scorer: str, normaliser: str) -> None:
    built = attention(AttentionSizes(QUERY, MEMORY, QUERY, HEADS), scorer={"kind": scorer}, normaliser=normaliser)
    _, memory, keep = states()
    queries = torch.randn(ROWS * 3, 2, QUERY, dtype=torch.float64)
    padding, repeated = Mask.padding(keep), Mask.padding(keep.repeat_interleave(3, 0))
    folded = built.cross_attend(queries, built.project_memory(memory, padding), padding)
    plain = built.cross_attend(queries, built.project_memory(memory.repeat_interleave(3, 0), repeated), repeated)
    torch.testing.assert_close(folded, plain)
