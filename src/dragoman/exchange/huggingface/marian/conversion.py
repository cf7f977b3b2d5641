"""Converts Marian models from a Hugging Face folder to an `ImportedModel`, and from a model folder to a Hugging Face
folder.

Each of the other modules in this package converts one part of a model in both directions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import check_serves, read_meta
from dragoman.checkpoint.meta import Meta
from dragoman.decode.search import SearchConfig
from dragoman.exchange.huggingface.files import CONFIG, TOKENIZER, ImportedModel, read_tensors, write_json
from dragoman.exchange.huggingface.generation import generation_json, search_section
from dragoman.exchange.huggingface.marian.architecture import config_json, model_section, read_settings
from dragoman.exchange.huggingface.marian.parameters import MarianParameters, from_marian, needs_bias, to_marian
from dragoman.exchange.huggingface.marian.vocabulary import (
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    VOCABULARY,
    ids_in_marian_order,
    read_vocabularies,
    symbols,
    tokenizer_json,
)
from dragoman.exchange.huggingface.model_folder import StoredModel, read_generation, write_folder
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.symbols import BOS, EOS, PAD, tag_languages
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceConfig, SentencePieceTokenizer


def read_marian(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of a Marian model to a model with the same logits.

    config: the content of the folder's `config.json`. Raises ModelError for a folder that is damaged or has unsupported
    features, ConfigError if a library is not installed.
    """
    settings = read_settings(config, folder / CONFIG)
    needed = (CONFIG, VOCABULARY, SOURCE_MODEL, TARGET_MODEL)
    if missing := [name for name in needed if not (folder / name).is_file()]:
        raise ModelError(f"{folder} is not a complete Marian model folder: {', '.join(missing)} missing")
    tokenizers, tokenizer_config = read_vocabularies(folder, settings)
    path, tensors = read_tensors(folder, allow_pickle)
    marian_parameters = MarianParameters(tensors, settings, path)
    tied = marian_parameters.tables.source is marian_parameters.tables.target
    model = model_section(settings, tied, needs_bias(tokenizers, marian_parameters.tables.bias), folder / CONFIG)
    target = tokenizers.target
    assert isinstance(target, SentencePieceTokenizer)
    order = ids_in_marian_order(target)
    search = search_section(*read_generation(folder, config), settings.max_position_embeddings, order)
    text = TextConfig(subword=SentencePieceConfig(), shared=tokenizers.shared)
    with torch.no_grad():
        parameters = from_marian(marian_parameters, model, tokenizers)
    return ImportedModel(
        {"model": model, "text": text, "search": search}, tokenizers, parameters, _meta(tokenizer_config, tokenizers)
    )


def write_marian(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that Marian does not support, in which case nothing is written.
    """
    meta = read_meta(folder)
    check_serves(folder, "export")
    stored = StoredModel.load(folder)
    model, tokenizers, search = stored.model, stored.tokenizers, stored.search(SearchConfig)
    assert isinstance(model, ModelConfig)
    source, target = tokenizers.source, tokenizers.target
    if not (isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer)):
        raise ModelError(
            f"{folder} has a {target.kind} vocabulary, but Marian requires SentencePiece vocabularies. Only imported "
            "models and models trained with text.subword.kind=sentencepiece can be exported"
        )
    content = stored.prefix_json() | config_json(
        model, (len(ids_in_marian_order(source)), len(ids_in_marian_order(target)))
    )
    ids = _special_ids(target)
    with torch.no_grad():
        marian_parameters = to_marian(stored.parameters(), model, tokenizers)
    generation = generation_json(search, content["max_position_embeddings"], ids_in_marian_order(target))
    generation |= {**ids, "forced_eos_token_id": ids["eos_token_id"]}

    def write_vocabularies(staged: Path) -> None:
        write_json(staged / TOKENIZER, tokenizer_json(tokenizers, meta))
        write_json(staged / VOCABULARY, symbols(source))
        if not tokenizers.shared:
            write_json(staged / TARGET_VOCABULARY, symbols(target))
        (staged / SOURCE_MODEL).write_bytes(source.model)
        (staged / TARGET_MODEL).write_bytes(target.model)

    write_folder(
        folder, out, content | ids, marian_parameters, write_vocabulary=write_vocabularies, generation=generation
    )


def _meta(tokenizer_config: Mapping[str, Any], tokenizers: Tokenizers) -> Meta:
    def language(side: str) -> str | None:
        value = tokenizer_config.get(f"{side}_lang")
        return value if isinstance(value, str) else None

    return Meta(
        step=0,
        source_language=language("source"),
        target_language=language("target"),
        target_languages=tag_languages(tokenizers.tags),
    )


def _special_ids(target: SentencePieceTokenizer) -> dict[str, int]:
    """Return the ids of special symbols by their keys in `config.json` and `generation_config.json`."""
    marian_ids = {our_id: marian_id for marian_id, our_id in enumerate(ids_in_marian_order(target))}
    start = marian_ids[BOS]
    return {
        "pad_token_id": marian_ids.get(PAD, start),
        "decoder_start_token_id": start,
        "eos_token_id": marian_ids[EOS],
    }
