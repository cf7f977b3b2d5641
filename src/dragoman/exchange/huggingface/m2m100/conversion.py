"""Converts M2M-100 and NLLB models from a Hugging Face folder to an `ImportedModel` for one pair of languages, and from
a model folder to a Hugging Face folder.

Each of the other modules in this package converts one part of a model in both directions.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, ModelError
from dragoman.decode.search import SearchConfig
from dragoman.exchange.huggingface.files import CONFIG, TOKENIZER, ImportedModel, read_json, read_tensors, write_json
from dragoman.exchange.huggingface.generation import generation_json, search_section
from dragoman.exchange.huggingface.m2m100.architecture import (
    ARCHITECTURES,
    config_json,
    has_positions,
    model_section,
    read_settings,
)
from dragoman.exchange.huggingface.m2m100.vocabulary import MODEL, original_ids, read_vocabulary, vocabulary_files
from dragoman.exchange.huggingface.m2m100.weights import POSITIONS, weight_table
from dragoman.exchange.huggingface.model_folder import StoredModel, import_model, read_generation, write_folder
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.languages.codes import closest_code, parse_language_code
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceConfig, SentencePieceTokenizer

_FORCED = "forced_bos_token_id"


def read_m2m100(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of an M2M-100 or NLLB model to a model with the same logits.

    config: the content of the folder's `config.json`. `between` chooses the languages of the result. Raises ModelError
    for a folder that is damaged or has unsupported features, ConfigError if a library is not installed.
    """
    settings = read_settings(config, folder / CONFIG)
    tokenizer = read_vocabulary(folder, settings)
    path, tensors = read_tensors(folder, allow_pickle)
    for name in POSITIONS:
        if (table := tensors.pop(name, None)) is not None and not has_positions(table, settings):
            raise ModelError(f"{path}: {name} has positions that are not the sines and cosines of {CONFIG}")
    model, order = model_section(settings, folder / CONFIG), original_ids(tokenizer)
    content, origin = read_generation(folder, config)
    content = {name: value for name, value in content.items() if name != _FORCED}
    search = search_section(content, origin, settings.max_position_embeddings, order)
    sections = {"model": model, "text": TextConfig(subword=SentencePieceConfig()), "search": search}
    return import_model(
        settings.architecture or ARCHITECTURES[0],
        sections,
        tokenizer,
        weight_table(model, order, tokenizer.size),
        tensors=tensors,
        path=path,
    )


def between(model: ImportedModel, folder: Path, source: str | None, target: str | None) -> ImportedModel:
    """Return an imported model that translates between two of its languages.

    source, target: codes, which may be written as in BCP 47 (`sw`) or as in the model (`swh_Latn`). Without them, those
    in the tokenizer's settings apply, if it has both. Raises ConfigError for languages that are missing or unknown.
    """
    tokenizer = model.tokenizers.source
    assert isinstance(tokenizer, SentencePieceTokenizer)
    about = read_json(folder / TOKENIZER, optional=True)
    stored = about.get("src_lang"), about.get("tgt_lang")
    if None in stored:
        stored = None, None
    chosen = [
        _chosen(option, given or own, tokenizer)
        for option, given, own in (("--from", source, stored[0]), ("--to", target, stored[1]))
    ]
    tokenizers = Tokenizers(tokenizer.with_start(chosen[:1]), deepcopy(tokenizer).with_start(chosen[1:]))
    codes = [_bcp47(code) for code in chosen]
    meta = {"whole_texts": False, "source_language": codes[0], "target_language": codes[1]}
    return replace(model, tokenizers=tokenizers, meta=model.meta.model_copy(update=meta))


def _chosen(option: str, code: str | None, tokenizer: SentencePieceTokenizer) -> str:
    if code is None:
        raise ConfigError(
            f"this model translates between {len(tokenizer.tags)} languages: choose two of them with --from and --to, "
            f"among {', '.join(tokenizer.tags)}"
        )
    found = closest_code(code, tokenizer.tags)
    if found is None:
        raise ConfigError(f"{option} {code}: the model has no such language. It has {', '.join(tokenizer.tags)}")
    return found


def _bcp47(code: str) -> str:
    parsed = parse_language_code(code)
    return parsed.language if parsed.script is None else f"{parsed.language}-{parsed.script}"


def write_m2m100(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that M2M-100 does not support, in which case nothing is written.
    """
    stored = StoredModel.load(folder)
    model, tokenizers = stored.model, stored.tokenizers
    assert isinstance(model, ModelConfig)
    source, target = tokenizers.source, tokenizers.target
    if not (isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer) and target.start):
        raise ModelError(
            f"{folder} has a {target.kind} vocabulary, but M2M-100 requires a SentencePiece vocabulary with a symbol "
            "per language. Only imported models can be exported"
        )
    order = original_ids(target)
    content = config_json(model, len(order)) | stored.prefix_json()
    tensors = weight_table(model, order, target.size).to_theirs(stored.parameters())
    ids = {"pad_token_id": order.index(PAD), "bos_token_id": order.index(BOS), "eos_token_id": order.index(EOS)}
    ids["decoder_start_token_id"] = ids["eos_token_id"]
    start = order.index(target.start_ids[0])
    generation = generation_json(stored.search(SearchConfig), content["max_position_embeddings"], order, start)
    files = vocabulary_files(target, (source.start[0], target.start[0]))

    def write_vocabulary(staged: Path) -> None:
        (staged / MODEL).write_bytes(target.model)
        for name, written in files.items():
            write_json(staged / name, written)

    write_folder(folder, out, content | ids, tensors, write_vocabulary=write_vocabulary, generation=generation | ids)
