"""What `score` and `evaluate` do with a language model: log-probabilities and perplexities of documents."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from dragoman.evaluate.perplexity import Perplexity
    from dragoman.generation.score import TextScore

UNKNOWNS = (
    "each is predicted as one token, whatever it stands for, so the perplexities a word and a byte are lower bounds"
)


class Documents(StrEnum):
    """What a document is in a text file."""

    line = "line"
    blank_line = "blank_line"
    file = "file"


DocumentsOption = Annotated[
    Documents | None,
    typer.Option(
        "--documents",
        help="Language models: what a document is; nothing is known of others while one is read (default: line).",
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
    stride: int | None
    batch_size: int
    device: str | None


def score_documents(folder: Path, path: Path, reading: Reading) -> None:
    """One log-probability (nats) a document on stdout; the perplexity of the whole on stderr."""
    from dragoman.base.log import info

    (scores,) = _scores(folder, [path], reading)
    for score in scores:
        print(f"{score.log_probability:.6f}")
    info(f"{len(scores)} documents, {_text(_whole(scores))}{_unknowns(scores)}")


def evaluate_documents(folder: Path, paths: Sequence[Path], reading: Reading, as_json: bool) -> None:
    """The perplexities of each file, on stdout."""
    found = dict(zip(paths, _scores(folder, paths, reading), strict=True))
    if as_json:
        texts = [{"text": str(path), **_json(scores)} for path, scores in found.items()]
        print(json.dumps({"model": str(folder), "texts": texts}, ensure_ascii=False, indent=2))
        return
    print(folder)
    for path, scores in found.items():
        print(f"  {path} ({len(scores)} documents): {_text(_whole(scores))}{_unknowns(scores)}")


def _scores(folder: Path, paths: Sequence[Path], reading: Reading) -> "list[list[TextScore]]":
    from dragoman.data.corpora.documents import read_texts
    from dragoman.data.corpora.text_corpus import TextCorpusConfig
    from dragoman.language_model import LanguageModel

    kind = (reading.documents or Documents.line).value
    texts = [read_texts(TextCorpusConfig(text=path, documents=kind)) for path in paths]
    model = LanguageModel.load(folder, reading.device)
    return [model.score(each, reading.stride, reading.batch_size) for each in texts]


def _whole(scores: "Sequence[TextScore]") -> "Perplexity":
    from dragoman.evaluate.perplexity import perplexity

    return perplexity(
        sum(score.log_probability for score in scores),
        sum(score.tokens for score in scores),
        sum(score.words for score in scores),
        sum(score.bytes for score in scores),
    )


def _text(whole: "Perplexity") -> str:
    return (
        f"log-probability {whole.log_probability:.2f} nats; perplexity a token {whole.per_token:.3f} "
        f"({whole.tokens} tokens), a word {whole.per_word:.3f} ({whole.words} words), a byte {whole.per_byte:.4f} "
        f"({whole.bytes} bytes); "
        "ends of lines and documents counted"
    )


def _unknowns(scores: "Sequence[TextScore]") -> str:
    unknown, tokens = sum(score.unknown for score in scores), sum(score.tokens for score in scores)
    return f"; {unknown} tokens ({unknown / tokens:.2%}) are unknown: {UNKNOWNS}" if unknown else ""


def _json(scores: "Sequence[TextScore]") -> dict[str, Any]:
    return {"documents": len(scores), **asdict(_whole(scores)), "unknown": sum(score.unknown for score in scores)}
