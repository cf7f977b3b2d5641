"""Writes and opens CTranslate2 model folders.

A folder contains CTranslate2's `model.bin`, `config.json` and vocabularies, and also dragoman's tokenizers, settings,
`meta.json` and model card. CTranslate2 uses the folder to translate sequences of pieces, and dragoman to translate
text.
"""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.base.log import info, warn
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import (
    CARD,
    CONFIG,
    META,
    LoadedModel,
    check_serves,
    copy_companions,
    parse_folder_model,
    read_config,
)
from dragoman.checkpoint.meta import Meta, parse_meta
from dragoman.exchange.ctranslate2.specification import library, positions, specification, token_names
from dragoman.models.initialisation import without_storage
from dragoman.models.interface import LengthLimits
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.kinds.registry import TRANSLATION_MODEL, ModelKind, parse_model
from dragoman.statistical.alignment.shortlist import Shortlist
from dragoman.text.tokenizers import Tokenizers

VOCABULARY_MAP = "vmap.txt"
"""CTranslate2's name of a shortlist, for its option `use_vmap`."""

Quantization = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""CTranslate2's names of the storage types of weights."""

MODEL = "model.bin"


@dataclass(frozen=True)
class ExportedModel:
    """A model that CTranslate2 has loaded.

    translator: a `ctranslate2.Translator`. config: the resolved settings. positions: the maximum length of source and
    target in tokens, including the end-of-sentence or start symbol; None if there is no limit.
    """

    translator: Any
    tokenizers: Tokenizers
    meta: Meta
    config: Mapping[str, Any]
    limits: LengthLimits
    positions: int | None


@dataclass(frozen=True)
class ComputeSettings:
    """CTranslate2's compute settings.

    kind: the compute type; `default` is the type of the stored weights. workers: the number of batches translated at
    the same time, each on one thread. For small models, several threads that share a batch would wait for one another
    most of the time (docs/explanation/engines.md).
    """

    kind: str
    workers: int


def check_model_kind(folder: Path, ability: str) -> ModelKind:
    """Return the kind of the model in a model folder or in a CTranslate2 folder.

    Raises ModelError, as `check_serves` does, if models of this kind do not support `ability`.
    """
    return TRANSLATION_MODEL if is_exported(folder) else check_serves(folder, ability)


def is_exported(folder: Path) -> bool:
    """Return whether a folder contains a CTranslate2 model."""
    return (Path(folder) / MODEL).is_file()


def export(loaded: LoadedModel, source: Path, out: Path, quantization: Quantization = "float32") -> None:
    """Write a model that was loaded from the folder `source` to the new folder `out`, with its aligner and shortlist.

    Raises ModelError for a model that CTranslate2 cannot express, ConfigError if `out` exists, and ResourceError as
    `atomic_folder` does. In these cases, nothing is written.
    """
    spec = _specify(loaded)
    check_new_folder(out)
    spec.optimize(quantization=quantization)
    with atomic_folder(out) as staged:
        spec.save(str(staged))
        loaded.tokenizers.save(staged)
        (staged / META).write_bytes((Path(source) / META).read_bytes())
        (staged / CONFIG).write_text(_settings(loaded, Path(source)), encoding="utf-8")
        card = Path(source) / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else ""
        (staged / CARD).write_text(text + _card_section(quantization), encoding="utf-8")
        copy_companions(source, staged)
        write_vocabulary_map(staged, loaded.tokenizers)


def _settings(loaded: LoadedModel, source: Path) -> str:
    """Return the content of `config.yaml`. CTranslate2 cannot replace unknown words, so they are never generated."""
    search = loaded.config.get("search") or {}
    unknown = search.get("unknown")
    kind = unknown.get("kind") if isinstance(unknown, dict) else unknown
    if loaded.tokenizers.target.lossless or kind == "forbid":
        return (source / CONFIG).read_text(encoding="utf-8")
    info("CTranslate2 does not replace unknown words: the exported model has search.unknown=forbid")
    return dump_yaml({**loaded.config, "search": {**search, "unknown": {"kind": "forbid"}}})


def load_into_ctranslate2(loaded: LoadedModel, compute: ComputeSettings) -> ExportedModel:
    """Load a model into CTranslate2, through a temporary folder. Raises the same errors as `export`."""
    spec = _specify(loaded)
    spec.optimize()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        spec.save(folder)
        translator = _open(Path(folder), compute)
    model = loaded.model
    return ExportedModel(translator, loaded.tokenizers, loaded.meta, loaded.config, model.limits, positions(model))


def open_folder(folder: Path, compute: ComputeSettings) -> ExportedModel:
    """Load a folder written by `export`. Raises ModelError if it is damaged or was not written by dragoman."""
    folder = Path(folder)
    missing = [name for name in (CONFIG, META) if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder} is a CTranslate2 model without {' and '.join(missing)}, so text cannot be tokenised as in "
            "training: export the original model again with dragoman export"
        )
    config, tokenizers = read_config(folder), Tokenizers.load(folder)
    meta = parse_meta((folder / META).read_text(encoding="utf-8"), str(folder / META))
    try:
        model_config = parse_folder_model(config, folder)
        assert isinstance(model_config, ModelConfig)
        with without_storage():
            model = model_config.build_for(tokenizers.sizes)
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None
    return ExportedModel(_open(folder, compute), tokenizers, meta, config, model.limits, positions(model))


def _specify(loaded: LoadedModel) -> Any:
    config = parse_model(loaded.config["model"], "in the `model` section")
    assert isinstance(config, ModelConfig)
    spec = specification(loaded.model, config, loaded.tokenizers)
    spec.validate()
    return spec


def _open(folder: Path, compute: ComputeSettings) -> Any:
    try:
        return library().Translator(
            str(folder),
            device="cpu",
            compute_type=compute.kind,
            inter_threads=compute.workers,
            intra_threads=1,
            max_queued_batches=-1,
        )
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"CTranslate2 cannot load {folder}: {error}") from None


def _card_section(quantization: str) -> str:
    return (
        f"\n## CTranslate2\n\nThis folder was exported for CTranslate2, with weights stored as {quantization}. "
        "`dragoman translate FOLDER` translates text. CTranslate2 translates sequences of pieces, which are entries of "
        "its vocabulary files. Use the tokenizer in this folder to split text into pieces, and put tags first. "
        "CTranslate2 adds the end of sentence.\n"
    )


def write_vocabulary_map(folder: Path, tokenizers: Tokenizers) -> None:
    """Write the shortlist in a folder as `vmap.txt`, if there is one.

    A line contains a source token, a tab, and its translations; the tokens of the first line, which has no source
    token, may occur in every translation. CTranslate2 considers all tokens for a batch that are in the shortlist of any
    of its sentences. If a vocabulary contains tokens with whitespace, no map is written, and a warning is printed.
    """
    shortlist = Shortlist.load(folder, tokenizers.sizes)
    if shortlist is None:
        return
    sources, targets = token_names(tokenizers.source), token_names(tokenizers.target)
    if any(len(token.split()) != 1 for token in (*sources, *targets)):
        warn("CTranslate2's vocabulary maps cannot express tokens with whitespace, so the shortlist was not exported")
        return

    def line(token: str, translations: Iterable[int]) -> str:
        return f"{token}\t{' '.join(targets[each] for each in translations)}\n"

    rows = ((token, shortlist.translations(number).tolist()) for number, token in enumerate(sources))
    lines = [line("", shortlist.always.tolist()), *(line(token, found) for token, found in rows if found)]
    (folder / VOCABULARY_MAP).write_text("".join(lines), encoding="utf-8")
