"""`dragoman settings`: every setting of a training run, with its type, its default and what it means."""

from typing import Annotated

import typer

NOTE = """The defaults of `model` hold under `model.preset: null`. A preset (`auto` chooses one by the corpus's size)
has its own for `width`, `encoder`, `decoder` and `dropout`; the `config.yaml` of a run shows those it used.
"""
PAGE = f"""# All settings

Every setting of `dragoman train`: in a recipe (YAML), or behind the command as `key=value`. This page is generated:
`dragoman settings --markdown > docs/settings.md`. `dragoman settings train.schedule` prints one group in the terminal.

{NOTE}"""


OWN = """The sections that differ from those of translation; the others are the same.
"""


def settings(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH]", help="A group or a setting, such as train.schedule (default: all).", show_default=False
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option("--task", metavar="KIND", help="Of runs with this task.kind (default: translation).")
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Markdown tables instead of plain text.")] = False,
) -> None:
    """Every setting of `dragoman train`: key, type, default and what it means."""
    import difflib

    from dragoman.base.errors import ConfigError
    from dragoman.base.settings.reference import markdown, plain, sections, select
    from dragoman.tasks.union import DEFAULT, RUNS

    if task is not None and task not in RUNS:
        raise ConfigError(f"--task: there is no '{task}'; choose one of {', '.join(RUNS)}")
    everything = sections(RUNS[task or DEFAULT])
    chosen = everything if path is None else select(everything, path)
    if not chosen:
        keys = [key for section in everything for key in (section.path, *(row.key for row in section.settings))]
        last = [key for key in keys if key.rpartition(".")[2] == str(path).rpartition(".")[2]]
        near = last or difflib.get_close_matches(str(path), keys, n=1, cutoff=0)
        raise ConfigError(f"there is no setting {path}; did you mean {near[0]}? `dragoman settings` lists all")
    head = PAGE if as_markdown and path is None else NOTE if chosen[0].path.startswith("model") else ""
    print(head + "\n" * bool(head) + (markdown(chosen) if as_markdown else plain(chosen)), end="")
    if as_markdown and path is None and task is None:
        for kind, run in RUNS.items():
            own = [section for section in sections(run) if section not in everything]
            if own:
                print(f"\n# With `task: {{kind: {kind}}}`\n\n{OWN}\n{markdown(own)}", end="")
