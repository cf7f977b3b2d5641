"""`dragoman evaluate perplexity`: the perplexity of a language model, or of restoring a text, on texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.options import BatchSize, Device, DocumentsOption, Heading, Model, Quiet, Stride, Threads
from dragoman.cli.results import print_results

if TYPE_CHECKING:
    from dragoman.data.corpora.inputs import Lines


@command(
    "dragoman evaluate perplexity runs/lm",
    "dragoman evaluate perplexity runs/lm --text book.txt --documents file",
    files="--text",
)
def perplexity(
    model: Model,
    *,
    text: Annotated[
        list[Path] | None,
        typer.Option("--text", help="Text; repeatable (default: the documents that training held out for testing)."),
    ] = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    stride: Stride = None,
    as_json: Json = False,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Compute the perplexity of a language model on texts.

    It is reported per token, word and byte. Values per word and byte are comparable between vocabularies. For a
    denoising or masked language model, it is that of restoring the texts.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.evaluation.denoising import restores_text
    from dragoman.evaluation.stored_test_set import stored_documents
    from dragoman.exchange.ctranslate2.folder import check_model_kind

    division: dict[str, Any] = {"documents": documents, "heading": heading, "threads": threads}
    restores = restores_text(model)
    if restores:
        reject_options({"--stride": stride}, "with a language model")
    elif check_model_kind(model, "score").reads_source:
        raise ConfigError(
            f"{model} is a translation model: dragoman score computes the perplexity of translations, with --source "
            "FILE and --target FILE"
        )
    if not text:
        reject_options({"--documents": documents, "--heading": heading}, "with --text FILE")
    texts: list[tuple[Path, Lines]] = [(each, each) for each in text] if text else [stored_documents(model)]
    if restores:
        _print_restoring(model, texts, as_json, {**division, "device": device})
    else:
        _print_perplexities(model, texts, device, as_json, {**division, "stride": stride, "batch_size": batch_size})


def _print_restoring(
    model: Path, texts: Sequence[tuple[Path, "Lines"]], as_json: bool, arguments: dict[str, Any]
) -> None:
    """Print the perplexities of restoring each text. texts: name and content. arguments: of `evaluate_denoising`."""
    from dragoman.evaluation.denoising import evaluate_denoising

    results = [(name, evaluate_denoising(model, text, **arguments)) for name, text in texts]
    if as_json:
        print_json({"texts": [{"text": str(text), **each.as_json()} for text, each in results]})
        return
    print_results(model, *(f"  {text}: {each}" for text, each in results))


def _print_perplexities(
    model: Path, texts: Sequence[tuple[Path, "Lines"]], device: str | None, as_json: bool, arguments: dict[str, Any]
) -> None:
    """Print the perplexities of a language model on each text. texts: name and content. arguments: of `score`."""
    from dragoman.evaluation.score import score
    from dragoman.inference.load import model_for
    from dragoman.text.tokenizers import Tokenizers

    loaded = model_for("score", model, device)
    results = [(name, score(loaded, text, **arguments)) for name, text in texts]
    tokenizer = Tokenizers.load(model).target
    if as_json:
        values = [{"text": str(text), "documents": len(each.each), **each.total.as_json()} for text, each in results]
        vocabulary = {"kind": tokenizer.kind, "size": tokenizer.size, "fingerprint": tokenizer.fingerprint}
        print_json({"model": str(model), "vocabulary": vocabulary, "texts": values})
        return
    print_results(
        f"{model} (vocabulary of kind {tokenizer.kind}, {tokenizer.size:,} entries, {tokenizer.fingerprint[:8]})",
        *(f"  {text} ({len(each.each)} documents): {each.total}" for text, each in results),
    )
