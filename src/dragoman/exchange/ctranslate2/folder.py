"""Folders of CTranslate2, written from a model and opened again.

They contain CTranslate2's `model.bin`, `config.json` and vocabularies, and also dragoman's tokenizers, settings,
`meta.json` and model card. CTranslate2 itself translates pieces with them, and dragoman translates text.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.files import atomic_folder
from dragoman.checkpoint.folder import CARD, CONFIG, META, LoadedModel, check_serves, read_config
from dragoman.checkpoint.meta import Meta, parse_meta
from dragoman.exchange.ctranslate2.specification import library, positions, specification
from dragoman.models.assembly import without_storage
from dragoman.models.interface import LengthLimits
from dragoman.models.kinds import TRANSLATION_MODEL, ModelKind, parse_model
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.tokenizers import Tokenizers

Quantization = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""Storage types of weights, by CTranslate2's names."""

MODEL = "model.bin"


@dataclass(frozen=True)
class Exported:
    """A model that CTranslate2 has loaded. translator: a `ctranslate2.Translator`. config: the resolved settings.

    positions: the maximum length of source and target in tokens, including the end or beginning; None for any length.
    """

    translator: Any
    tokenizers: Tokenizers
    meta: Meta
    config: Mapping[str, Any]
    limits: LengthLimits
    positions: int | None


@dataclass(frozen=True)
class Computing:
    """How CTranslate2 computes. kind: its compute type; `default` is the type of the stored weights.

    workers: the number of batches translated at the same time, each on one thread. With models of these sizes, several
    threads on one batch would wait for one another most of the time (docs/translation-speed.md).
    """

    kind: str
    workers: int


def check_model_kind(folder: Path, verb: str) -> ModelKind:
    """Return the kind of the model in a folder, which may be an exported one.

    Raises ModelError, as `check_serves` does, if the kind does not support `verb`.
    """
    return TRANSLATION_MODEL if is_exported(folder) else check_serves(folder, verb)


def is_exported(folder: Path) -> bool:
    """Whether a folder contains a model of CTranslate2."""
    return (Path(folder) / MODEL).is_file()


def export(loaded: LoadedModel, source: Path, out: Path, quantization: Quantization = "float32") -> None:
    """Write a model, loaded from the folder `source`, to the new folder `out`.

    Raises ModelError for a model that CTranslate2 cannot express, ConfigError if `out` exists, ResourceError as
    `atomic_folder` does; in these cases nothing is written.
    """
    spec = _specify(loaded)
    if Path(out).exists() and (not Path(out).is_dir() or any(Path(out).iterdir())):
        raise ConfigError(f"--out {out} already exists: choose another name, or remove it")
    spec.optimize(quantization=quantization)
    with atomic_folder(out) as staged:
        spec.save(str(staged))
        loaded.tokenizers.save(staged)
        for name in (CONFIG, META):
            (staged / name).write_bytes((Path(source) / name).read_bytes())
        card = Path(source) / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else ""
        (staged / CARD).write_text(text + _card_section(quantization), encoding="utf-8")


def hand_over(loaded: LoadedModel, computing: Computing) -> Exported:
    """Load a model into CTranslate2, through a temporary folder. Raises the same errors as `export`."""
    spec = _specify(loaded)
    spec.optimize()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        spec.save(folder)
        translator = _open(Path(folder), computing)
    model = loaded.model
    return Exported(translator, loaded.tokenizers, loaded.meta, loaded.config, model.limits, positions(model))


def open_folder(folder: Path, computing: Computing) -> Exported:
    """Load a folder that `export` wrote. Raises ModelError if it is damaged, or was not written by dragoman."""
    folder = Path(folder)
    missing = [name for name in (CONFIG, META) if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder} is a model of CTranslate2 without {' and '.join(missing)}, so text cannot be tokenised as in "
            "training: export it again with dragoman export"
        )
    config, tokenizers = read_config(folder), Tokenizers.load(folder)
    meta = parse_meta((folder / META).read_text(encoding="utf-8"), str(folder / META))
    try:
        model_config = parse_model(config["model"], f"in the `model` section of {folder / CONFIG}")
        assert isinstance(model_config, ModelConfig)
        with without_storage():
            model = model_config.build_for(tokenizers.sizes)
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None
    return Exported(_open(folder, computing), tokenizers, meta, config, model.limits, positions(model))


def _specify(loaded: LoadedModel) -> Any:
    config = parse_model(loaded.config["model"], "in section model")
    assert isinstance(config, ModelConfig)
    spec = specification(loaded.model, config, loaded.tokenizers)
    spec.validate()
    return spec


def _open(folder: Path, computing: Computing) -> Any:
    try:
        return library().Translator(
            str(folder),
            device="cpu",
            compute_type=computing.kind,
            inter_threads=computing.workers,
            intra_threads=1,
            max_queued_batches=-1,
        )
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"CTranslate2 cannot load {folder}: {error}") from None


def _card_section(quantization: str) -> str:
    return (
        f"\n## CTranslate2\n\nThis folder was exported for CTranslate2, with weights stored as {quantization}. "
        "`dragoman translate FOLDER` reads text. CTranslate2 itself reads pieces, which are entries of its vocabulary "
        "files: those of the tokenizer in this folder, with tags first; it adds the end of sentence itself.\n"
    )
