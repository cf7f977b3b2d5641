"""`dragoman import`: convert a model from another program to a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Quiet


@command(
    "dragoman import Helsinki-NLP/opus-mt-en-de --allow-pickle --out models/en-de",
    "dragoman import news.arpa --out models/news --vocabulary-of runs/en-de",
)
def import_model(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Hugging Face folder of a Marian model, such as an OPUS-MT model, of a BERT model, with or without a "
            "head, or of a GPT-2, BART, T5, M2M-100 or NLLB model; or the name of such a model on the Hugging Face "
            "Hub, ORG/MODEL or ORG/MODEL@REVISION, which is downloaded; or an ARPA file of an n-gram model.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model folder to write; it must not exist.")],
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle", help="Load parameters from the pickle file pytorch_model.bin if there is no safer file."
        ),
    ] = False,
    vocabulary_of: Annotated[
        Path | None,
        typer.Option(
            "--vocabulary-of",
            metavar="MODEL",
            help="Model folder whose target vocabulary an ARPA file uses (default: the words of the file).",
        ),
    ] = None,
    source_prefix: Annotated[
        str | None,
        typer.Option(
            "--source-prefix",
            metavar="TEXT",
            help='Words that precede every source text, such as "translate English to German:" for a T5 model '
            "(default: those in the folder, if any).",
        ),
    ] = None,
    source_language: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="LANGUAGE",
            help="Source language of a model of many languages, such as NLLB: a code such as sw, or the model's own "
            "(swh_Latn).",
        ),
    ] = None,
    target_language: Annotated[
        str | None, typer.Option("--to", metavar="LANGUAGE", help="Target language of a model of many languages.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Convert a model of another program to a model folder.

    The model folder contains its parameters and vocabularies.
    """
    from dragoman.base.log import info
    from dragoman.checkpoint.folder import folder_kind
    from dragoman.exchange.formats import import_model

    import_model(
        folder,
        out,
        allow_pickle=allow_pickle,
        vocabulary_of=vocabulary_of,
        source_prefix=source_prefix,
        source_language=source_language,
        target_language=target_language,
    )
    info(f"converted {folder} to {out}. Use it with {folder_kind(out).use}")
