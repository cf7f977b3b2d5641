"""The formats of other programs: `import_model` reads one, `export` writes one.

To import a format, register a function in `READERS`, under the `model_type` of its `config.json`, that converts a
folder to an `ImportedModel`; `import_model` checks the folder before, and writes the model folder afterwards. To export
a format, register a function in `WRITERS` that writes a new folder from a model folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import torch

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.log import quietly
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.exchange.ctranslate2.folder import Quantization
from dragoman.exchange.ctranslate2.folder import export as export_to_ctranslate2
from dragoman.exchange.huggingface import CONFIG, ImportedModel, check_folder, read_json
from dragoman.exchange.marian.conversion import read_marian, write_marian

READERS: Mapping[str, Callable[[Path, Mapping[str, Any], bool], ImportedModel]] = {"marian": read_marian}
"""Functions by `model_type` that convert a Hugging Face folder, given its `config.json` and `allow_pickle`."""


def import_model(folder: str | Path, out: str | Path, *, allow_pickle: bool = False, quiet: bool = False) -> Path:
    """Convert a Hugging Face folder of a Marian model, such as OPUS-MT's, to the model folder `out`; returns `out`.

    Parameters keep their number type. allow_pickle: read parameters from a pickle if there are no others. Raises
    ModelError for a folder that is damaged or has no model of a known type, ConfigError if `out` exists or a library is
    not installed; in these cases nothing is written.
    """
    folder, out = Path(folder), Path(out)
    with quietly(quiet):
        _check_new(out)
        check_folder(folder)
        config = read_json(folder / CONFIG)
        kind = config.get("model_type")
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise ModelError(
                f"{folder / CONFIG} describes a model of type {kind!r}: only {', '.join(READERS)} can be imported"
            )
        model = read(folder, config, allow_pickle)
        sections = dump_yaml({name: section.model_dump(mode="json") for name, section in model.sections.items()})
        write_model_folder(out, model.parameters, sections, model.tokenizers, model.meta)
    return out


def export(
    model: str | Path,
    out: str | Path,
    to: str = "ctranslate2",
    *,
    quantization: str | None = None,
    quiet: bool = False,
) -> Path:
    """Convert a model folder to the new folder `out` for another program; returns `out`.

    to: `ctranslate2`, whose folders `Translator.load` reads too, or `marian`, for Hugging Face's MarianMTModel.
    quantization: how CTranslate2 stores weights (default: float32). Raises ModelError for a model that the program
    cannot compute, ConfigError if `out` exists or for an unknown format.
    """
    model, out = Path(model), Path(out)
    if to not in WRITERS:
        raise ConfigError(f"unknown format {to!r}: expected one of {', '.join(WRITERS)}")
    with quietly(quiet):
        WRITERS[to](model, out, quantization)
    return out


def _write_ctranslate2(model: Path, out: Path, quantization: str | None) -> None:
    kind, kinds = quantization or "float32", get_args(Quantization)
    if kind not in kinds:
        raise ConfigError(f"unknown quantization {kind!r}: expected one of {', '.join(kinds)}")
    loaded = load_model_folder(model, torch.device("cpu"), "export")
    export_to_ctranslate2(loaded, model, out, cast(Quantization, str(kind)))


def _write_marian(model: Path, out: Path, quantization: str | None) -> None:
    reject_options({"--quantization": quantization}, "with --to ctranslate2")
    _check_new(out)
    write_marian(model, out)


WRITERS: Mapping[str, Callable[[Path, Path, str | None], None]] = {
    "ctranslate2": _write_ctranslate2,
    "marian": _write_marian,
}
"""Functions by program that write a new folder from a model folder and a quantization, None for the default."""


def _check_new(out: Path) -> None:
    """Raise ConfigError if the folder to write exists and is not an empty folder."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"{out} already exists: choose another name")
