"""`Glossary`: translations of terms."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.base.errors import ConfigError, DataError
from dragoman.control.phrase import Phrase
from dragoman.data.corpora.lines import has_broken_utf8, open_lines
from dragoman.text.words import split_units

EXACT = "="
"""Marks a source term that matches its exact letter case only."""


class Entry(NamedTuple):
    """An entry of a glossary.

    targets: alternatives; a translation must contain one of them. Empty if the term is copied from the text. exact:
    whether the source matches its exact letter case only.
    """

    source: str
    targets: tuple[str, ...]
    exact: bool


class Match(NamedTuple):
    """A term at text[start:end], and the phrase that the translation must contain."""

    start: int
    end: int
    phrase: Phrase


class _Node:
    """A node of a prefix tree of terms, by their units in lower case."""

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.entries: list[Entry] = []


class Glossary:
    """Finds terms at word boundaries, the longest first, ignoring letter case unless an entry is `exact`.

    If a term is capitalised or in capitals in the text but not in its entry, its targets may be written so too. If
    several entries match, the targets of all of them are alternatives; exact entries take precedence.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._root = _Node()
        for entry in entries:
            node = self._root
            for unit in _folded(entry.source):
                node = node.following.setdefault(unit, _Node())
            node.entries.append(entry)
        lines = sorted(repr(tuple(entry)) for entry in entries)
        self.fingerprint = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        """A digest of all entries."""

    @staticmethod
    def of(terms: Mapping[str, str | Sequence[str] | None]) -> "Glossary":
        """Return a glossary of source terms and their translations: one, several, or None to copy the term.

        A source that starts with = matches its exact letter case only. Raises ConfigError for an invalid phrase.
        """
        found = [
            _entry(source, () if targets is None else (targets,) if isinstance(targets, str) else tuple(targets))
            for source, targets in terms.items()
        ]
        if not found:
            raise ConfigError("a glossary must have at least one term")
        return Glossary(found)

    @staticmethod
    def read(path: Path | str) -> "Glossary":
        """Read lines of source TAB target; further tabs separate alternatives. A term without a target is copied.

        Blank lines and lines that start with # are skipped. Raises DataError with the file and the line.
        """
        path, found = Path(path), []
        for number, line in enumerate(open_lines(path), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            if has_broken_utf8(line):
                raise DataError(f"{path}, line {number}: broken UTF-8; convert the file (for example with iconv)")
            source, *targets = line.split("\t")
            try:
                found.append(_entry(source, tuple(targets)))
            except ConfigError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
        if not found:
            raise DataError(f"{path} has no terms: a glossary has lines of source TAB target")
        return Glossary(found)

    def find(self, text: str, start: int = 0, end: int | None = None) -> list[Match]:
        """Return the terms in text[start:end], from left to right, without overlaps."""
        units = [unit for unit in split_units(text) if unit[0] >= start and (end is None or unit[1] <= end)]
        found, number = [], 0
        while number < len(units):
            match, count = self._longest(text, units, number)
            if match is not None:
                found.append(match)
            number += max(1, count)
        return found

    def _longest(self, text: str, units: Sequence[tuple[int, int]], number: int) -> tuple[Match | None, int]:
        """Return the longest term that starts at the unit `number`, and its number of units."""
        best: tuple[Match | None, int] = None, 0
        node, first = self._root, units[number][0]
        for count, (begin, end) in enumerate(units[number:], start=1):
            following = node.following.get(_unit(text[begin:end]))
            if following is None:
                break
            node = following
            written = text[first:end]
            fitting = [entry for entry in node.entries if entry.source == written or not entry.exact]
            fitting = [entry for entry in fitting if entry.exact] or fitting
            if fitting:
                forms = [form for entry in fitting for form in _forms(entry, written)]
                best = Match(first, end, Phrase.of(forms)), count
        return best


def glossary_of(given: "Glossary | Mapping[str, Any] | Path | str | None") -> Glossary | None:
    """Return a glossary from its terms or its file; a `Glossary` or None is returned unchanged.

    Raises the errors of `Glossary.of` and `Glossary.read`.
    """
    if given is None or isinstance(given, Glossary):
        return given
    return Glossary.of(given) if isinstance(given, Mapping) else Glossary.read(given)


def _entry(source: str, targets: tuple[str, ...]) -> Entry:
    """Parse an entry. Raises ConfigError for a source or a target that is not a phrase."""
    exact = source.strip().startswith(EXACT)
    (term,) = Phrase.of(source.strip().removeprefix(EXACT)).alternatives
    return Entry(term, Phrase.of(targets).alternatives if targets else (), exact)


def _folded(text: str) -> Iterator[str]:
    return (_unit(text[begin:end]) for begin, end in split_units(text))


def _unit(text: str) -> str:
    """Fold the letter case; any run of whitespace is one space."""
    return text.casefold() if text.strip() else " "


def _forms(entry: Entry, written: str) -> list[str]:
    """Return the targets in the letter case of the text, followed by the targets as given."""
    if not entry.targets:
        return [written]
    if len(written) > 1 and written.isupper() and not entry.source.isupper():
        return [*(target.upper() for target in entry.targets), *entry.targets]
    if written[0].isupper() and not entry.source[0].isupper():
        return [*(target[0].upper() + target[1:] for target in entry.targets), *entry.targets]
    return list(entry.targets)
