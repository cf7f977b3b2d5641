"""`dragoman export`: a model folder in another program's format."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import Model, Quiet


class Format(StrEnum):
    """What can be written."""

    ctranslate2 = "ctranslate2"
    marian = "marian"


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
    to: Annotated[
        Format, typer.Option("--to", help="The program that shall use it; marian: Hugging Face's MarianMTModel.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write; there must be none of that name.")],
    quantization: Annotated[
        Quantization | None,
        typer.Option("--quantization", help="What CTranslate2 stores weights as (default: float32)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a model for another program; `dragoman translate` takes what is written for CTranslate2 too."""
    from dragoman.base.log import info
    from dragoman.exchange.formats import export

    export(model, out, to, quantization=quantization)
    if to is Format.marian:
        info(f"{out}: {model} for Hugging Face's MarianMTModel and MarianTokenizer")
    else:
        kind = quantization or Quantization.float32
        info(f"{out}: {model} for CTranslate2, weights as {kind.value}. It is used by `dragoman translate {out}`")
