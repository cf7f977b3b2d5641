"""Converts the architecture and the head of BERT models between `config.json` and dragoman's `model` section."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from dragoman.base.errors import ModelError
from dragoman.base.log import warn
from dragoman.exchange.huggingface.files import CONFIG
from dragoman.exchange.huggingface.round_trip import check_same_settings
from dragoman.exchange.huggingface.settings import (
    ACTIVATION_NAMES,
    ACTIVATIONS,
    FolderSettings,
    check_activation,
    check_architecture,
    parse_json_settings,
    parse_section,
)
from dragoman.models.families.transformer import TransformerEncoderConfig
from dragoman.models.heads.masked_language_model import MaskedLanguageModelHeadConfig
from dragoman.models.heads.tagging import TaggingHeadConfig
from dragoman.models.heads.texts import ClassificationHeadConfig, RegressionHeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig

ARCHITECTURES = {
    "none": "BertModel",
    "classification": "BertForSequenceClassification",
    "regression": "BertForSequenceClassification",
    "tagging": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
    "masked_language_model": "BertForMaskedLM",
}
"""Hugging Face's class for each kind of head."""

PRE_TRAINING = "BertForPreTraining"
"""Hugging Face's class for a masked language model that also predicts whether a text continues another."""

_NOT_COMPARED = (
    "preset",
    "dropout.embedding",
    "head.texts",
    "head.scheme",
    "head.offset",
    "head.scale",
    "head.longest",
    "head.no_answer",
    "head.threshold",
)
"""Prefixes of settings that affect only training or the choice of answers, or are part of the exported parameters."""

Rate = Field(0.1, ge=0, lt=1)


class BertSettings(FolderSettings):
    """The keys of `config.json` that determine the computation, with Hugging Face's defaults. Other keys are ignored.

    The last keys must have their default values, because other values describe models that are not encoders.
    """

    vocab_size: int = Field(30522, ge=1)
    hidden_size: int = Field(768, ge=2)
    num_hidden_layers: int = Field(12, ge=1)
    num_attention_heads: int = Field(12, ge=1)
    intermediate_size: int = Field(3072, ge=1)
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = Rate
    attention_probs_dropout_prob: float = Rate
    classifier_dropout: float | None = Field(None, ge=0, lt=1)
    max_position_embeddings: int = Field(512, ge=1)
    type_vocab_size: int = Field(2, ge=1)
    layer_norm_eps: float = Field(1e-12, gt=0)
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    num_labels: int | None = Field(None, ge=1)
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    problem_type: Literal["regression", "single_label_classification"] | None = None
    position_embedding_type: Literal["absolute"] = "absolute"
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False

    @property
    def architecture(self) -> str:
        """The name of Hugging Face's class."""
        return self.architectures[0] if self.architectures else ARCHITECTURES["none"]


def read_settings(content: Mapping[str, Any], path: Path) -> BertSettings:
    """Return the settings in the content of `config.json`. Raises ModelError for invalid or unsupported values."""
    settings = parse_json_settings(content, BertSettings, path)
    check_activation(settings.hidden_act, "hidden_act", path)
    check_architecture(settings, (*dict.fromkeys(ARCHITECTURES.values()), PRE_TRAINING), path)
    return settings


def label_names(settings: BertSettings, path: Path) -> tuple[str, ...]:
    """Return the names of the classes in the order of the logits.

    Without names, they are LABEL_0, LABEL_1, …, as in Hugging Face. Raises ModelError if the names have gaps or repeat,
    or if `id2label`, `label2id` and `num_labels` disagree.
    """
    names, numbers = settings.id2label, settings.label2id
    if names is None:
        names = {str(number): f"LABEL_{number}" for number in range(settings.num_labels or 2)}
    labels = tuple(names.get(str(number), "") for number in range(len(names)))
    if sorted(names) != sorted(map(str, range(len(names)))):
        raise ModelError(f"{path}: the keys of id2label must be 0 to {len(names) - 1}, not {', '.join(names)}")
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        raise ModelError(f"{path}: id2label contains the label {repeated!r} twice")
    if settings.num_labels not in (None, len(labels)):
        raise ModelError(f"{path}: num_labels is {settings.num_labels}, but id2label has {len(labels)} labels")
    if numbers is not None and numbers != {label: number for number, label in enumerate(labels)}:
        wrong = next((label for number, label in enumerate(labels) if numbers.get(label) != number), None)
        detail = f"{wrong!r} is {labels.index(wrong)} in one and {numbers.get(wrong)} in the other" if wrong else ""
        raise ModelError(f"{path}: id2label and label2id disagree: {detail or 'label2id has further labels'}")
    return labels


