"""`dragoman translate --document`: translate a whole document."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dragoman.addons.documents.document import TranslatedDocument

DocumentOption = Annotated[
    bool,
    typer.Option(
        "--document", help="Translate a whole document sentence by sentence; layout and markup are preserved."
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="text|markdown|html|srt|vtt|ass|sbv|ttml|lrc|docx|odt|po|xliff|json",
        help="Format of the document (default: from the suffix of --input; text if it has none).",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of a text document, such as windows-1252 (default: what the file shows, else UTF-8).",
    ),
]


def translate_document(
    models: Path | Sequence[Path],
    source: Path | None,
    target: Path | None,
    format: str | None,
    on_error: str,
    encoding: str | None,
    **options: Any,
) -> None:
    """Translate a document. options: further arguments of `dragoman.translate_document`."""
    from dragoman.addons.documents.document import read_document, translate_document, validate_paths, write_document
    from dragoman.addons.documents.formats.union import detect_format
    from dragoman.base.errors import DataError, DocumentError
    from dragoman.base.log import info

    validate_paths(source, target)
    format = format or detect_format(source)
    try:
        file = read_document(source, format, on_error, encoding)
        done = translate_document(models, file.content, format=format, **options)
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
