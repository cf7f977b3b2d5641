"""`Glossary`: a dictionary of terms and their required translations."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.files.lines import has_broken_utf8, open_lines
from dragoman.inference.control.phrase import Phrase
from dragoman.text.normalization import NormalisedText, normalise
from dragoman.text.words import split_units

EXACT = "="
"""Prefix of a source term that is case-sensitive."""


class Entry(NamedTuple):
    """An entry of a glossary.

    targets: alternatives, one of which a translation must contain; empty if the term is copied from the text. exact:
    whether the match is case-sensitive.
    """

    source: str
    targets: tuple[str, ...]
    exact: bool


class Match(NamedTuple):
    """The occurrence of a term at text[start:end], and the phrase that the translation must contain."""

    start: int
    end: int
    phrase: Phrase


class _Node:
    """A node of a prefix tree of terms, which are sequences of case-folded units."""

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.entries: list[Entry] = []


class Glossary:
    """A glossary that finds its terms in texts.

    Terms match at word boundaries, longest first, regardless of letter case unless an entry is `exact`. Texts that
    Unicode defines as canonically equivalent are the same. If a term is
    capitalised or in capitals in the text but not in its entry, its targets may have the same letter case. If several
    entries match, the targets of all entries are alternatives; exact entries take precedence.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._root = _Node()
        for entry in entries:
            node = self._root
            for unit in _folded_units(entry.source):
                node = node.children.setdefault(unit, _Node())
            node.entries.append(entry)
        lines = sorted(repr(tuple(entry)) for entry in entries)
        self.fingerprint = blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        """A digest of all entries."""

    @staticmethod
    def of(terms: Mapping[str, str | Sequence[str] | None]) -> "Glossary":
        """Create a glossary from a mapping of source terms to one translation, several translations, or None.

        None means that the term is copied. A source term that starts with = is case-sensitive. Raises ConfigError for
        an invalid phrase.
        """
        entries = [
            _entry(source, () if targets is None else (targets,) if isinstance(targets, str) else tuple(targets))
            for source, targets in terms.items()
        ]
        if not entries:
            raise ConfigError("a glossary must have at least one term")
        return Glossary(entries)

    @staticmethod
    def read(path: Path | str) -> "Glossary":
        """Read a glossary file with lines of source TAB target.

        Further tabs separate alternatives. A term without a target is copied. Blank lines and lines that start with #
        are skipped. Raises DataError, with the file and the line number, for an invalid line or an empty glossary.
        """
        path, entries = Path(path), []
        for number, line in enumerate(open_lines(path), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            if has_broken_utf8(line):
                raise DataError(f"{path}, line {number}: broken UTF-8; convert the file (for example with iconv)")
            source, *targets = line.split("\t")
            try:
                entries.append(_entry(source, tuple(targets)))
            except ConfigError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
        if not entries:
            raise DataError(f"{path} has no terms: a glossary must have lines of source TAB target")
        return Glossary(entries)

    def find(self, text: str, parts: Iterable[tuple[int, int]] | None = None) -> list[Match]:
        """Return the terms in a text, from left to right, without overlaps.

        parts: the (start, end) characters of the parts to search, in order; None for the whole text.
        """
        normalised = NormalisedText.of(text, "nfc")
        units, matches, number = list(split_units(normalised.text)), list[Match](), 0
        for part_start, part_end in [(0, len(text))] if parts is None else parts:
            start, end = normalised.position_of(part_start), normalised.position_of(part_end)
            while number < len(units) and units[number][0] < start:
                number += 1
            first = number
            while number < len(units) and units[number][1] <= end:
                number += 1
            matches += self._find_in_units(text, normalised, units[first:number])
        return matches

    def _find_in_units(
        self, text: str, normalised: NormalisedText, units: Sequence[tuple[int, int]]
    ) -> Iterator[Match]:
        """Yield the matches in units of the normalised text, with their positions in `text`."""
        number = 0
        while number < len(units):
            match, count = self._longest(text, normalised, units, number)
            if match is not None:
                yield match
            number += max(1, count)

    def _longest(
        self, text: str, normalised: NormalisedText, units: Sequence[tuple[int, int]], number: int
    ) -> tuple[Match | None, int]:
        """Return the longest term that starts at unit `number`, or None, and its number of units."""
        best: tuple[Match | None, int] = None, 0
        node, first = self._root, units[number][0]
        for count in range(1, len(units) - number + 1):
            begin, end = units[number + count - 1]
            children = node.children.get(_fold_unit(normalised.text[begin:end]))
            if children is None:
                break
            node = children
            occurrence = normalised.text[first:end]
            matching = [
                entry for entry in node.entries if not entry.exact or normalise(entry.source, "nfc") == occurrence
            ]
            matching = [entry for entry in matching if entry.exact] or matching
            if matching:
                span = normalised.span_in_original(first, end)
                forms = [form for entry in matching for form in _forms(entry, text[slice(*span)])]
                best = Match(*span, Phrase.of(forms)), count
        return best


def load_glossary(glossary: "Glossary | Mapping[str, Any] | Path | str | None") -> Glossary | None:
    """Create a glossary from a mapping of terms or from a file. A `Glossary` or None is returned unchanged.

    Raises the errors of `Glossary.of` and `Glossary.read`.
    """
    if glossary is None or isinstance(glossary, Glossary):
        return glossary
    return Glossary.of(glossary) if isinstance(glossary, Mapping) else Glossary.read(glossary)


def _entry(source: str, targets: tuple[str, ...]) -> Entry:
    """Parse an entry. Raises ConfigError for a source or a target that is not a valid phrase."""
    exact = source.strip().startswith(EXACT)
    (term,) = Phrase.of(source.strip().removeprefix(EXACT)).alternatives
    return Entry(term, Phrase.of(targets).alternatives if targets else (), exact)


def _folded_units(text: str) -> Iterator[str]:
    text = normalise(text, "nfc")
    return (_fold_unit(text[begin:end]) for begin, end in split_units(text))


def _fold_unit(text: str) -> str:
    """Case-fold a unit; replace whitespace with a single space."""
    return text.casefold() if text.strip() else " "


def _forms(entry: Entry, occurrence: str) -> list[str]:
    """Return the targets in the letter case of the text, followed by the targets in their original letter case."""
    if not entry.targets:
        return [occurrence]
    if len(occurrence) > 1 and occurrence.isupper() and not entry.source.isupper():
        return [*(target.upper() for target in entry.targets), *entry.targets]
    if occurrence[0].isupper() and not entry.source[0].isupper():
        return [*(target[0].upper() + target[1:] for target in entry.targets), *entry.targets]
    return list(entry.targets)
