"""From a model folder to a Hugging Face folder that `MarianMTModel` and `MarianTokenizer` read."""

import json
from pathlib import Path
from typing import Any

import torch

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_folder
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import CONFIG as OUR_CONFIG
from dragoman.checkpoint.folder import PARAMETERS as OUR_PARAMETERS
from dragoman.checkpoint.folder import check_serves, read_config, read_meta, validate
from dragoman.checkpoint.tensors import load_tensors, model_parameters, read_shapes, save_tensors
from dragoman.decode.search import SearchConfig
from dragoman.exchange.marian.architecture import config_json
from dragoman.exchange.marian.files import (
    CONFIG,
    GENERATION,
    PARAMETERS,
    SOURCE_MODEL,
    TARGET_MODEL,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
)
from dragoman.exchange.marian.generation import generation_json
from dragoman.exchange.marian.parameters import to_theirs
from dragoman.exchange.marian.vocabulary import rows, symbols, tokenizer_json
from dragoman.models.assembly import unfilled
from dragoman.models.kinds import parse_model
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceTokenizer


def export(folder: Path, out: Path) -> None:
    """Write the Hugging Face folder `out` of a model folder. Parameters keep their number type.

    Raises ModelError that says what of the model Marian does not have, ConfigError where `out` is there already;
    nothing is written then.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"{out} is there already: choose another name")
    meta = read_meta(folder)
    check_serves(folder, "export")
    settings = read_config(folder)
    try:
        model = parse_model(settings["model"], f"in section model of {folder / OUR_CONFIG}")
        search = parse_settings(
            settings.get("search") or {}, SearchConfig, f"in section search of {folder / OUR_CONFIG}"
        )
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None
    assert isinstance(model, ModelConfig)
    tokenizers = Tokenizers.load(folder)
    source, target = tokenizers.source, tokenizers.target
    if not (isinstance(source, SentencePieceTokenizer) and isinstance(target, SentencePieceTokenizer)):
        raise ModelError(
            f"{folder} has a vocabulary of kind {target.kind}, and Marian's are SentencePiece's: only models that were "
            "imported, or trained with text.subword.kind=sentencepiece, can be exported"
        )
    content = config_json(model, (len(rows(source)), len(rows(target))))
    ids = _special_ids(target)
    with unfilled():
        expected = model_parameters(model.build_for(tokenizers.sizes))
    validate(expected, read_shapes(folder / OUR_PARAMETERS)[0], folder / OUR_PARAMETERS, tokenizers.sizes)
    ours, _ = load_tensors(folder / OUR_PARAMETERS)
    with torch.no_grad():
        theirs = to_theirs(ours, model, tokenizers)
    kinds = {tensor.dtype for tensor in theirs.values()}
    content |= {**ids, "dtype": str(next(iter(kinds)) if len(kinds) == 1 else torch.float32).removeprefix("torch.")}
    generation = generation_json(search, content["max_position_embeddings"], rows(target))
    with atomic_folder(out) as staged:
        _write(staged / CONFIG, content)
        _write(staged / GENERATION, {**generation, **ids, "forced_eos_token_id": ids["eos_token_id"]})
        _write(staged / TOKENIZER, tokenizer_json(tokenizers, meta))
        _write(staged / VOCABULARY, symbols(source))
        if not tokenizers.shared:
            _write(staged / TARGET_VOCABULARY, symbols(target))
        (staged / SOURCE_MODEL).write_bytes(source.model)
        (staged / TARGET_MODEL).write_bytes(target.model)
        save_tensors(staged / PARAMETERS, theirs, {"format": "pt"})


def _special_ids(target: SentencePieceTokenizer) -> dict[str, int]:
    there = {number: place for place, number in enumerate(rows(target))}
    begin = there[BOS]
    return {"pad_token_id": there.get(PAD, begin), "decoder_start_token_id": begin, "eos_token_id": there[EOS]}


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
