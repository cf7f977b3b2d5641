"""`dragoman settings`: list the settings of training runs, with type, default and description."""

from typing import Annotated

import typer

NOTE = """The defaults of `model` apply with `model.preset: null`. Each preset has different defaults for `width`,
`encoder`, `decoder` and `dropout`, which are written to the `config.yaml` of a run. The preset `auto` chooses a preset
by corpus size.
"""
PAGE = f"""# All settings

This page lists all settings of `dragoman train`. Set them in a recipe (YAML) or on the command line as `key=value`.
The page is generated with `dragoman settings --markdown > docs/reference/settings.md`.
`dragoman settings train.schedule` prints a single group.

{NOTE}"""


TASK_NOTE = """The following sections are new, or differ from those of the tasks above.
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
) -> None:
    """List the settings of `dragoman train`: key, type, default and description."""
    from dragoman.base.settings.reference import markdown, plain
    from dragoman.tasks.kinds import TASKS
    from dragoman.tasks.train import settings

    listed, chosen = settings(None, task), settings(path, task)
    introduction = PAGE if as_markdown and path is None else NOTE if chosen[0].path.startswith("model") else ""
    print(introduction + "\n" * bool(introduction) + (markdown(chosen) if as_markdown else plain(chosen)), end="")
    if as_markdown and path is None and task is None:
        for kind in TASKS:
            sections = [section for section in settings(None, kind) if section not in listed]
            listed += sections
            if sections:
                print(f"\n# With `task: {{kind: {kind}}}`\n\n{TASK_NOTE}\n{markdown(sections)}", end="")
