"""From a Hugging Face folder of a Marian model, such as OPUS-MT's, to a model folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from dragoman.base.errors import ConfigError
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.exchange.marian.architecture import model_section, read_settings
from dragoman.exchange.marian.files import CONFIG, GENERATION, check_folder, check_whole, read_json, read_tensors
from dragoman.exchange.marian.generation import search_of
from dragoman.exchange.marian.parameters import TheirParameters, from_theirs, needs_bias
from dragoman.exchange.marian.vocabulary import read_vocabularies, rows
from dragoman.text.symbols import languages
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.sentencepiece import SentencePieceConfig, SentencePieceTokenizer


def import_marian(folder: Path, out: Path, allow_pickle: bool = False) -> None:
    """Write the model folder `out`. Hugging Face's logits are its logits, and parameters keep their number type.

    allow_pickle: read parameters from a pickle where there are no others. Raises ModelError for a folder that holds no
    Marian model or is damaged, ConfigError where `out` is there already or a library is missing; nothing is written
    then.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"{out} is there already: choose another name")
    check_folder(folder)
    content = read_json(folder / CONFIG)
    settings = read_settings(content, folder / CONFIG)
    check_whole(folder)
    tokenizers, about = read_vocabularies(folder, settings)
    path, tensors = read_tensors(folder, allow_pickle)
    theirs = TheirParameters(tensors, settings, path)
    tied = theirs.tables.source is theirs.tables.target
    model = model_section(settings, tied, needs_bias(tokenizers, theirs.tables.bias), folder / CONFIG)
    generation = read_json(folder / GENERATION, optional=True)
    target = tokenizers.target
    assert isinstance(target, SentencePieceTokenizer)
    origin = folder / (GENERATION if generation else CONFIG)
    search = search_of(generation or content, origin, settings.max_position_embeddings, rows(target))
    text = TextConfig(subword=SentencePieceConfig(), shared=tokenizers.shared)
    sections = {"model": model, "text": text, "search": search}
    config = dump_yaml({name: section.model_dump(mode="json") for name, section in sections.items()})
    with torch.no_grad():
        parameters = from_theirs(theirs, model, tokenizers)
    write_model_folder(out, parameters, config, tokenizers, _meta(about, tokenizers))


def _meta(about: Mapping[str, Any], tokenizers: Tokenizers) -> Meta:
    def named(side: str) -> str | None:
        value = about.get(f"{side}_lang")
        return value if isinstance(value, str) else None

    return Meta(
        step=0,
        source_language=named("source"),
        target_language=named("target"),
        target_languages=languages(tokenizers.tags),
    )
