"""`dragoman settings`: list the settings of training runs, with type, default and description."""

from pathlib import Path
from typing import Annotated

import typer

NOTE = """The defaults of `model` apply with `model.preset: null`. Each preset has different defaults for `width`,
`encoder`, `decoder` and `dropout`, which are written to the `config.yaml` of a run. The preset `auto` chooses a preset
by corpus size.
"""


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
    pages: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the settings of all tasks as Markdown pages to this folder.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the settings of `dragoman train`: key, type, default and description, and the page that describes them."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.reference import markdown, plain
    from dragoman.base.settings.shared_groups import ListedPaths
    from dragoman.cli.settings_pages import SettingsPages, addresses
    from dragoman.tasks.kinds import TASKS
    from dragoman.tasks.train import settings

    if pages is not None and (path is not None or task is not None or as_markdown):
        raise ConfigError("--pages writes all settings: omit the path, --task and --markdown")
    if pages is not None:
        SettingsPages({kind: settings(None, kind) for kind in TASKS}).write(pages)
        return
    chosen = settings(path, task)
    print(NOTE + "\n" if chosen[0].path.startswith("model") else "", end="")
    print(markdown(chosen) if as_markdown else plain(chosen), end="")
    if not as_markdown:
        paths = ListedPaths(settings(None, kind) for kind in TASKS)
        for address in addresses(path or "", settings(None, task), paths):
            print(f"\nPage: {address}")
