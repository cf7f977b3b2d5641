"""`dragoman export`: a model folder in another program's format."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Model


class Format(StrEnum):
    """What can be written."""

    ctranslate2 = "ctranslate2"


class Quantization(StrEnum):
    """What CTranslate2 calls what weights can be stored as."""

    float32 = "float32"
    int8 = "int8"
    int8_float32 = "int8_float32"
    int8_float16 = "int8_float16"
    int8_bfloat16 = "int8_bfloat16"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"


def export(
    model: Model,
    to: Annotated[Format, typer.Option("--to", help="The program that shall use it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write; there must be none of that name.")],
    quantization: Annotated[
        Quantization, typer.Option("--quantization", help="What weights are stored as.")
    ] = Quantization.float32,
) -> None:
    """Write a model for another program; `dragoman translate` takes the folder too."""
    import torch

    from dragoman.base.log import info
    from dragoman.checkpoint.folder import load_model_folder
    from dragoman.exchange.ctranslate2 import folder

    loaded = load_model_folder(model, torch.device("cpu"))
    folder.export(loaded, model, out, quantization.value)
    info(f"{out}: {model} for CTranslate2, weights as {quantization.value}. It is used by `dragoman translate {out}`")
