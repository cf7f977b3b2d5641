"""Options that several verbs share."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dragoman.translation.request import Sampling

Model = Annotated[Path, typer.Argument(help="A model folder, such as the one that `dragoman train --out` wrote.")]
Beam = Annotated[
    int | None, typer.Option("--beam", min=1, help="Hypotheses kept a sentence; 1 is greedy (default: the model's, 5).")
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", min=1, help="Sentences translated at once; does not change the output.")
]
LengthPenalty = Annotated[
    str | None,
    typer.Option(
        "--length-penalty",
        help="GNMT's exponent (larger favours longer output), or mean, or none (default: the model's).",
    ),
]
CoveragePenalty = Annotated[
    float | None,
    typer.Option(
        "--coverage-penalty",
        min=0,
        help="GNMT's beta: favours translations whose attention missed no source token (default: the model's, 0).",
    ),
]
Unknown = Annotated[
    str | None,
    typer.Option(
        "--unknown",
        metavar="copy|forbid|FILE",
        help="For words that a vocabulary lacks: copy the source word, generate none, or look the source word up in a "
        "file of word TAB translation (default: the model's, copy).",
    ),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="LANGUAGE", help="Target language, for a model that writes several, such as de."),
]
Tags = Annotated[
    str | None,
    typer.Option("--tags", help="Other tags that the model was trained with, such as domain-law; commas between."),
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", help="Sampling: below 1 likely words become likelier (default: 1)."),
]
TopK = Annotated[
    int | None, typer.Option("--top-k", help="Sampling: draw among that many likeliest entries (default: all).")
]
TopP = Annotated[
    float | None,
    typer.Option("--top-p", help="Sampling: draw among the likeliest with this share of the probability."),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Sampling: decides what is drawn (default: 1).")]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N (default: a GPU if there is one).")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads (default: one a core).")]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|torch|native|ctranslate2",
        help="What computes: auto is the fastest one installed that gives the translations of torch, the reference.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision",
        metavar="float32|int8",
        help="int8 is faster and rounds, so that some translations differ (default: float32, or as an exported "
        "model is stored).",
    ),
]


def split_tags(tags: str | None) -> list[str]:
    """The tags of `--tags`."""
    return [tag.strip() for tag in (tags or "").split(",") if tag.strip()]


def refuse(options: Mapping[str, object], company: str) -> None:
    """Raises ConfigError for an option that is given though it would change nothing; company: what it goes with."""
    from dragoman.base.errors import ConfigError

    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"{name} goes {company} only: leave it out")


def sampling(
    temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None, samples: int = 1
) -> "Sampling":
    """What the options of sampling ask for. Raises ConfigError for a value that makes no sense."""
    from dragoman.base.settings.load import parse_settings
    from dragoman.decode.sampling import SamplingConfig
    from dragoman.translation.request import Sampling

    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    settings = {name: value for name, value in given.items() if value is not None}
    config = parse_settings(settings, SamplingConfig, "from the command line")
    return Sampling(config, 1 if seed is None else seed, samples)


def use_threads(threads: int | None) -> None:
    """Let torch compute on that many CPU threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
