"""Folders of CTranslate2: written for a model of ours, and opened again.

Such a folder holds CTranslate2's `model.bin`, `config.json` and vocabularies, and beside them our tokenizers, settings,
`meta.json` and card, so that plain CTranslate2 can use it with pieces and dragoman with text.
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
from dragoman.exchange.ctranslate2.library import library
from dragoman.exchange.ctranslate2.specification import positions, specification
from dragoman.models.assembly import unfilled
from dragoman.models.interface import LengthLimits
from dragoman.models.kinds import TRANSLATION_MODEL, ModelKind, parse_model
from dragoman.models.seq2seq import ModelConfig
from dragoman.text.tokenizers import Tokenizers

Quantization = Literal[
    "float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""What weights are stored as, in CTranslate2's words."""

MODEL = "model.bin"


@dataclass(frozen=True)
class Exported:
    """A model in CTranslate2's hands. translator: a `ctranslate2.Translator`; config: the resolved settings.

    positions: the longest text of a side, its end or beginning counted; None for any length.
    """

    translator: Any
    tokenizers: Tokenizers
    meta: Meta
    config: Mapping[str, Any]
    limits: LengthLimits
    positions: int | None


@dataclass(frozen=True)
class Computing:
    """How CTranslate2 computes. kind: its compute type, `default` as the weights are stored.

    workers: sentences' batches that are translated at one time, each on one thread: for models of this size several
    threads of one batch wait for one another most of the time (docs/translation-speed.md).
    """

    kind: str
    workers: int


def kind_serving(folder: Path, verb: str) -> ModelKind:
    """The kind of the model in a folder, which may be exported.

    Raises ModelError as `check_serves`, where the kind does not serve `verb`.
    """
    return TRANSLATION_MODEL if is_exported(folder) else check_serves(folder, verb)


def is_exported(folder: Path) -> bool:
    """Whether a folder holds a model of CTranslate2."""
    return (Path(folder) / MODEL).is_file()


def export(loaded: LoadedModel, source: Path, out: Path, quantization: Quantization = "float32") -> None:
    """Write the model that was loaded from the folder `source` to the new folder `out`.

    Raises ModelError for a model that CTranslate2 cannot express, before anything is written; ResourceError as
    `atomic_folder`.
    """
    found = _specified(loaded)
    if Path(out).exists() and (not Path(out).is_dir() or any(Path(out).iterdir())):
        raise ConfigError(f"--out {out} exists already: choose another name, or remove it")
    found.optimize(quantization=quantization)
    with atomic_folder(out) as staged:
        found.save(str(staged))
        loaded.tokenizers.save(staged)
        for name in (CONFIG, META):
            (staged / name).write_bytes((Path(source) / name).read_bytes())
        card = Path(source) / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else ""
        (staged / CARD).write_text(text + _use(quantization), encoding="utf-8")


def hand_over(loaded: LoadedModel, computing: Computing) -> Exported:
    """A loaded model, by way of a temporary folder. Raises as `export`."""
    found = _specified(loaded)
    found.optimize()
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        found.save(folder)
        translator = _opened(Path(folder), computing)
    model = loaded.model
    return Exported(translator, loaded.tokenizers, loaded.meta, loaded.config, model.limits, positions(model))


def open_folder(folder: Path, computing: Computing) -> Exported:
    """What `export` wrote. Raises ModelError for a folder that is damaged, or was not written by dragoman."""
    folder = Path(folder)
    missing = [name for name in (CONFIG, META) if not (folder / name).is_file()]
    if missing:
        raise ModelError(
            f"{folder} is a model of CTranslate2 without {' and '.join(missing)}, so text cannot be split as it was "
            "in training: export it again with dragoman export"
        )
    config, tokenizers = read_config(folder), Tokenizers.load(folder)
    meta = parse_meta((folder / META).read_text(encoding="utf-8"), str(folder / META))
    try:
        model_config = parse_model(config["model"], f"in section model of {folder / CONFIG}")
        assert isinstance(model_config, ModelConfig)
        with unfilled():
            model = model_config.build_for(tokenizers.sizes)
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None
    return Exported(_opened(folder, computing), tokenizers, meta, config, model.limits, positions(model))


def _specified(loaded: LoadedModel) -> Any:
    config = parse_model(loaded.config["model"], "in section model")
    assert isinstance(config, ModelConfig)
    found = specification(loaded.model, config, loaded.tokenizers)
    found.validate()
    return found


def _opened(folder: Path, computing: Computing) -> Any:
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


def _use(quantization: str) -> str:
    return (
        f"\n## CTranslate2\n\nThis folder was exported for CTranslate2, its weights stored as {quantization}. "
        "`dragoman translate FOLDER` takes text. Plain CTranslate2 takes pieces: the entries of its vocabulary files, "
        "as the tokenizer beside them makes them, tags first; it adds the end of the sentence itself.\n"
    )
