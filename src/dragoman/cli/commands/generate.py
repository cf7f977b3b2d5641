"""`dragoman generate`: continue texts with a language model."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.command import command
from dragoman.cli.options import Device, GenerationEngine, Model, Quiet, Seed, Temperature, Threads, TopK, TopP

if TYPE_CHECKING:
    from dragoman.inference.abilities import SupportsGenerate
    from dragoman.inference.generation.writer import GenerationRequest

SEPARATOR = "---\n"
"""Line between two texts, which may have several lines each."""


@command(
    "dragoman generate runs/lm --prompt 'Once upon a time'",
    "dragoman generate runs/lm --input prompts.txt --samples 3 --temperature 0.8",
    files="--input",
    interrupted="interrupted",
)
def generate(
    model: Model,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Beginning of the text; '' for an empty prompt.")
    ] = None,
    *,
    source: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Prompts, one per line: plain, .gz, .bz2, .xz or .zst (default: stdin)."),
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
    engine: GenerationEngine = "auto",
    device: Device = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Continue texts with a language model. They may become longer than the model's window.

    Each text starts with its prompt and ends with a line feed. A line with --- separates two texts. If there is only
    one text, it is printed token by token.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.base.machine.device import use_threads
    from dragoman.inference.load import model_for

    use_threads(threads)
    if prompt is not None and source is not None:
        raise ConfigError("--prompt and --input both set the prompts: use only one of them")
    options: dict[str, Any] = {} if engine == "auto" else {"engine": engine}
    language_model = model_for("generate", model, device, **options)
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
        _print(prompt)
        for piece in language_model.stream(prompt, request):
            _print(piece)
        _print("\n")
    elif prompt is not None:
        _write(language_model, iter([prompt]), request, batch_size)
    else:
        from dragoman.data.corpora.inputs import read_lines

        _write(language_model, read_lines(source), request, batch_size)


def _write(model: "SupportsGenerate", prompts: Iterator[str], request: "GenerationRequest", batch_size: int) -> None:
    """Generate and write the samples of all prompts, batch by batch."""
    from dragoman.base.errors import DataError

    first, separator = 1, ""
    size = max(1, batch_size // request.samples)
    while batch := list(islice(prompts, size)):
        texts = model.generate(batch, request, batch_size=batch_size, first=first)
        for index, text in enumerate(texts):
            _print(separator, batch[index // request.samples], text, "\n")
            separator = SEPARATOR
        first += len(batch)
    if first == 1:
        raise DataError("there is no prompt: give --prompt TEXT ('' for an empty prompt), or one prompt per line")


def _print(*texts: str) -> None:
    sys.stdout.buffer.write("".join(texts).encode())
    sys.stdout.buffer.flush()
