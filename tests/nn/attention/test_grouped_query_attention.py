"""Grouped-query attention: values, gradients and caches, against repeated keys and values and torch's own attention."""

import pytest
import torch
from closeness import assert_close
from pydantic import TypeAdapter, ValidationError
from torch import nn
from torch.nn import functional

from dragoman.base.errors import ConfigError
from dragoman.models.description.footprint import evaluate_polynomial, measure_footprint
from dragoman.models.kinds.decoder_only import DecoderOnly, LanguageModelConfig
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.attention.union import SelfAttentionConfig
from dragoman.nn.mask import CausalSpan, Mask

WIDTH, HEADS, LENGTH = 24, 6, 5
SIZES = AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)


def built(kv_heads: int | None, **settings: object) -> SoftAttention:
    torch.manual_seed(3)
    config = TypeAdapter(SelfAttentionConfig).validate_python({"kind": "soft", "kv_heads": kv_heads, **settings})
    attention = config.build(SIZES)
    assert isinstance(attention, SoftAttention)
    return attention.double()


def repeated(grouped: SoftAttention) -> SoftAttention:
    """The same attention with a copy of the shared keys and values for each head."""
    usual = built(None, **grouped.config.model_dump(exclude={"kv_heads"}))
    with torch.no_grad():
        for name, parameter in usual.named_parameters():
            source = dict(grouped.named_parameters())[name]
            if name.startswith(("key.", "value.")):
                heads = source.unflatten(0, (grouped.kv_heads, -1))
                source = heads.repeat_interleave(HEADS // grouped.kv_heads, 0).flatten(0, 1)
            parameter.copy_(source)
    return usual


@pytest.mark.parametrize("kind", ["soft", "window"])
@pytest.mark.parametrize("scorer", ["dot", "scaled_dot", "general"])
@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_values_equal_those_of_repeated_keys_and_values(kv_heads: int, scorer: str, kind: str) -> None:
    grouped = built(kv_heads, kind=kind, scorer={"kind": scorer})
    usual = repeated(grouped)
    states = torch.randn(2, LENGTH, WIDTH, dtype=torch.double)
    padding = Mask.padding(torch.arange(LENGTH) < torch.tensor([[LENGTH], [3]]))
    assert_close(grouped.self_attend(states, padding), usual.self_attend(states, padding))
    assert grouped.key.weight.shape == (kv_heads * WIDTH // HEADS, WIDTH)
    queries = torch.randn(4, 3, WIDTH, dtype=torch.double)  # two hypotheses per source
    one, other = (
        each.cross_attend(queries, each.project_memory(states, padding), padding) for each in (grouped, usual)
    )
    assert_close(one, other)


@pytest.mark.parametrize("length", [LENGTH, 300])
@pytest.mark.parametrize("kv_heads", [1, 2, 3])
def test_values_and_gradients_equal_torch(kv_heads: int, length: int) -> None:
    """Long texts use torch's fused kernel, short ones do not."""
    attention = built(kv_heads)
    states = torch.randn(2, length, WIDTH, dtype=torch.double, requires_grad=True)

    def split(layer: nn.Linear, heads: int) -> torch.Tensor:
        return layer(states).unflatten(2, (heads, -1)).transpose(1, 2)

    context = functional.scaled_dot_product_attention(
        split(attention.query, HEADS),
        split(attention.key, kv_heads),
        split(attention.value, kv_heads),
        is_causal=True,
        enable_gqa=True,
    )
    expected = attention.output(context.transpose(1, 2).flatten(2))
    found, _ = attention.causal_self_attend(states, None, CausalSpan(0, length, states.device))
    assert_close(found, expected)
    direction = torch.randn_like(found)
    gradients = [
        torch.autograd.grad((each * direction).sum(), [states, *attention.parameters()]) for each in (found, expected)
    ]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, size=length)  # that of the bias of the keys is zero


def language_model(kv_heads: int | None, **settings: object) -> DecoderOnly:
    torch.manual_seed(1)
    attention = {"kv_heads": kv_heads}
    decoder = {"layers": 2, "heads": HEADS, "feedforward": 32, "attention": attention}
    common = {"preset": None, "width": WIDTH, "decoder": decoder, "dropout": 0.0, "positions": {"kind": "rotary"}}
    return LanguageModelConfig.model_validate({**common, **settings}).build(11).eval()


@torch.no_grad()
def test_caches_hold_only_the_shared_heads_and_steps_equal_the_whole() -> None:
    model, tokens = language_model(2), torch.randint(4, 11, (3, 7))
    expected, state, found = model(tokens).logits(), model.decoder.start(None), []
    for column in range(7):
        output, state = model.decoder.step(tokens[:, column : column + 1], state)
        found.append(output.last_logits())
    assert_close(torch.stack(found, 1), expected)
    for cache in state.cache:
        assert cache.read().keys.shape == cache.read().values.shape == (3, 2, 7, WIDTH // HEADS)


def test_the_footprint_of_a_cache_is_that_of_the_shared_heads() -> None:
    usual, grouped = (measure_footprint(language_model(heads), 64, training=False) for heads in (None, 2))
    for length in (16, 64):
        whole, part = (evaluate_polynomial(each.cache, length) for each in (usual, grouped))
        assert whole == 2 * 2 * length * WIDTH * 4  # keys and values of two layers, in float32
        assert part * HEADS == whole * 2


def test_incompatible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="kv_heads is 4, which does not divide the 6 heads"):
        SoftAttentionConfig(kv_heads=4).build(SIZES)
    with pytest.raises(ConfigError, match="scorer additive"):
        built(2, scorer={"kind": "additive"})
    with pytest.raises(ConfigError, match="kv_heads needs projections"):
        built(2, projections=False)
    with pytest.raises(ValidationError, match="does not divide the 6 heads"):
        language_model(5)
