"""Attention and the whole Transformer against torch's own modules, with the same random weights."""

import pytest
import torch
from closeness import assert_close
from torch import Tensor, nn

from dragoman.data.batches.batch import pad
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.attention.interface import AttentionSizes
from dragoman.nn.attention.recording import recording
from dragoman.nn.attention.soft import SoftAttention, SoftAttentionConfig
from dragoman.nn.mask import Mask

WIDTH, HEADS, LAYERS, SIZE = 16, 4, 2, 30


def randomise(module: nn.Module, seed: int = 1) -> None:
    """Change biases and norms too, because their initial zeros and ones would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)


def copy_attention(ours: SoftAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


@pytest.mark.parametrize("keys", [7, 300], ids=["explicit", "fused"])
def test_attention_equals_torch(keys: int) -> None:
    torch.manual_seed(1)
    ours, theirs = (
        SoftAttentionConfig().build(AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS)),
        nn.MultiheadAttention(WIDTH, HEADS, batch_first=True),
    )
    randomise(ours)
    copy_attention(ours, theirs)
    queries, states = torch.randn(3, 5, WIDTH), torch.randn(3, keys, WIDTH)
    keep = torch.ones(3, keys, dtype=torch.bool)
    keep[1, 4:] = False
    expected, weights = theirs(queries, states, states, key_padding_mask=~keep, average_attn_weights=False)
    result = ours.cross_attend(queries, ours.project_memory(states, Mask.padding(keep)), Mask.padding(keep))
    assert_close(result, expected)
    with recording() as recorded:
        explicit = ours.cross_attend(queries, ours.project_memory(states, Mask.padding(keep)), Mask.padding(keep))
    assert_close(explicit, expected)
    assert_close(recorded[ours][0], weights)


@pytest.mark.parametrize("keys", [7, 300], ids=["explicit", "fused"])
def test_a_query_without_keys_gets_zeros(keys: int) -> None:
    torch.manual_seed(1)
    attention = SoftAttentionConfig().build(AttentionSizes(WIDTH, WIDTH, WIDTH, HEADS))
    keep = torch.ones(2, keys, dtype=torch.bool)
    keep[1] = False
    states = torch.randn(2, keys, WIDTH, requires_grad=True)
    padding = Mask.padding(keep)
    result = attention.cross_attend(torch.randn(2, 3, WIDTH), attention.project_memory(states, padding), padding)
    torch.testing.assert_close(result[1], attention.output.bias.expand(3, WIDTH))
    result.sum().backward()
    assert states.grad is not None and bool(states.grad.isfinite().all())


def torch_twin(model: Seq2Seq, order: str) -> nn.Transformer:
    """Return torch's Transformer with our weights; its final norms exist after pre-norm layers only, as ours do."""
    twin = nn.Transformer(
        WIDTH, HEADS, LAYERS, LAYERS, 24, dropout=0.0, batch_first=True, norm_first=order == "pre"
    ).eval()
    if order == "post":
        twin.encoder.norm = twin.decoder.norm = None
    else:
        twin.encoder.norm.load_state_dict(model.encoder.norm.state_dict())
        twin.decoder.norm.load_state_dict(model.decoder.norm.state_dict())
    for ours, theirs in zip(model.encoder.layers, twin.encoder.layers, strict=True):
        copy_attention(ours.self_attention, theirs.self_attn)
        norms = (ours.around_attention, theirs.norm1), (ours.around_feedforward, theirs.norm2)
        copy_rest(ours, theirs, norms)
    for ours, theirs in zip(model.decoder.layers, twin.decoder.layers, strict=True):
        copy_attention(ours.self_attention, theirs.self_attn)
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        norms = (
            (ours.around_self_attention, theirs.norm1),
            (ours.around_cross_attention, theirs.norm2),
            (ours.around_feedforward, theirs.norm3),
        )
        copy_rest(ours, theirs, norms)
    return twin


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: tuple[tuple[nn.Module, nn.Module], ...]) -> None:
    theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())
    for around, norm in norms:
        norm.load_state_dict(around.norm.state_dict())


def small_model(order: str = "post", **settings: object) -> Seq2Seq:
    stack = {"layers": LAYERS, "heads": HEADS, "feedforward": 24, "norm": order}
    config = ModelConfig.model_validate(
        {"preset": None, "width": WIDTH, "encoder": stack, "decoder": stack, "dropout": 0.0, **settings}
    )
    model = config.build(SIZE, SIZE).eval()
    randomise(model)
    return model


SOURCES, TARGETS = [[5, 9, 4, 2], [7, 2], [12, 4, 20, 11, 6, 5, 2]], [[1, 8, 9], [1, 20, 21, 22, 5], [1]]


@pytest.mark.parametrize("order", ["post", "pre"])
def test_logits_and_gradients_equal_torch(order: str) -> None:
    model = small_model(order)
    twin = torch_twin(model, order)
    source, source_mask = pad(SOURCES)
    inputs, target_mask = pad(TARGETS)
    ours = model(source, source_mask, inputs).logits()

    def embed(tokens: Tensor) -> Tensor:
        return model.encoder.embedding(tokens)

    length = inputs.size(1)
    causal = torch.ones(length, length, dtype=torch.bool).triu(1)
    hidden = twin(
        embed(source),
        embed(inputs),
        tgt_mask=causal,
        src_key_padding_mask=~source_mask,
        memory_key_padding_mask=~source_mask,
    )
    theirs = hidden @ model.decoder.projection.weight.t()
    assert_close(ours[target_mask], theirs[target_mask])

    table = model.encoder.embedding.tokens.weight
    (expected,) = torch.autograd.grad(theirs[target_mask].logsumexp(-1).sum(), table, retain_graph=True)
    (found,) = torch.autograd.grad(ours[target_mask].logsumexp(-1).sum(), table)
    assert_close(found, expected)


def test_sizes_of_the_paper() -> None:
    """63.1M and 214.2M parameters with 37,000 shared pieces and three-way tied embeddings."""
    with torch.device("meta"):
        sizes = {
            name: sum(p.numel() for p in ModelConfig(preset=name).build(37_000, 37_000).parameters())
            for name in ("base", "big")
        }
    assert {name: round(size / 1e6, 1) for name, size in sizes.items()} == {"base": 63.1, "big": 214.2}
