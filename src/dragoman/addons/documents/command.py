"""`dragoman translate-document`: translate a whole document."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.option_groups import EngineOptions, RequestOptions
from dragoman.cli.options import Ensemble, Model, OnError, Quiet, SearchSettings, System

if TYPE_CHECKING:
    from dragoman.addons.documents.document import TranslatedDocument


@command(
    "dragoman translate-document runs/en-de --input page.html --output seite.html",
    "dragoman translate-document runs/en-de --format markdown < README.md",
    usual="--input --output --format --encoding --to --beam --glossary --keep --guard --on-error --device --threads "
    "--quiet",
    files="--input",
)
def translate_document(
    model: Model,
    search: SearchSettings = None,
    *,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="Document to translate (default: stdin).")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Output file (default: stdout). It is created only when complete."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="text, markdown, rst, asciidoc, latex, html, xhtml, srt, vtt, ass, sbv, ttml, lrc, docx, odt, odp, "
            "ods, pptx, xlsx, epub, pdf, po, xliff, json, properties, strings, resx, fluent or rails (default: from "
            "the suffix of --input; text if it has none).",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of a text document, such as windows-1252 (default: what the file shows, else UTF-8).",
        ),
    ] = None,
    system: System = None,
    ensemble: Ensemble = None,
    request: RequestOptions,
    on_error: OnError = "stop",
    engine_options: EngineOptions,
    quiet: Quiet = False,
) -> None:
    """Translate a whole document sentence by sentence. Layout and markup are preserved."""
    from dragoman.addons.documents.document import read_document, translate_document, validate_paths, write_document
    from dragoman.addons.documents.formats.union import detect_format
    from dragoman.base.errors import DataError, DocumentError
    from dragoman.base.files import check_new_files
    from dragoman.base.log import info
    from dragoman.cli.arguments import check_settings

    check_settings(search or [], "search.minimum_length=3", "--input FILE")
    check_new_files({"--output": target}, source)
    format = format or detect_format(source)
    validate_paths(source, target, format)
    try:
        file = read_document(source, format, on_error, encoding)
        done = translate_document(
            [model, *ensemble] if ensemble else model,
            file.content,
            format=format,
            system=system,
            **asdict(engine_options),
            **request.search_settings(search),
        )
    except DocumentError as error:
        raise DataError(f"{source or 'standard input'}: {error}") from None
    write_document(file.encode(done.content), target)
    info(_summary(done))


def _summary(done: "TranslatedDocument[Any]") -> str:
    counts = {
        "too long, translated in parts": done.divided,
        "unfinished at the length limit": done.unfinished,
        "assembled from parts": done.patched,
        "repaired by the guard": done.repaired,
        "with a problem that the guard could not repair": done.wrong,
    }
    return ", ".join(
        [
            f"{done.sentences:,} sentence(s) translated",
            *(f"{count:,} {description}" for description, count in counts.items() if count),
        ]
    )
