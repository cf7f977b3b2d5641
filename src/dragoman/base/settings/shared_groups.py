"""Groups of settings that several locations or several kinds of runs share, each listed once for the reference."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoman.base.settings.reference import NAME, Section, Setting


@dataclass(frozen=True)
class Occurrence:
    """A location where a group can stand. run: name of the kind of run.

    within: path and kind of the nearest enclosing group that has a kind; empty if no enclosing group has one.
    defaults: defaults of the group's settings at this location.
    """

    run: str
    path: str
    within: tuple[str, str] | tuple[()]
    defaults: tuple[str | None, ...]


@dataclass(eq=False)
class Variant:
    """A group with equal kind, summary and settings at all its locations.

    path: the location under which the reference lists the group. settings: with keys relative to the group.
    """

    path: str
    kind: str | None
    summary: str
    settings: tuple[Setting, ...]
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        """All locations, without repetition."""
        return list(dict.fromkeys(each.path for each in self.occurrences))

    def at(self, path: str) -> list[Occurrence]:
        """Return the occurrences at a location."""
        return [each for each in self.occurrences if each.path == path]


@dataclass
class SharedGroup:
    """The variants listed under one path: several kinds, or the groups of several kinds of runs."""

    path: str
    variants: list[Variant] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of all settings, without repetition."""
        return list(dict.fromkeys(row.key for variant in self.variants for row in variant.settings))

    def with_setting(self, name: str) -> list[Variant]:
        """Return the variants that have a setting."""
        return [each for each in self.variants if any(row.key == name for row in each.settings)]


class ListedPaths:
    """The locations under which the reference lists groups: the first one outside groups with names, if any.

    runs: the sections of each kind of run; only as many as necessary are read.
    """

    def __init__(self, runs: Iterable[Sequence[Section]]) -> None:
        self._runs = iter(runs)
        self._paths: dict[object, str] = {}

    def path_of(self, section: Section) -> str:
        """Return the path under which a section of one of the runs is listed."""
        group = _identity(section)
        while group not in self._paths or _is_named(self._paths[group]):
            if not self._read_run():
                break
        return self._paths[group]

    def __contains__(self, path: str) -> bool:
        """Return whether a group is listed under a path."""
        while path not in self._paths.values():
            if not self._read_run():
                return False
        return True

    def _read_run(self) -> bool:
        """Read the sections of the next kind of run, and return whether there was one."""
        listed = next(self._runs, None)
        for section in listed or ():
            known = self._paths.setdefault(_identity(section), section.path)
            if _is_named(known) and not _is_named(section.path):
                self._paths[_identity(section)] = section.path
        return listed is not None


def share(runs: Mapping[str, Sequence[Section]]) -> list[SharedGroup]:
    """Collect the groups of several kinds of runs, in the order of their first locations. runs: sections by kind of
    run.

    Groups are equal if their settings have the same names, types and descriptions; their defaults may differ.
    """
    paths = ListedPaths(runs.values())
    variants: dict[object, Variant] = {}
    for run, listed in runs.items():
        for section, within in _with_context(listed):
            variant = variants.setdefault(
                _identity(section), Variant(paths.path_of(section), section.kind, section.summary, _relative(section))
            )
            defaults = tuple(row.default for row in section.settings)
            variant.occurrences.append(Occurrence(run, section.path, within, defaults))
    groups: dict[str, SharedGroup] = {}
    for variant in variants.values():
        groups.setdefault(variant.path, SharedGroup(variant.path)).variants.append(variant)
    return list(groups.values())


def _relative(section: Section) -> tuple[Setting, ...]:
    """Return the settings of a section with keys relative to it."""
    return tuple(replace(row, key=row.key.rpartition(".")[2]) for row in section.settings)


def _identity(section: Section) -> object:
    """Return what equal groups have in common."""
    return section.kind, section.summary, tuple((row.key, row.type, row.description) for row in _relative(section))


def _is_named(path: str) -> bool:
    """Return whether a path leads through a group with a name of the user's choice."""
    return NAME in path.split(".")


def _with_context(listed: Sequence[Section]) -> Iterator[tuple[Section, tuple[str, str] | tuple[()]]]:
    """Yield each section with the path and kind of the nearest group of a kind around it."""
    around: list[Section] = []
    for section in listed:
        while around and not (section.path.startswith(f"{around[-1].path}.") or not around[-1].path):
            around.pop()
        kinds = [each for each in around if each.kind is not None]
        yield section, (kinds[-1].path, str(kinds[-1].kind)) if kinds else ()
        around.append(section)
