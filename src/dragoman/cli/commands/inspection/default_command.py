"""`DefaultCommandGroup`: a group with a command that runs if no command is named."""

from typing import Any

from typer.core import TyperGroup


class DefaultCommandGroup(TyperGroup):
    """A group whose first command is the default: `dragoman inspect MODEL` means `dragoman inspect attention MODEL`.

    A path with the name of a command is written as `./NAME`.
    """

    @property
    def default(self) -> str:
        """The name of the default command."""
        return next(iter(self.commands))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default command if the first argument is not a command or a request for help."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)
