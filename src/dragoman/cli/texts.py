"""What `score` and `evaluate` do with a language model: log-probabilities and perplexities of documents."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from dragoman.metrics.perplexity import TextScore


class Documents(StrEnum):
    """What a document is in a text file."""

    line = "line"
    blank_line = "blank_line"
    file = "file"


DocumentsOption = Annotated[
    Documents | None,
    typer.Option(
        "--documents",
        help="Text of one language: what a document is; a language model knows nothing of others while it reads one "
        "(default: line).",
    ),
]
Heading = Annotated[
    str | None,
    typer.Option(
        "--heading",
        help="With --documents file: a regular expression; with each line that it matches, after a blank one, a "
        "document begins.",
    ),
]
Stride = Annotated[
    int | None,
    typer.Option(
        "--stride",
        min=1,
        help="Language models: tokens that a window predicts of a document longer than the model's window; what stands "
        "before them in the window is context (default: half the window).",
    ),
]


class Reading(NamedTuple):
    """How documents are read and scored."""

    documents: Documents | None
    heading: str | None
    stride: int | None
    batch_size: int
    device: str | None


def is_language_model(model: Path) -> bool:
    """Whether a folder holds one; a folder that was exported for CTranslate2 holds a translator.

    Raises ModelError as `folder_kind`.
    """
    from dragoman.checkpoint.folder import folder_kind
    from dragoman.exchange.ctranslate2.folder import is_exported

    return not is_exported(model) and folder_kind(model) == "decoder_only"


def score_documents(folder: Path, path: Path, reading: Reading) -> None:
    """One log-probability (nats) a document on stdout; the perplexity of the whole on stderr."""
    from dragoman.base.log import info
    from dragoman.metrics.perplexity import TextScore

    (scores,) = _scores(folder, [path], reading)
    for score in scores:
        print(f"{score.log_probability:.6f}")
    info(f"{len(scores)} documents, {TextScore.total(scores)}")


def evaluate_documents(folder: Path, paths: Sequence[Path], reading: Reading, as_json: bool) -> None:
    """The perplexities of each file, on stdout."""
    from dragoman.metrics.perplexity import TextScore

    found = [
        (path, len(scores), TextScore.total(scores))
        for path, scores in zip(paths, _scores(folder, paths, reading), strict=True)
    ]
    if as_json:
        texts = [{"text": str(path), "documents": documents, **whole.as_json()} for path, documents, whole in found]
        print(json.dumps({"model": str(folder), "texts": texts}, ensure_ascii=False, indent=2))
        return
    print(folder)
    for path, documents, whole in found:
        print(f"  {path} ({documents} documents): {whole}")


def _scores(folder: Path, paths: Sequence[Path], reading: Reading) -> "list[list[TextScore]]":
    from dragoman.base.settings.load import parse_settings
    from dragoman.data.corpora.documents import read_texts
    from dragoman.data.corpora.text_corpus import TextCorpusConfig
    from dragoman.language_model import LanguageModel

    kind = (reading.documents or Documents.line).value
    corpora = [
        parse_settings({"text": path, "documents": kind, "heading": reading.heading}, TextCorpusConfig, "documents")
        for path in paths
    ]
    texts = [read_texts(corpus) for corpus in corpora]
    model = LanguageModel.load(folder, reading.device)
    return [model.score(each, reading.stride, reading.batch_size) for each in texts]