def model_section(settings: BertSettings, pooler: bool, next_sentence: bool, path: Path) -> EncoderOnlyConfig:
    """Return the `model` section for a BERT model.

    pooler: whether a model without labels has a pooler. next_sentence: whether a masked language model has a pooler and
    a classifier of next sentences. Raises ModelError if its settings are inconsistent.
    """
    norm = {"kind": "layer", "epsilon": settings.layer_norm_eps}
    section = {
        "preset": None,
        "width": settings.hidden_size,
        "encoder": {
            "kind": "transformer",
            "layers": settings.num_hidden_layers,
            "heads": settings.num_attention_heads,
            "feedforward": settings.intermediate_size,
            "activation": ACTIVATIONS[settings.hidden_act],
            "norm": "post",
            "normalisation": norm,
        },
        "positions": {"kind": "learned", "limit": settings.max_position_embeddings},
        "dropout": {
            "embedding": settings.hidden_dropout_prob,
            "residual": settings.hidden_dropout_prob,
            "attention": settings.attention_probs_dropout_prob,
        },
        "segments": settings.type_vocab_size,
        "scale_embeddings": False,
        "embedding_norm": norm,
        "head": _head_section(settings, pooler, next_sentence, path),
    }
    return parse_section(section, EncoderOnlyConfig, path)


def _head_section(settings: BertSettings, pooler: bool, next_sentence: bool, path: Path) -> dict[str, Any]:
    rate = settings.hidden_dropout_prob if settings.classifier_dropout is None else settings.classifier_dropout
    architecture = settings.architecture
    if architecture == ARCHITECTURES["none"]:
        return {"kind": "none", "hidden": pooler}
    if architecture == ARCHITECTURES["span"]:
        return {"kind": "span", "dropout": 0.0, "no_answer": False}
    if architecture in (ARCHITECTURES["masked_language_model"], PRE_TRAINING):
        norm = {"kind": "layer", "epsilon": settings.layer_norm_eps}
        layer = {"activation": ACTIVATIONS[settings.hidden_act], "normalisation": norm}
        tied = settings.tie_word_embeddings
        return {"kind": "masked_language_model", **layer, "tied": tied, "next_sentence": next_sentence}
    labels = label_names(settings, path)
    if architecture == ARCHITECTURES["tagging"]:
        return {"kind": "tagging", "labels": labels, "dropout": rate}
    vector = {"pooling": "first", "hidden": True, "dropout": rate}
    if len(labels) == 1 and settings.problem_type in (None, "regression"):
        return {"kind": "regression", **vector, "offset": 0.0, "scale": 1.0}
    if settings.problem_type == "regression":
        raise ModelError(f"{path}: regression of {len(labels)} numbers is not supported, only of one")
    return {"kind": "classification", **vector, "labels": labels}


def config_json(model: EncoderOnlyConfig, size: int, padding: int) -> dict[str, Any]:
    """Return the content of `config.json`. size: number of entries of BERT's vocabulary. padding: its id of padding.

    Raises ModelError with the name and value of every setting that BERT does not support.
    """
    encoder, head = model.encoder, model.head
    if not isinstance(encoder, TransformerEncoderConfig):
        raise ModelError(f"BERT cannot express this model: model.encoder.kind is {encoder.kind}, not transformer")
    if head.kind not in ARCHITECTURES:
        raise ModelError(f"BERT cannot express this model: model.head.kind is {head.kind}")
    norm = encoder.normalisation
    content: dict[str, Any] = {
        "architectures": [ARCHITECTURES[head.kind]],
        "model_type": "bert",
        "vocab_size": size,
        "hidden_size": model.width,
        "num_hidden_layers": encoder.layers,
        "num_attention_heads": encoder.heads,
        "intermediate_size": encoder.feedforward,
        "hidden_act": ACTIVATION_NAMES.get(encoder.activation, "gelu"),
        "hidden_dropout_prob": model.dropout.residual,
        "attention_probs_dropout_prob": model.dropout.attention,
        "max_position_embeddings": getattr(model.positions, "limit", None) or 512,
        "type_vocab_size": max(1, model.segments),
        "layer_norm_eps": getattr(norm, "epsilon", 1e-12),
        "pad_token_id": padding,
        **_head_json(model),
    }
    _check_round_trip(model, content)
    if model.dropout.embedding != model.dropout.residual:
        warn(
            "BERT has a single dropout rate for residuals and embeddings: writing the rate of residuals, "
            f"{model.dropout.residual}"
        )
    return content


def _head_json(model: EncoderOnlyConfig) -> dict[str, Any]:
    head = model.head
    if isinstance(head, MaskedLanguageModelHeadConfig):
        classes = {"architectures": [PRE_TRAINING]} if head.next_sentence else {}
        return {"tie_word_embeddings": head.tied, **classes}
    if isinstance(head, RegressionHeadConfig):
        names = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        return {**names, "problem_type": "regression", "classifier_dropout": head.dropout}
    if isinstance(head, ClassificationHeadConfig | TaggingHeadConfig):
        labels = head.labels or ()
        return {
            "id2label": {str(number): label for number, label in enumerate(labels)},
            "label2id": {label: number for number, label in enumerate(labels)},
            "classifier_dropout": head.dropout,
            **({"problem_type": "single_label_classification"} if head.kind == "classification" else {}),
        }
    return {}


def _check_round_trip(model: EncoderOnlyConfig, content: Mapping[str, Any]) -> None:
    """Raise ModelError unless `content` is converted back to the same model, so that no setting is overlooked."""
    pooler, next_sentence = getattr(model.head, "hidden", False), getattr(model.head, "next_sentence", False)
    read = model_section(BertSettings.model_validate(content), pooler, next_sentence, Path(CONFIG))
    ignored = (*_NOT_COMPARED, *(("head.dropout",) if model.head.kind == "span" else ()))
    check_same_settings(model, read, "BERT", ignored)
