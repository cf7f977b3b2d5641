"""Our decoder-only Transformer with the weights of a random Hugging Face GPT-2 has the same logits in every mode."""

from math import sqrt
from typing import Any

import pytest
import torch
from closeness import assert_close
from torch import Tensor

from dragoman.models.kinds.decoder_only import DecoderOnly, LanguageModelConfig
from dragoman.text.symbols import PAD

transformers = pytest.importorskip("transformers")

SIZE, WIDTH, HEADS, LAYERS, POSITIONS = 61, 32, 4, 3, 24
TEXTS = [[1, 5, 9, 4, 33, 60, 12, 7], [1, 8, 3], [1, 50, 50, 20, 11], [1]]


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def models(request: pytest.FixtureRequest) -> tuple[Any, DecoderOnly]:
    """GPT-2, and our model with its parameters."""
    torch.manual_seed(5)
    config = transformers.GPT2Config(
        vocab_size=SIZE,
        n_positions=POSITIONS,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        activation_function="gelu",
        initializer_range=0.2,
        tie_word_embeddings=request.param,
        bos_token_id=1,
        eos_token_id=2,
        attn_implementation="eager",
    )
    original = transformers.GPT2LMHeadModel(config).eval()
    for parameter in original.parameters():  # biases and norms too, whose initial values are 0 and 1
        parameter.data += 0.1 * torch.randn_like(parameter)
    return original, ours_like(original, request.param)


def ours_like(original: Any, tied: bool) -> DecoderOnly:
    """Our embedding is scaled by √d; a tied projection is compensated for this by the norm before it."""
    settings = {
        "preset": None,
        "width": WIDTH,
        "decoder": {"layers": LAYERS, "heads": HEADS, "feedforward": 4 * WIDTH, "norm": "pre", "activation": "gelu"},
        "positions": {"kind": "learned", "limit": POSITIONS},
        "dropout": 0.0,
        "tie_projection": tied,
    }
    model = LanguageModelConfig.model_validate(settings).build(SIZE).eval()
    body, values = original.transformer, {}
    scale = sqrt(WIDTH)
    values["embedding.tokens.weight"] = body.wte.weight / scale
    values["embedding.positions.encoding.table"] = body.wpe.weight
    for number, block in enumerate(body.h):
        split = zip(
            ("query", "key", "value"),
            block.attn.c_attn.weight.T.chunk(3),
            block.attn.c_attn.bias.chunk(3),
            strict=True,
        )
        linear = {f"self_attention.{name}": (weight, bias) for name, weight, bias in split}
        for name, layer in (
            ("self_attention.output", block.attn.c_proj),
            ("feedforward.inner", block.mlp.c_fc),
            ("feedforward.outer", block.mlp.c_proj),
        ):
            linear[name] = layer.weight.T, layer.bias
        linear["around_self_attention.norm"] = block.ln_1.weight, block.ln_1.bias
        linear["around_feedforward.norm"] = block.ln_2.weight, block.ln_2.bias
        for name, (weight, bias) in linear.items():
            values[f"layers.{number}.{name}.weight"], values[f"layers.{number}.{name}.bias"] = weight, bias
    last = scale if tied else 1.0
    values["norm.weight"], values["norm.bias"] = last * body.ln_f.weight, last * body.ln_f.bias
    if not tied:
        values["projection.weight"] = original.lm_head.weight
    found = {name: value for name, value in model.decoder.named_parameters() if name != "projection.weight" or not tied}
    assert found.keys() == values.keys()
    with torch.no_grad():
        for name, parameter in found.items():
            parameter.copy_(values[name])
    return model


@torch.no_grad()
def original_logits(original: Any, text: list[int]) -> Tensor:
    logits: Tensor = original(torch.tensor([text])).logits[0]
    return logits


@torch.no_grad()
def test_a_whole_text(models: tuple[Any, DecoderOnly]) -> None:
    original, ours = models
    for text in TEXTS:
        assert_close(ours(torch.tensor([text])).logits()[0], original_logits(original, text))


@torch.no_grad()
def test_step_by_step(models: tuple[Any, DecoderOnly]) -> None:
    original, ours = models
    state, found = ours.decoder.start(None), []
    for token in TEXTS[0]:
        output, state = ours.decoder.step(torch.tensor([[token]]), state)
        found.append(output.last_logits()[0])
    assert_close(torch.stack(found), original_logits(original, TEXTS[0]))


@torch.no_grad()
def test_ragged_prompts_and_their_continuation(models: tuple[Any, DecoderOnly]) -> None:
    """Prompts are padded on the left and read at once, then each is continued with two tokens."""
    original, ours = models
    longest, further = max(map(len, TEXTS)), [17, 23]
    left_padding = torch.tensor([longest - len(text) for text in TEXTS])
    rows = torch.tensor([[PAD] * (longest - len(text)) + text for text in TEXTS])
    output, state = ours.decoder.step(rows, ours.decoder.start(None, left_padding=left_padding))
    found = [output.logits()]
    for token in further:
        output, state = ours.decoder.step(torch.full((len(TEXTS), 1), token), state)
        found.append(output.logits())
    logits = torch.cat(found, 1)
    for row, text in enumerate(TEXTS):
        expected = original_logits(original, [*text, *further])
        assert_close(logits[row, longest - len(text) :], expected)


@torch.no_grad()
def test_a_later_token_changes_nothing(models: tuple[Any, DecoderOnly]) -> None:
    _, ours = models
    one, other = [*TEXTS[0][:4], 20, 21, 22], [*TEXTS[0][:4], 44, 1, 2]
    first, second = ours(torch.tensor([one, other])).logits()
    assert torch.equal(first[:4], second[:4])
    assert not torch.allclose(first[4:], second[4:])
