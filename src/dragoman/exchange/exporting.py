"""`export`: a model folder in another program's format."""

from pathlib import Path
from typing import cast, get_args

import torch

from dragoman.base.errors import ConfigError, refuse
from dragoman.base.log import quietly
from dragoman.checkpoint.folder import load_model_folder
from dragoman.exchange.ctranslate2.folder import Quantization
from dragoman.exchange.ctranslate2.folder import export as export_to_ctranslate2
from dragoman.exchange.marian.exporting import export as export_to_marian

FORMATS = ("ctranslate2", "marian")


def export(
    model: str | Path,
    out: str | Path,
    to: str = "ctranslate2",
    *,
    quantization: str | None = None,
    quiet: bool = False,
) -> Path:
    """Write a model folder for another program; gives the new folder.

    to: `ctranslate2`, whose folders `Translator.load` reads too, or `marian`, Hugging Face's MarianMTModel.
    quantization: what CTranslate2 stores weights as (default: float32). Raises ModelError for a model that the program
    cannot compute, ConfigError where `out` is there already or for a format that there is not.
    """
    model, out = Path(model), Path(out)
    if to not in FORMATS:
        raise ConfigError(f"there is no format {to!r}: choose one of {', '.join(FORMATS)}")
    with quietly(quiet):
        if to == "marian":
            refuse({"--quantization": quantization}, "with --to ctranslate2")
            export_to_marian(model, out)
        else:
            kind = quantization or "float32"
            if kind not in get_args(Quantization):
                raise ConfigError(
                    f"there is no quantization {kind!r}: choose one of {', '.join(get_args(Quantization))}"
                )
            loaded = load_model_folder(model, torch.device("cpu"), "export")
            export_to_ctranslate2(loaded, model, out, cast(Quantization, str(kind)))
    return out
