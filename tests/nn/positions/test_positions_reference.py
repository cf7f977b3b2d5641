"""Rotary and ALiBi against Hugging Face's attention layers with the same weights; Shaw's against two plain loops."""

from math import sqrt
from typing import Any

import pytest
import torch
from closeness import assert_close
from torch import Tensor, nn

from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import CausalSpan, Mask
from dragoman.nn.positions.alibi import AlibiConfig, slopes
from dragoman.nn.positions.relative import Relative, RelativeConfig
from dragoman.nn.positions.rotary import Rotary, RotaryConfig
from dragoman.nn.positions.scheme import PositionScheme

WIDTH, LENGTH = 24, 11


def attention(heads: int, positions: PositionScheme, width: int = WIDTH) -> SoftAttention:
    """Attention with random parameters, including biases."""
    built = SoftAttentionConfig().build(AttentionSizes(width, width, width, heads), positions)
    assert isinstance(built, SoftAttention)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    return built.eval()


def padding(rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Return the mask (rows, length) of shorter last rows, and Hugging Face's additive form of it."""
    keep = torch.ones(rows, length, dtype=torch.bool)
    keep[-1, length - 3 :] = False
    return keep, torch.zeros(rows, 1, 1, length).masked_fill_(~keep[:, None, None], float("-inf"))


@pytest.mark.parametrize("heads", [1, 4, 6])
def test_rotary_equals_roformers_layer(heads: int) -> None:
    roformer = pytest.importorskip("transformers.models.roformer.modeling_roformer")
    config = roformer.RoFormerConfig(hidden_size=WIDTH, num_attention_heads=heads, attention_probs_dropout_prob=0.0)
    layer = roformer.RoFormerSelfAttention(config).eval()
    table = roformer.RoFormerSinusoidalPositionalEmbedding(40, WIDTH // heads)
    table.weight = nn.Parameter(table.create_weight(), requires_grad=False)
    torch.manual_seed(1)
    ours = attention(heads, RotaryConfig())
    for name in ("query", "key", "value"):
        getattr(layer, name).load_state_dict(getattr(ours, name).state_dict())
    states = torch.randn(3, LENGTH, WIDTH)
    keep, additive = padding(3, LENGTH)
    with torch.no_grad():
        turns = table(states.shape[:2])[None, None]
        expected = ours.output(layer(states, additive, turns)[0])
        found = ours.self_attend(states, Mask.padding(keep))
    assert_close(found[keep], expected[keep], terms=WIDTH)
    plain = attention(heads, PositionScheme())
    plain.load_state_dict(ours.state_dict())
    assert not torch.allclose(plain.self_attend(states, Mask.padding(keep)), found, atol=1e-3)


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_rotary_scores_equal_gpt_neoxs_on_reordered_components(base: float) -> None:
    """GPT-NeoX pairs component i with i + d/2, where the paper and our code pair 2i with 2i + 1."""
    neox = pytest.importorskip("transformers.models.gpt_neox.modeling_gpt_neox")
    torch.manual_seed(5)
    width, start, length = 8, 5, 9
    config = neox.GPTNeoXConfig(hidden_size=width, num_attention_heads=1)
    config.rope_parameters = {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": 1.0}
    queries, keys = torch.randn(2, 2, 3, length, width)
    halves = torch.cat((torch.arange(0, width, 2), torch.arange(1, width, 2)))
    cosines, sines = neox.GPTNeoXRotaryEmbedding(config)(queries, torch.arange(start, start + length)[None])
    left, right = neox.apply_rotary_pos_emb(queries[..., halves], keys[..., halves], cosines, sines)
    ours = Rotary(base)
    assert_close(ours.rotate(queries, start)[..., halves], left, terms=WIDTH)
    found = ours.rotate(queries, start) @ ours.rotate(keys, start).mT
    assert_close(found, left @ right.mT, terms=WIDTH)
    # the score depends only on the distance
    assert_close(ours.rotate(queries, 700) @ ours.rotate(keys, 700).mT, found, terms=WIDTH)


@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12])
def test_alibi_equals_blooms_layer(heads: int) -> None:
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    width = 2 * heads
    config = bloom.BloomConfig(hidden_size=width, n_head=heads, hidden_dropout=0.0, attention_dropout=0.0)
    layer = bloom.BloomAttention(config, layer_idx=0).eval()
    torch.manual_seed(2)
    ours = attention(heads, AlibiConfig(), width)

    def together(kind: str) -> Tensor:
        """Query, key and value of a head are adjacent in one matrix."""
        parts = [getattr(getattr(ours, name), kind) for name in ("query", "key", "value")]
        return torch.stack([part.view(heads, 2, -1) for part in parts], 1).reshape(3 * width, -1).squeeze(-1)

    layer.query_key_value.load_state_dict({"weight": together("weight"), "bias": together("bias")})
    layer.dense.load_state_dict(ours.output.state_dict())
    states = torch.randn(2, LENGTH, width)
    alibi = bloom.build_alibi_tensor(torch.ones(2, LENGTH), heads, torch.float32)
    later = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)[None, None]
    with torch.no_grad():
        expected = layer(states, torch.zeros_like(states), alibi, later)[0]
        found, cache = ours.causal_self_attend(states[:, :7], None, CausalSpan(0, 7, states.device))
        rest, _ = ours.causal_self_attend(states[:, 7:], cache, CausalSpan(7, LENGTH - 7, states.device))
    assert_close(torch.cat((found, rest), 1), expected, terms=WIDTH)


