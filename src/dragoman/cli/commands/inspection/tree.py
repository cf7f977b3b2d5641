"""`dragoman inspect tree`: the hypotheses that a beam search considers, as a picture."""

from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.commands.inspection.options import (
    AnalysedText,
    FigureFile,
    ModelOptions,
    figure_file,
    write_figure,
)
from dragoman.cli.option_groups import split_tags
from dragoman.cli.options import Beam, LengthPenalty, Model


@command("dragoman inspect tree runs/en-de 'A dog runs.' --out tree.svg --beam 4")
def tree(
    model: Model,
    text: AnalysedText,
    *,
    options: ModelOptions,
    out: FigureFile = None,
    beam: Beam = None,
    nbest: Annotated[int, typer.Option("--nbest", min=1, help="Number of translations below the tree.")] = 1,
    length_penalty: LengthPenalty = None,
    exact: Annotated[
        int,
        typer.Option(
            "--exact",
            min=0,
            metavar="N",
            help="Compare with exact search, which may expand N prefixes (0: no exact search).",
        ),
    ] = 0,
) -> None:
    """Draw the hypotheses of a beam search as a tree.

    They are drawn by step and rank, with the best translation and the greedy path. With --exact, also draw the path of
    the best translation, and report whether the search or the model errs.
    """
    from dragoman.base.log import info
    from dragoman.inference.load import require
    from dragoman.inspection.searches import compare_searches

    file = figure_file(out, "tree", model, text)
    loaded = require(options.load(model), "translate", model)
    request = loaded.request(
        beam=beam,
        nbest=nbest,
        length_penalty=length_penalty,
        to=options.to,
        tags=split_tags(options.tags),
    )
    comparison = compare_searches(loaded, text, request, exact)
    write_figure(comparison.tree, file)
    if comparison.tree.exact is not None:
        info(
            f"{comparison.verdict}: score {comparison.tree.outcomes[0].score:.4f} by the beam, "
            f"{comparison.tree.exact.score:.4f} by exact search, at most {comparison.bound:.4f} by any other"
        )
