"""`dragoman generate`: continue texts with a language model."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import Device, Model, Quiet, Seed, Temperature, Threads, TopK, TopP

if TYPE_CHECKING:
    from dragoman.generation.language_model import LanguageModel
    from dragoman.generation.writer import GenerationRequest

BETWEEN = "---\n"
"""Separator between texts, which may have several lines."""


def generate(
    model: Model,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Beginning of the text; '' for an empty prompt.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Prompts, one per line; plain or compressed (default: stdin)."),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=1, help="Number of texts per prompt.")] = 1,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, help="Maximum number of tokens after a prompt.")
    ] = 256,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", help="String before which a text ends; repeatable.")
    ] = None,
    seed: Seed = None,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Number of texts per batch; does not affect the output.")
    ] = 32,
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Continue each prompt, even beyond the model's window. A single text is printed while it is generated.

    Each text starts with its prompt and ends with a line feed; texts are separated by a line with ---.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.base.machine.device import use_threads
    from dragoman.generation.language_model import LanguageModel

    use_threads(threads)
    if prompt is not None and source is not None:
        raise ConfigError("prompts are given by --prompt or by --input: leave one out")
    language_model = LanguageModel.load(model, device)
    request = language_model.request(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        stop=stop or (),
        seed=1 if seed is None else seed,
        samples=samples,
        max_tokens=max_tokens,
    )
    if prompt is not None and samples == 1:
        _show(prompt)
        for piece in language_model.stream(prompt, request):
            _show(piece)
        _show("\n")
    elif prompt is not None:
        _write(language_model, iter([prompt]), request, batch_size)
    else:
        from dragoman.translation.files.lines import read_lines

        _write(language_model, read_lines(source), request, batch_size)


def _write(model: "LanguageModel", prompts: Iterator[str], request: "GenerationRequest", batch_size: int) -> None:
    """Write all samples of a batch of prompts, then those of the next batch."""
    from dragoman.base.errors import DataError

    first, between = 1, ""
    size = max(1, batch_size // request.samples)
    while some := list(islice(prompts, size)):
        texts = model.generate(some, request, batch_size=batch_size, first=first)
        for index, text in enumerate(texts):
            _show(between, some[index // request.samples], text, "\n")
            between = BETWEEN
        first += len(some)
    if first == 1:
        raise DataError("there is no prompt: give --prompt TEXT ('' for an empty one), or one prompt per line")


def _show(*texts: str) -> None:
    sys.stdout.buffer.write("".join(texts).encode())
    sys.stdout.buffer.flush()
