"""Converts T5 models from a Hugging Face folder to an `ImportedModel`, and from a model folder to a Hugging Face
folder.

Each of the other modules in this package converts one part of a model in both directions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.decode.search import SearchConfig
from dragoman.exchange.huggingface.files import CONFIG, ImportedModel, read_tensors
from dragoman.exchange.huggingface.generation import generation_json, search_section
from dragoman.exchange.huggingface.model_folder import StoredModel, import_model, read_generation, write_folder
from dragoman.exchange.huggingface.t5.architecture import ARCHITECTURES, config_json, model_section, read_settings
from dragoman.exchange.huggingface.t5.vocabulary import read_vocabulary, t5_order, write_vocabulary
from dragoman.exchange.huggingface.t5.weights import is_tied, weight_table
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.t5 import T5Tokenizer, T5UnigramConfig


def read_t5(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of a T5 model to a model with the same logits.

    config: the content of the folder's `config.json`. Raises ModelError for a folder that is damaged or has unsupported
    features.
    """
    settings = read_settings(config, folder / CONFIG)
    tokenizer = read_vocabulary(folder, settings)
    path, tensors = read_tensors(folder, allow_pickle)
    model = model_section(settings, is_tied(tensors, settings.scales_output), folder / CONFIG)
    order = t5_order(tokenizer)
    search = search_section(*read_generation(folder, config), None, order)
    sections = {"model": model, "text": TextConfig(subword=T5UnigramConfig()), "search": search}
    table = weight_table(model, order, tokenizer.size)
    return import_model(
        settings.architecture or ARCHITECTURES[0], sections, tokenizer, table, tensors=tensors, path=path
    )


def write_t5(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that T5 does not support, in which case nothing is written.
    """
    stored = StoredModel.load(folder)
    model, tokenizers = stored.model, stored.tokenizers
    assert isinstance(model, ModelConfig)
    tokenizer = tokenizers.target
    if not (isinstance(tokenizer, T5Tokenizer) and tokenizers.has_single_tokenizer and tokenizer.original_ids):
        raise ModelError(
            f"{folder} has a {tokenizer.kind} vocabulary, but T5 requires one of the kind t5 for both languages, whose "
            "padding starts outputs. Only imported models can be exported"
        )
    order = t5_order(tokenizer)
    content = config_json(model, len(order)) | stored.prefix_json()
    tensors = weight_table(model, order, tokenizer.size).to_theirs(stored.parameters())
    start, end = order.index(BOS), order.index(EOS)
    ids = {"pad_token_id": start, "eos_token_id": end, "decoder_start_token_id": start}
    generation = {**generation_json(stored.search(SearchConfig), None, order), **ids}
    write_folder(
        folder,
        out,
        content | ids,
        tensors,
        write_vocabulary=lambda staged: write_vocabulary(staged, tokenizer),
        generation=generation,
    )
