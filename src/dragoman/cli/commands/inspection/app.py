"""`dragoman inspect`: the commands that show how a model computes its output."""

import typer

from dragoman.cli.commands import inspect
from dragoman.cli.commands.inspection import (
    alignment,
    checkpoints,
    curves,
    heads,
    lens,
    lines,
    next_tokens,
    relevance,
    rollout,
    tree,
)
from dragoman.cli.commands.inspection.default_command import DefaultCommandGroup

app = typer.Typer(
    cls=DefaultCommandGroup,
    no_args_is_help=True,
    help="Show how a model computes its output. `dragoman inspect MODEL TEXT` saves the attention weights.",
)
app.command("attention")(inspect.inspect)
app.command("heads")(heads.heads)
app.command("next")(next_tokens.next_tokens)
app.command("lens")(lens.lens)
app.command("relevance")(relevance.relevance)
app.command("rollout")(rollout.rollout)
app.command("alignment")(alignment.alignment)
app.command("checkpoints")(checkpoints.checkpoints)
app.command("lines")(lines.lines)
app.command("tree")(tree.tree)
app.command("curves")(curves.curves)
