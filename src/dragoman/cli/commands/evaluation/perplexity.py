"""`dragoman evaluate perplexity`: the perplexity of a language model, or of restoring a text, on texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.evaluation.options import Json, print_json
from dragoman.cli.options import BatchSize, Device, DocumentsOption, Heading, Model, Quiet, Stride, Threads


@command(
    "dragoman evaluate perplexity runs/lm --text test.txt",
    "dragoman evaluate perplexity runs/lm --text book.txt --documents file",
    files="--text",
)
def perplexity(
    model: Model,
    *,
    text: Annotated[list[Path], typer.Option("--text", help="Text; repeatable.")],
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
    denoising model, it is that of restoring the texts.
    """
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.evaluation.denoising import is_denoising_folder
    from dragoman.exchange.ctranslate2.folder import check_model_kind

    division: dict[str, Any] = {"documents": documents, "heading": heading, "threads": threads}
    if is_denoising_folder(model):
        reject_options({"--stride": stride}, "with a language model")
        _print_restoring(model, text, as_json, {**division, "device": device})
    elif check_model_kind(model, "score").reads_source:
        raise ConfigError(
            f"{model} is a translation model: dragoman score computes the perplexity of translations, with --source "
            "FILE and --target FILE"
        )
    else:
        _print_perplexities(model, text, device, as_json, {**division, "stride": stride, "batch_size": batch_size})


def _print_restoring(model: Path, texts: Sequence[Path], as_json: bool, arguments: dict[str, Any]) -> None:
    """Print the perplexities of restoring each text. arguments: of `evaluate_denoising`."""
    from dragoman.evaluation.denoising import evaluate_denoising

    results = [(text, evaluate_denoising(model, text, **arguments)) for text in texts]
    if as_json:
        print_json({"texts": [{"text": str(text), **each.as_json()} for text, each in results]})
        return
    print(model)
    for text, each in results:
        print(f"  {text}: {each}")


def _print_perplexities(
    model: Path, texts: Sequence[Path], device: str | None, as_json: bool, arguments: dict[str, Any]
) -> None:
    """Print the perplexities of a language model on each text. arguments: of `score`."""
    from dragoman.evaluation.score import score
    from dragoman.inference.load import model_for
    from dragoman.text.tokenizers import Tokenizers

    loaded = model_for("score", model, device)
    results = [(text, score(loaded, text, **arguments)) for text in texts]
    tokenizer = Tokenizers.load(model).target
    if as_json:
        values = [{"text": str(text), "documents": len(each.each), **each.total.as_json()} for text, each in results]
        vocabulary = {"kind": tokenizer.kind, "size": tokenizer.size, "fingerprint": tokenizer.fingerprint}
        print_json({"model": str(model), "vocabulary": vocabulary, "texts": values})
        return
    print(f"{model} (vocabulary of kind {tokenizer.kind}, {tokenizer.size:,} entries, {tokenizer.fingerprint[:8]})")
    for text, each in results:
        print(f"  {text} ({len(each.each)} documents): {each.total}")
