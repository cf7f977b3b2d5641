"""Groups of settings that several places or several kinds of runs share, each listed once for the reference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dragoman.base.settings.reference import NAME, Section, Setting


@dataclass(frozen=True)
class Occurrence:
    """A place where a group can stand. run: name of the kind of run.

    within: path and kind of the nearest enclosing group that has a kind; empty if no enclosing group has one.
    defaults: defaults of the group's settings at this place.
    """

    run: str
    path: str
    within: tuple[str, str] | tuple[()]
    defaults: tuple[str | None, ...]


@dataclass(eq=False)
class Variant:
    """A group with equal kind, summary and settings at all its places. settings: with keys relative to the group."""

    kind: str | None
    summary: str
    settings: tuple[Setting, ...]
    occurrences: list[Occurrence] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The place under which the reference lists the group: the first one outside groups with names, if any."""
        return min(self.paths, key=lambda path: NAME in path.split("."))

    @property
    def paths(self) -> list[str]:
        """All places, without repetition."""
        return list(dict.fromkeys(place.path for place in self.occurrences))

    def at(self, path: str) -> list[Occurrence]:
        """Return the occurrences at a place."""
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


def share(runs: Mapping[str, Sequence[Section]]) -> list[SharedGroup]:
    """Collect the groups of several kinds of runs, in the order of their first places. runs: sections by kind of run.

    Groups are equal if their settings have the same names, types and descriptions; their defaults may differ.
    """
    variants: dict[tuple[object, ...], Variant] = {}
    for run, listed in runs.items():
        for section, within in _with_context(listed):
            rows = tuple(replace(row, key=row.key.rpartition(".")[2]) for row in section.settings)
            names = tuple((row.key, row.type, row.description) for row in rows)
            variant = variants.setdefault(
                (section.kind, section.summary, names), Variant(section.kind, section.summary, rows)
            )
            variant.occurrences.append(Occurrence(run, section.path, within, tuple(row.default for row in rows)))
    groups: dict[str, SharedGroup] = {}
    for variant in variants.values():
        groups.setdefault(variant.path, SharedGroup(variant.path)).variants.append(variant)
    return list(groups.values())


def _with_context(listed: Sequence[Section]) -> Iterator[tuple[Section, tuple[str, str] | tuple[()]]]:
    """Yield each section with the path and kind of the nearest group of a kind around it."""
    around: list[Section] = []
    for section in listed:
        while around and not (section.path.startswith(f"{around[-1].path}.") or not around[-1].path):
            around.pop()
        kinds = [each for each in around if each.kind is not None]
        yield section, (kinds[-1].path, str(kinds[-1].kind)) if kinds else ()
        around.append(section)
