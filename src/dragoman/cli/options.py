"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated

import typer

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
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N (default: a GPU if there is one).")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, max=1024, help="CPU threads (default: one a core).")]


def use_threads(threads: int | None) -> None:
    """Let torch compute on that many CPU threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
