"""`dragoman recipes`: list, print or copy the recipes that the package contains."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.command import command
from dragoman.cli.results import print_results


@command(
    "dragoman recipes",
    "dragoman recipes multi30k --to recipes",
)
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Recipe to print or copy, or the beginning of the names of several, such as multi30k (default: all).",
            show_default=False,
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Copy the recipes to this folder and print their paths."),
    ] = None,
) -> None:
    """List, print or copy the recipes of published experiments."""
    from dragoman.tasks.recipes import recipes

    found = recipes(name)
    if to is not None:
        for recipe in found:
            print(recipe.copy(to))
    elif name is not None and len(found) == 1:
        print(found[0].path.read_text(encoding="utf-8"), end="")
    else:
        width = max(len(recipe.name) for recipe in found)
        for recipe in found:
            print_results(f"{recipe.name:<{width}}  {recipe.purpose}")
