"""Converts BERT models from a Hugging Face folder to an `ImportedModel`, and from a model folder to a Hugging Face
folder.

Each of the other modules in this package converts one part of a model in both directions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman.base.errors import ModelError
from dragoman.exchange.huggingface.bert.architecture import config_json, model_section, read_settings
from dragoman.exchange.huggingface.bert.vocabulary import bert_order, read_vocabulary, write_vocabulary
from dragoman.exchange.huggingface.bert.weights import NEXT_SENTENCE, POOLER, PREFIX, current_name, weight_table
from dragoman.exchange.huggingface.files import CONFIG, ImportedModel, read_tensors
from dragoman.exchange.huggingface.model_folder import StoredModel, import_model, write_folder
from dragoman.models.heads.texts import RegressionHeadConfig
from dragoman.models.kinds.encoder_only import EncoderOnlyConfig
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.bert import BertTokenizer

_OUTPUT = "head.output"


def read_bert(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of a BERT model to a model with the same outputs.

    config: the content of the folder's `config.json`. Raises ModelError for a folder that is damaged or has unsupported
    features.
    """
    settings = read_settings(config, folder / CONFIG)
    tokenizer, subword = read_vocabulary(folder, settings)
    path, tensors = read_tensors(folder, allow_pickle)
    names = set(map(current_name, tensors))
    model = model_section(settings, POOLER in names, {POOLER, NEXT_SENTENCE} <= names, folder / CONFIG)
    table = weight_table(model, bert_order(tokenizer), tokenizer.size)
    sections = {"model": model, "text": TextConfig(subword=subword)}
    return import_model(settings.architecture, sections, tokenizer, table, tensors=tensors, path=path)


def write_bert(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that BERT does not support, in which case nothing is written.
    """
    stored = StoredModel.load(folder)
    model, tokenizer = stored.model, stored.tokenizers.source
    assert isinstance(model, EncoderOnlyConfig)
    if not isinstance(tokenizer, BertTokenizer):
        raise ModelError(
            f"{folder} has a {tokenizer.kind} vocabulary, but BERT requires one of the kind bert. Only imported models "
            "and models trained with text.subword.kind=bert can be exported"
        )
    order = bert_order(tokenizer)
    content = config_json(model, len(order), order.index(0))
    tensors = weight_table(model, order, tokenizer.size).to_theirs(_fold_scale(stored.parameters(), model))
    if model.head.kind == "none":  # Hugging Face's class without a head names its tensors without the prefix
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    positions = content["max_position_embeddings"]
    write_folder(
        folder, out, content, tensors, write_vocabulary=lambda staged: write_vocabulary(staged, tokenizer, positions)
    )


def _fold_scale(parameters: Mapping[str, Tensor], model: EncoderOnlyConfig) -> dict[str, Tensor]:
    """Return the parameters with the offset and scale of a regression head, which BERT lacks, in its output layer."""
    head, result = model.head, dict(parameters)
    if isinstance(head, RegressionHeadConfig) and (head.offset, head.scale) != (0.0, 1.0):
        offset, scale = head.offset or 0.0, head.scale or 1.0
        result[f"{_OUTPUT}.weight"] = parameters[f"{_OUTPUT}.weight"] * scale
        result[f"{_OUTPUT}.bias"] = parameters[f"{_OUTPUT}.bias"] * scale + offset
    return result
