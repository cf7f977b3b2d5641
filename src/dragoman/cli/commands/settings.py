"""`dragoman settings`: list the settings of training runs, with type, default and description."""

from typing import Annotated

import typer

from dragoman.cli.command import command

NOTE = """The defaults of `model` apply with `model.preset: null`. Each preset has different defaults for `width`,
`encoder`, `decoder` and `dropout`, which are written to the `config.yaml` of a run. The preset `auto` chooses a preset
by corpus size.
"""


@command(
    "dragoman settings train.schedule",
    "dragoman settings data --task language_model",
)
def settings(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="Group or setting to list, such as train.schedule (default: all).",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="KIND", help="Show the settings of runs with this task.kind (default: translation)."
        ),
    ] = None,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown tables instead of plain text.")
    ] = False,
) -> None:
    """List the settings of training runs.

    Each is shown with its key, type, default and description, and the page that describes it.
    """
    from dragoman.base.settings.reference import markdown, plain
    from dragoman.base.settings.shared_groups import ListedPaths
    from dragoman.cli.settings_addresses import addresses
    from dragoman.tasks.registry import TASKS
    from dragoman.tasks.train import settings

    chosen = settings(path, task)
    print(NOTE + "\n" if chosen[0].path.startswith("model") else "", end="")
    print(markdown(chosen) if as_markdown else plain(chosen), end="")
    if not as_markdown:
        paths = ListedPaths(settings(None, kind) for kind in TASKS)
        for address in addresses(path or "", settings(None, task), paths):
            print(f"\nPage: {address}")
