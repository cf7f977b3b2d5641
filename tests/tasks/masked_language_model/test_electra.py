"""Replaced-token detection computes what Hugging Face's ELECTRA computes, with the same random weights."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from closeness import assert_close
from torch import Tensor, nn

from dragoman.data.batches.labelled import NO_LABEL
from dragoman.data.batches.masked import MaskedBatch
from dragoman.exchange.huggingface.bert.weights import _LAYER
from dragoman.exchange.huggingface.weights import repeat
from dragoman.models.kinds.encoder_only import EncoderOnly, EncoderOnlyConfig
from dragoman.tasks.masked_language_model.replaced_tokens import ReplacedTokenObjective, replace_tokens
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives.cross_entropy import CrossEntropy

transformers = pytest.importorskip("transformers")

SIZE, WIDTH, LIMIT, LAYERS = 40, 16, 24, 2
NORM = {"kind": "layer", "epsilon": 1e-5}
STACK = {"kind": "transformer", "layers": LAYERS, "heads": 4, "feedforward": 32, "norm": "post", "activation": "gelu"}
IDS = torch.tensor([[BOS, 7, 8, 39, 9, EOS], [BOS, 39, EOS, PAD, PAD, PAD]])
LABELS = torch.tensor([[NO_LABEL, NO_LABEL, NO_LABEL, 12, 9, NO_LABEL], [NO_LABEL, 5, *[NO_LABEL] * 4]])
EMBEDDINGS = {
    "word_embeddings": "tokens",
    "position_embeddings": "positions.encoding.table",
    "token_type_embeddings": "segments",
    "LayerNorm": "norm",
}


@pytest.fixture(scope="module", params=[0.5, 1.0], ids=["generator of half the width", "of the same width"])
def model(request: pytest.FixtureRequest) -> EncoderOnly:
    """Return a model with random weights and biases."""
    torch.manual_seed(1)
    settings: dict[str, Any] = {
        "preset": None,
        "width": WIDTH,
        "encoder": {**STACK, "normalisation": NORM},
        "positions": {"kind": "learned", "limit": LIMIT},
        "segments": 2,
        "scale_embeddings": False,
        "embedding_norm": NORM,
        "head": {"kind": "replaced_token_detection"},
        "generator": {"width": request.param, "head": {"normalisation": NORM}},
    }
    model = EncoderOnlyConfig.model_validate(settings).build_for(VocabularySizes(SIZE, SIZE)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def electra(kind: str, model: EncoderOnly, body: EncoderOnly, names: Mapping[str, str]) -> Any:
    """Return Hugging Face's model of the class `kind` with the weights of one of our two models.

    names: our name of each module of its head.
    """
    heads = 4 * model.width // WIDTH
    config = transformers.ElectraConfig(
        vocab_size=SIZE,
        embedding_size=WIDTH,
        hidden_size=model.width,
        num_hidden_layers=LAYERS,
        num_attention_heads=heads,
        intermediate_size=32 * model.width // WIDTH,
        max_position_embeddings=LIMIT,
        layer_norm_eps=1e-5,
        pad_token_id=PAD,
    )
    theirs = getattr(transformers, kind)(config).eval()
    ours, shared = model.state_dict(), body.state_dict()
    values = {weight.theirs.replace("bert.", "electra."): ours[weight.ours[0]] for weight in repeat(_LAYER, LAYERS)}
    for name, own in EMBEDDINGS.items():
        key = f"encoder.embedding.{own}"
        for part in ("", ".weight", ".bias"):
            if key + part in shared:
                values[f"electra.embeddings.{name}{part or '.weight'}"] = shared[key + part]
    names = {**names, "electra.embeddings_project": "encoder.embedding.projection"}
    for name, own in names.items():
        for part in ("weight", "bias"):
            if f"{own}.{part}" in ours:
                values[f"{name}.{part}"] = ours[f"{own}.{part}"]
    report = theirs.load_state_dict(values, strict=False)
    assert not report.unexpected_keys
    assert all("position_ids" in name or "token_type_ids" in name for name in report.missing_keys)
    return theirs


def generator_of(model: EncoderOnly) -> Any:
    names = {
        "generator_predictions.dense": "head.transform",
        "generator_predictions.LayerNorm": "head.norm",
        "generator_lm_head": "head.projection",
    }
    assert model.generator is not None
    return electra("ElectraForMaskedLM", model.generator, model, names)


def discriminator_of(model: EncoderOnly) -> Any:
    names = {
        "discriminator_predictions.dense": "head.hidden",
        "discriminator_predictions.dense_prediction": "head.output",
    }
    return electra("ElectraForPreTraining", model, model, names)


def batch() -> MaskedBatch:
    predicted = LABELS != NO_LABEL
    return MaskedBatch(
        inputs=IDS,
        labels=LABELS,
        target_mask=predicted,
        target_tokens=int(predicted.sum()),
        rows=(0, 1),
        mask=IDS != PAD,
    )


@torch.no_grad()
def test_outputs_of_generator_and_body_equal_hugging_face(model: EncoderOnly) -> None:
    mask = IDS != PAD
    theirs = generator_of(model)(IDS, attention_mask=mask.long()).logits
    assert model.generator is not None
    assert_close(model.generator(IDS, mask).logits()[mask], theirs[mask])
    theirs = discriminator_of(model)(IDS, attention_mask=mask.long()).logits
    assert_close(model(IDS, mask)[mask], theirs[mask])


def test_the_loss_is_the_sum_of_hugging_faces_losses_for_the_same_draws(model: EncoderOnly) -> None:
    one = batch()
    tokens, places = one.target_tokens, int(one.mask.sum())
    objective = ReplacedTokenObjective(CrossEntropy(0.0), 50.0, tokens / places, range(4, SIZE - 1))
    torch.manual_seed(4)
    loss = objective(model, one).total / tokens
    assert model.generator is not None
    torch.manual_seed(4)
    drawn: Tensor = replace_tokens(model.generator(*one.model_inputs), one, range(4, SIZE - 1)).ids
    original = torch.where(one.target_mask, LABELS, IDS)
    attention = one.mask.long()
    masked = generator_of(model)(IDS, attention_mask=attention, labels=LABELS).loss
    replaced = discriminator_of(model)(drawn, attention_mask=attention, labels=(drawn != original).long()).loss
    assert drawn.ne(original).any()
    assert_close(loss, masked + 50 * replaced)
