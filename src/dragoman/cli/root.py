"""`root_command`: the `dragoman` command, with the commands of the core and of installed packages."""

import os
from functools import cache
from typing import Any

import typer
from typer.main import get_command

from dragoman import __version__
from dragoman.base.imports import VARIABLE, import_modules, requested_modules
from dragoman.cli.command_group import CommandGroup
from dragoman.cli.core_commands import COMMANDS, SECTIONS
from dragoman.cli.installed_commands import WithInstalledCommands, installed_commands


def _show_version(value: bool) -> None:
    if value:
        print(f"dragoman {__version__}")
        raise typer.Exit


_IMPORTS = typer.Option(
    [],
    "--import",
    metavar="MODULE",
    help="Import a module that registers own parts: a file (own.py) or a name in Python. Repeatable.",
)


def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
    imports: list[str] = _IMPORTS,
) -> None:
    if imports:
        # In the environment, processes that the command starts see it as well.
        os.environ[VARIABLE] = ",".join([*requested_modules(), *imports])
        import_modules(imports, "--import")


class _Root(CommandGroup):
    """All commands: those of the core, and those of installed packages, which are found when they are needed."""

    def __init__(self) -> None:
        super().__init__(
            "dragoman",
            WithInstalledCommands(COMMANDS),
            help="Train translation models from parallel text, translate, and evaluate.",
            examples=(
                "dragoman train --source train.en --target train.de \\\n"
                "  --valid-source valid.en --valid-target valid.de --out runs/en-de",
                "dragoman translate runs/en-de --input test.en --output test.de",
            ),
        )
        options = typer.Typer()
        options.command()(_root)
        built = get_command(options)
        self.params, self.callback = built.params, built.callback

    def sections(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the headings with the commands of the core, and those of installed packages that can be imported."""
        core = [
            (title, [(name, each.summary()) for name, each in section.items()]) for title, section in SECTIONS.items()
        ]
        others = [
            (name, each.summary())
            for name, each in installed_commands().items()
            if name not in COMMANDS and each.is_available()
        ]
        return [*core, ("Add-ons", others)] if others else core


@cache
def root_command() -> Any:
    """Return the command line as one command."""
    return _Root()
