"""Commands of add-ons and of other packages, which register them as entry points of the group `dragoman.commands`."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.cli.command_group import Reference

GROUP = "dragoman.commands"


class InstalledCommand(Reference):
    """A command that an installed package registers under a name."""

    def __init__(self, entry: EntryPoint) -> None:
        super().__init__(entry.value)
        self.entry = entry

    def load(self) -> Any:
        """Import what the entry point names. Raises ConfigError if this is not possible."""
        try:
            return self.entry.load()
        except (ImportError, AttributeError) as error:
            package = "an unknown package" if self.entry.dist is None else self.entry.dist.name
            raise ConfigError(
                f"the command `dragoman {self.entry.name}` of {package} cannot be imported ({self.entry.value}): "
                f"{error}. Reinstall {package}, or the package that is missing"
            ) from None

    def is_available(self) -> bool:
        """Return whether the command can be imported: not if the folder of an add-on was deleted, for example."""
        try:
            self.load()
        except ConfigError:
            return False
        return True


@cache
def installed_commands() -> dict[str, InstalledCommand]:
    """Return the commands of the installed packages by name. The first call reads the metadata of all packages."""
    found = {entry.name: InstalledCommand(entry) for entry in entry_points(group=GROUP)}
    return dict(sorted(found.items()))


class WithInstalledCommands(Mapping[str, Reference]):
    """References to the commands of the core, followed by those of installed packages, which are looked up last."""

    def __init__(self, core: Mapping[str, Reference]) -> None:
        self._core = core

    def __getitem__(self, name: str) -> Reference:
        return self._core[name] if name in self._core else installed_commands()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._core or name in installed_commands()

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._core), **dict.fromkeys(installed_commands())})

    def __len__(self) -> int:
        return sum(1 for _ in self)
