"""`dragoman settings`: all settings of a training run, with type, default and description."""

from typing import Annotated

import typer

NOTE = """The defaults of `model` apply with `model.preset: null`. A preset (`auto` chooses one by the size of the
corpus) has its own for `width`, `encoder`, `decoder` and `dropout`; the `config.yaml` of a run shows those it used.
"""
PAGE = f"""# All settings

All settings of `dragoman train`, to be set in a recipe (YAML) or on the command line as `key=value`. This page is
generated: `dragoman settings --markdown > docs/settings.md`. `dragoman settings train.schedule` prints a single group.

{NOTE}"""


OWN = """These sections differ from those of translation.
"""


def settings(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]", help="A group or a setting, such as train.schedule (default: all).", show_default=False
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

    everything, chosen = settings(None, task), settings(path, task)
    head = PAGE if as_markdown and path is None else NOTE if chosen[0].path.startswith("model") else ""
    print(head + "\n" * bool(head) + (markdown(chosen) if as_markdown else plain(chosen)), end="")
    if as_markdown and path is None and task is None:
        for kind in TASKS:
            own = [section for section in settings(None, kind) if section not in everything]
            if own:
                print(f"\n# With `task: {{kind: {kind}}}`\n\n{OWN}\n{markdown(own)}", end="")