@pytest.mark.parametrize("heads", [4, 12, 16, 20])
def test_alibis_slopes_are_mpts(heads: int) -> None:
    mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")
    expected = mpt.build_mpt_alibi_tensor(heads, 2)[:, 0, 0].neg()
    # slopes of other numbers than powers of two are ordered differently there, which only renames heads
    assert_close(torch.tensor(sorted(slopes(heads))), expected.sort().values, terms=WIDTH)


def shaw(parts: dict[str, Tensor], layer: Relative, config: RelativeConfig, keep: list[bool]) -> Tensor:
    """Return equations 3 and 4 of the paper for one sentence, one head and query at a time; q, k, v: (h, S, width)."""
    query, key, value = parts["query"], parts["key"], parts["value"]
    heads, length, width = query.shape
    result = torch.zeros(heads, length, value.size(-1), dtype=query.dtype)
    for head in range(heads):
        for i in range(length):
            row = [min(max(j - i, -config.distance), config.distance) + config.distance for j in range(length)]
            scores = torch.full((length,), float("-inf"), dtype=query.dtype)
            for j in range(length):
                if keep[j]:
                    near = key[head, j] + (layer.key_table[row[j]] if config.keys else 0)
                    scores[j] = query[head, i] @ near / sqrt(width)
            weights = scores.softmax(0)
            for j in range(length):
                result[head, i] += weights[j] * (value[head, j] + (layer.value_table[row[j]] if config.values else 0))
    return result


@pytest.mark.parametrize(
    "options", [{"distance": 3}, {"distance": 1, "values": False}, {"distance": 20}, {"distance": 2, "keys": False}]
)
def test_shaws_tables_equal_two_plain_loops(options: dict[str, Any]) -> None:
    torch.manual_seed(3)
    config = RelativeConfig(**options)
    ours = attention(2, config).double()
    assert isinstance(ours.relation, Relative)
    states = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    keep, _ = padding(2, LENGTH)
    found = ours.self_attend(states, Mask.padding(keep))
    for row in range(2):
        parts = {
            name: getattr(ours, name)(states[row]).view(LENGTH, 2, -1).transpose(0, 1)
            for name in ("query", "key", "value")
        }
        heads = shaw(parts, ours.relation, config, keep[row].tolist())
        expected = ours.output(heads.transpose(0, 1).reshape(LENGTH, -1))
        assert_close(found[row][keep[row]], expected[keep[row]], terms=WIDTH)


def test_shaws_fused_path_equals_the_explicit_one() -> None:
    """From 256 keys on, scores use the fused kernel; tables for the values always use the explicit path."""
    torch.manual_seed(4)
    ours = attention(2, RelativeConfig(distance=4, values=False))
    states = torch.randn(2, 300, WIDTH)
    keep, _ = padding(2, 300)
    whole = ours.self_attend(states, Mask.padding(keep))
    with recording():
        explicit = ours.self_attend(states, Mask.padding(keep))
    assert_close(whole[keep], explicit[keep], terms=WIDTH)


@pytest.mark.parametrize("config", [RelativeConfig(distance=2), AlibiConfig()])
def test_blocks_between_heads_and_queries_change_nothing(config: PositionScheme) -> None:
    """Windows of queries are an additional dimension; every block has the same offsets."""
    relation = config.build_relative(3, 4, 4, 5)
    assert relation is not None
    queries, offsets = torch.randn(2, 3, 6, 7, 4), torch.arange(9)[None] - torch.arange(7)[:, None] - 1
    found = relation.score_bias(queries, offsets).expand(2, 3, 6, 7, 9)
    for block in range(6):
        torch.testing.assert_close(
            found[:, :, block], relation.score_bias(queries[:, :, block], offsets).expand(2, 3, 7, 9)
        )
    if relation.acts_on_values:
        weights = torch.rand(2, 3, 6, 7, 9)
        blocks = relation.value_bias(weights, offsets)
        for block in range(6):
            torch.testing.assert_close(blocks[:, :, block], relation.value_bias(weights[:, :, block], offsets))
