"""`dragoman export`: convert a model folder for another program."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Model, Quiet


class Format(StrEnum):
    """Programs for which models can be converted."""

    ctranslate2 = "ctranslate2"
    marian = "marian"
    bert = "bert"
    gpt2 = "gpt2"
    bart = "bart"
    t5 = "t5"
    huggingface = "huggingface"
    arpa = "arpa"


class Dialect(StrEnum):
    """Programs whose ARPA files differ in details."""

    kenlm = "kenlm"
    srilm = "srilm"
    irstlm = "irstlm"
    cmu = "cmu"


class Quantization(StrEnum):
    """Number formats of stored weights, with CTranslate2's names."""

    float32 = "float32"
    int8 = "int8"
    int8_float32 = "int8_float32"
    int8_float16 = "int8_float16"
    int8_bfloat16 = "int8_bfloat16"
    int16 = "int16"
    float16 = "float16"
    bfloat16 = "bfloat16"


@command(
    "dragoman export runs/en-de --to ctranslate2 --out exported --quantization int8",
    "dragoman export runs/en-de --to huggingface --out exported",
)
def export(
    model: Model,
    *,
    to: Annotated[
        Format,
        typer.Option(
            "--to",
            help="Target format: ctranslate2; huggingface, for the class of Hugging Face that represents the model, or "
            "the name of its family: marian, bert, gpt2, bart, t5; or arpa, a text file of an n-gram model.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder or file to write; it must not exist.")],
    quantization: Annotated[
        Quantization | None,
        typer.Option("--quantization", help="Number format in which CTranslate2 stores weights (default: float32)."),
    ] = None,
    dialect: Annotated[
        Dialect | None, typer.Option("--dialect", help="Program whose ARPA format is written (default: kenlm).")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Convert a model for another program. `dragoman translate` also supports models converted for CTranslate2."""
    from dragoman.base.log import info
    from dragoman.exchange.formats import export

    export(model, out, to, quantization=quantization, dialect=dialect)
    if to is Format.marian:
        info(f"converted {model} to {out} for Hugging Face's MarianMTModel and MarianTokenizer")
    elif to is Format.bert:
        info(f"converted {model} to {out} for Hugging Face's classes of BERT")
    elif to is Format.arpa:
        info(f"converted {model} to {out} in ARPA format")
    elif to is not Format.ctranslate2:
        info(f"converted {model} to {out} for Hugging Face's transformers")
    else:
        number_format = (quantization or Quantization.float32).value
        info(
            f"converted {model} to {out} for CTranslate2, with {number_format} weights. Use it with "
            f"`dragoman translate {out}`"
        )
