"""Our Transformer with the weights of a random Hugging Face Marian has the same logits, greedy and beam outputs."""

import pytest
import torch
from closeness import assert_close
from searching import searched

from dragoman.data.batches.batch import pad
from dragoman.decode.rules.length_penalty import MeanLogProbability
from dragoman.decode.search import SearchConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.nn.positions.sinusoidal import sinusoids
from dragoman.text.symbols import BOS, EOS, PAD, UNK

transformers = pytest.importorskip("transformers")

SIZE, WIDTH, HEADS, INNER, LAYERS, LONGEST = 60, 32, 4, 48, 2, 14
SOURCES = [[5, 9, 4, EOS], [7, EOS], [12, 4, 20, 11, 6, 5, EOS], [9, 31, 30, EOS], [50, 51, 52, EOS]]


@pytest.fixture(scope="module")
def marian() -> "transformers.MarianMTModel":
    torch.manual_seed(3)
    config = transformers.MarianConfig(
        vocab_size=SIZE,
        d_model=WIDTH,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=INNER,
        decoder_ffn_dim=INNER,
        activation_function="relu",
        scale_embedding=True,
        init_std=0.25,
        dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        bad_words_ids=None,
        max_position_embeddings=64,
    )
    return transformers.MarianMTModel(config).eval()


@pytest.fixture(scope="module")
def ours(marian: "transformers.MarianMTModel") -> Seq2Seq:
    stack = {"layers": LAYERS, "heads": HEADS, "feedforward": INNER, "norm": "post"}
    config = ModelConfig.model_validate({"preset": None, "width": WIDTH, "encoder": stack, "decoder": stack})
    model = config.build(SIZE, SIZE).eval()
    names = {
        "encoder.embedding.tokens.weight": "shared.weight",
        "self_attention": "self_attn",
        "cross_attention": "encoder_attn",
        "query": "q_proj",
        "key": "k_proj",
        "value": "v_proj",
        "output": "out_proj",
        "feedforward.inner": "fc1",
        "feedforward.outer": "fc2",
        "around_attention.norm": "self_attn_layer_norm",
        "around_self_attn.norm": "self_attn_layer_norm",
        "around_encoder_attn.norm": "encoder_attn_layer_norm",
        "around_feedforward.norm": "final_layer_norm",
    }
    weights = marian.model.state_dict()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            for here, there in names.items():
                name = name.replace(here, there)
            parameter.copy_(weights[name])
        # Marian puts all sines before all cosines; the paper, like our default, alternates them.
        for side in (marian.model.encoder, marian.model.decoder):
            side.embed_positions.weight.copy_(sinusoids(len(side.embed_positions.weight), WIDTH))
    return model


def test_logits_equal_marian(marian: "transformers.MarianMTModel", ours: Seq2Seq) -> None:
    source, source_mask = pad(SOURCES)
    inputs, target_mask = pad([[BOS, 8, 9], [BOS, 20, 21, 22, 5], [BOS], [BOS, 8], [BOS, 59, 58]])
    expected = marian(input_ids=source, attention_mask=source_mask.long(), decoder_input_ids=inputs).logits
    found = ours(source, source_mask, inputs).logits()
    assert_close(found[target_mask], expected[target_mask])


@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_equal_marian(marian: "transformers.MarianMTModel", ours: Seq2Seq, beam: int) -> None:
    """Only finished hypotheses are compared: unfinished ones compete in generate(), and come last in our search."""
    source, source_mask = pad(SOURCES)
    with torch.no_grad():
        marian.final_logits_bias[0, EOS] = 6.0  # random models rarely end by themselves
    generated = marian.generate(
        input_ids=source,
        attention_mask=source_mask.long(),
        num_beams=beam,
        max_new_tokens=LONGEST,
        do_sample=False,
        early_stopping=True if beam == 1 else "never",
        length_penalty=1.0,
        suppress_tokens=[PAD, BOS, UNK],
    )
    marian_outputs = []
    for row in generated[:, 1:].tolist():
        marian_outputs.append(tuple(row[: row.index(EOS)]) if EOS in row else None)
    project = ours.decoder.projection

    class Biased(torch.nn.Module):
        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return project(hidden) + marian.final_logits_bias

    ours.decoder.projection = Biased()
    try:
        config = SearchConfig(beam=beam, length_penalty=MeanLogProbability(), length_factor=0.0, length_margin=LONGEST)
        with torch.no_grad():
            found = searched(ours.decoder, ours.encode(source, source_mask), config)
    finally:
        ours.decoder.projection = project
        marian.final_logits_bias.zero_()
    pairs = [(best[0], other) for best, other in zip(found, marian_outputs, strict=True) if other is not None]
    assert len(pairs) >= 3
    for best, other in pairs:
        assert best.finished and best.tokens == other
