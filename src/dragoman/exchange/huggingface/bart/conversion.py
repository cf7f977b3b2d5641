"""Converts BART models from a Hugging Face folder to an `ImportedModel`, and from a model folder to a Hugging Face
folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers.processors import RobertaProcessing

from dragoman.base.errors import ModelError
from dragoman.decode.search import SearchConfig
from dragoman.exchange.huggingface.bart.architecture import ARCHITECTURES, config_json, model_section, read_settings
from dragoman.exchange.huggingface.bart.weights import BIAS, weight_table
from dragoman.exchange.huggingface.byte_level import (
    ROLES,
    byte_level_order,
    byte_level_symbols,
    read_byte_level,
    write_byte_level,
)
from dragoman.exchange.huggingface.files import CONFIG, ImportedModel, read_tensors
from dragoman.exchange.huggingface.generation import generation_json, search_section
from dragoman.exchange.huggingface.model_folder import StoredModel, import_model, read_generation, write_folder
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.symbols import EOS, PAD, UNK
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.gpt2 import GPT2BPEConfig, GPT2Tokenizer

_DEFAULTS = ("<pad>", "<s>", "</s>", "<unk>")
"""BART's symbols of `ROLES`."""

_START = "begin"
"""The tag of the symbol that precedes every text."""


def read_bart(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of a BART model to a model with the same logits.

    config: the content of the folder's `config.json`. Raises ModelError for a folder that is damaged or has unsupported
    features.
    """
    settings = read_settings(config, folder / CONFIG)
    vocabulary = read_byte_level(folder)
    named = zip(ROLES, _DEFAULTS, strict=True)
    pad, start, end, unknown = (vocabulary.roles.get(role, default) for role, default in named)
    for name, symbol in (("pad_token_id", pad), ("bos_token_id", start), ("eos_token_id", end)):
        if vocabulary.ids.get(symbol) != getattr(settings, name):
            raise ModelError(
                f"{folder}: {symbol} has the id {vocabulary.ids.get(symbol)}, but {name} in {CONFIG} is "
                f"{getattr(settings, name)}: the files are from different models"
            )
    special = (pad, None, end, unknown if unknown in vocabulary.ids else None)
    tokenizer = vocabulary.tokenizer(special, settings.vocab_size, folder, {start: _START}).with_start([_START])
    path, tensors = read_tensors(folder, allow_pickle)
    bias = tensors.pop(BIAS, torch.zeros(1, settings.vocab_size))
    missing = [number for number, symbol in enumerate(special) if symbol is None]
    model = model_section(settings, bool(bias.any()), missing, folder / CONFIG)
    if model.projection_bias:
        tensors[BIAS] = bias.flatten()
    order = byte_level_order(tokenizer)
    search = search_section(
        *read_generation(folder, config), settings.max_position_embeddings, order, settings.bos_token_id
    )
    text = TextConfig(subword=GPT2BPEConfig(), normalization=tokenizer.normalization)
    sections = {"model": model, "text": text, "search": search}
    table = weight_table(model, order, tokenizer.size)
    return import_model(
        settings.architecture or ARCHITECTURES[0], sections, tokenizer, table, tensors=tensors, path=path
    )


def write_bart(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that BART does not support, in which case nothing is written.
    """
    stored = StoredModel.load(folder)
    model, tokenizers = stored.model, stored.tokenizers
    assert isinstance(model, ModelConfig)
    tokenizer = tokenizers.target
    if not (isinstance(tokenizer, GPT2Tokenizer) and tokenizers.has_single_tokenizer and tokenizer.start):
        raise ModelError(
            f"{folder} has a {tokenizer.kind} vocabulary, but BART requires one of the kind gpt2 for both languages, "
            "with a symbol that precedes every text. Only imported models can be exported"
        )
    order, symbols = byte_level_order(tokenizer), byte_level_symbols(tokenizer)
    content = config_json(model, len(order), [number for number in range(len(ROLES)) if number not in order])
    content |= stored.prefix_json()
    tensors = weight_table(model, order, tokenizer.size).to_theirs(stored.parameters())
    kind = next(iter(tensors.values())).dtype
    tensors[BIAS] = tensors.get(BIAS, torch.zeros(len(order), dtype=kind))[None]
    start, end = order.index(tokenizer.start_ids[0]), order.index(EOS)
    ids = {
        "pad_token_id": order.index(PAD),
        "bos_token_id": start,
        "eos_token_id": end,
        "decoder_start_token_id": end,
    }
    roles = {role: symbols[ids[f"{role}_id"]] for role in ROLES[:3]}
    roles |= {"cls_token": symbols[start], "sep_token": symbols[end]}
    if UNK in order:
        roles["unk_token"] = symbols[order.index(UNK)]
    if "<mask>" in symbols:
        roles["mask_token"] = "<mask>"
    about = {"tokenizer_class": "BartTokenizer", "model_max_length": content["max_position_embeddings"], **roles}
    generation = generation_json(stored.search(SearchConfig), content["max_position_embeddings"], order, start)
    generation |= {**ids, "forced_eos_token_id": end}
    processor = RobertaProcessing((symbols[end], end), (symbols[start], start), True, False)

    def vocabulary(staged: Path) -> None:
        write_byte_level(staged, tokenizer, about, processor)

    write_folder(folder, out, content | ids, tensors, write_vocabulary=vocabulary, generation=generation)
