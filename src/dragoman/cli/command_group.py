"""`CommandGroup`: commands that are imported when they are called, with or without a default command."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dragoman.cli.help import HELP_ALL, command_help, group_help, summary

HELP_OPTIONS = ["-h", "--help"]


@dataclass(frozen=True)
class Reference:
    """A command by the name of its module and of a function in it, such as `dragoman.cli.commands.train:train`.

    text: the first sentence of its help; if it is empty, the module is imported to list the command.
    """

    name: str
    text: str = ""

    def load(self) -> Any:
        """Import the module, and return the function, or the `CommandGroup` or typer application in its place."""
        module, _, attribute = self.name.partition(":")
        return getattr(import_module(module), attribute)

    def summary(self) -> str:
        """Return the first sentence of the help."""
        return self.text or summary_of(self.load())


class Command(TyperCommand):
    """A command whose help starts with examples."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with the usual options."""
        formatter.write(command_help(self, ctx.command_path))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, or print the help with all options."""
        if _asks_for_all(args):
            typer.echo(command_help(self, ctx.command_path, everything=True))
            raise typer.Exit
        return super().parse_args(ctx, args)


class Commands(MutableMapping[str, Any]):
    """Commands by name, imported and built when they are looked up."""

    def __init__(self, references: Mapping[str, Reference]) -> None:
        self._references = references
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = build(name, self._references[name].load())
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._built or name in self._references

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._references), **self._built})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]


class CommandGroup(TyperGroup):
    """Commands by name.

    references: where each command is. default: the command that runs if none is named: `dragoman inspect MODEL` means
    `dragoman inspect attention MODEL`. A path with the name of a command is written as `./NAME`.
    """

    def __init__(
        self,
        name: str,
        references: Mapping[str, Reference],
        *,
        help: str,
        examples: Sequence[str] = (),
        default: str | None = None,
        needs_arguments: bool = True,
    ) -> None:
        super().__init__(
            name=name, help=help, no_args_is_help=needs_arguments, context_settings={"help_option_names": HELP_OPTIONS}
        )
        self.commands = Commands(references)
        self.references, self.examples, self.default = references, examples, default

    @property
    def default_command(self) -> Any:
        """The default command, or None."""
        return None if self.default is None else self.commands[self.default]

    def sections(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the titles of the help, with the names and summaries of commands."""
        rows = [
            (f"{name} (default)" if name == self.default else name, each.summary())
            for name, each in self.references.items()
        ]
        return [("Commands", rows)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, and the usual options of the default command."""
        formatter.write(group_help(self, ctx.command_path, self.sections(), self.examples))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if the first argument is not a command or a request for help."""
        if args[:1] == [HELP_ALL]:
            typer.echo(group_help(self, ctx.command_path, self.sections(), self.examples, everything=True))
            raise typer.Exit
        if self.default is not None and not (args and (args[0] in self.commands or args[0] in ctx.help_option_names)):
            args = [self.default, *args] if args or not self.no_args_is_help else args
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the completions of a word: commands, and the options of the default command."""
        found = super().shell_complete(ctx, incomplete)
        if self.default is None or not incomplete.startswith("-"):
            return found
        command = self.default_command
        with command.make_context(self.default, [], parent=ctx, resilient_parsing=True) as context:
            return [*found, *command.shell_complete(context, incomplete)]


def build(name: str, loaded: Any) -> Any:
    """Return a command from a function with typer's parameters, from a typer application, or from a `CommandGroup`."""
    if isinstance(loaded, TyperGroup):
        return loaded
    if isinstance(loaded, typer.Typer):
        command = get_command(loaded)
        command.name = name
        return command
    app = typer.Typer(add_completion=False, context_settings={"help_option_names": HELP_OPTIONS})
    app.command(name, cls=Command)(loaded)
    return get_command(app)


def summary_of(loaded: Any) -> str:
    """Return the first sentence of the help of a function, a group or a typer application."""
    if isinstance(loaded, typer.Typer):
        return summary(build("", loaded).help)
    return summary(loaded.help if isinstance(loaded, TyperGroup) else loaded.__doc__)


def _asks_for_all(arguments: Sequence[str]) -> bool:
    return HELP_ALL in arguments and HELP_ALL not in [*arguments, "--"][[*arguments, "--"].index("--") :]
