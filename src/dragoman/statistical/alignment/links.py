"""Word alignments as links between positions, and files of links in the Pharaoh format, its extensions, or NAACL's.

| format | link | possible link | one line per |
| --- | --- | --- | --- |
| Pharaoh | `3-4` | | sentence pair |
| talp, with possible links | `3-4` | `3p4` or `3?4` | sentence pair |
| Hansards, with possible links | `3-4` or `3-4-S` | `3-4-P` | sentence pair |
| NAACL (.wa) | `17 3 4` or `17 3 4 S` | `17 3 4 P` | link. The sentence pairs are numbered from 1 |

In NAACL's format, words are numbered from 1, and links with the number 0 (NULL) are ignored. A fifth
field with a confidence is allowed. The other formats do not define the number of the first word: see `detect_base`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.base.errors import ConfigError, DataError

Alignment = tuple[tuple[int, int], ...]
"""Sorted links (i, j): word i of the source and word j of the target, from 0. Words are separated by whitespace."""

IndexBase = Literal[0, 1]
"""The number of the first word of a sentence."""

_LINK = re.compile(r"(\d+)(?:-(\d+)(?:-([SP]))?|[p?](\d+))", re.ASCII)
_NAACL = re.compile(r"\s*(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+[\d.eE+-]+)?\s*", re.ASCII)
_ENOUGH = 10
"""Number of sentence pairs with links without which a missing 0 does not show that words are numbered from 1."""


@dataclass(frozen=True)
class FileLink:
    """A link as a file contains it, in the numbers of the file."""

    source: int
    target: int
    is_possible: bool


@dataclass(frozen=True)
class LinkFile:
    """The links of a file, one list per sentence pair, in the numbers of the file.

    name: name in messages. is_naacl: whether the file is in NAACL's format, whose numbers start with 1.
    """

    name: str
    lines: Sequence[Sequence[FileLink]]
    is_naacl: bool

    @staticmethod
    def parse(name: str, lines: Sequence[str], pairs: int | None = None) -> "LinkFile":
        """Parse the lines of a file.

        pairs: number of sentence pairs of a file in NAACL's format, in which pairs without links are missing; None: the
        largest number in the file. Raises DataError, with the line, for a line that is in none of the formats.
        """
        first = next((line for line in lines if line.strip()), "")
        if _NAACL.fullmatch(first):
            return LinkFile(name, _parse_naacl(name, lines, pairs), is_naacl=True)
        return LinkFile(name, [_parse_line(name, number, line) for number, line in enumerate(lines, 1)], is_naacl=False)

    def detect_base(self, option: str) -> IndexBase:
        """Return the number of the first word of a sentence: 0 if any word has the number 0, and 1 otherwise.

        option: the option that sets the base, for the message. Raises ConfigError if no word has the number 0, but too
        few sentence pairs have links to conclude that words are numbered from 1.
        """
        if self.is_naacl:
            return 1
        if any(0 in (link.source, link.target) for links in self.lines for link in links):
            return 0
        if sum(bool(links) for links in self.lines) >= _ENOUGH:
            return 1
        raise ConfigError(
            f"{self.name} does not show whether its words are numbered from 0 or from 1: give {option} 0 or {option} 1"
        )

    def zero_based(self, base: IndexBase, option: str) -> list[dict[tuple[int, int], bool]]:
        """Return the links of each pair with words numbered from 0, and whether each link is only possible.

        base: the number of the first word in the file. A link that is listed as sure and as possible is sure. Raises
        DataError for the number 0 if words are numbered from 1, and ConfigError for a file in NAACL's format with base
        0. option: the option that sets the base, for the messages.
        """
        if self.is_naacl and base == 0:
            raise ConfigError(
                f"{self.name} is in NAACL's format, in which words are numbered from 1: remove {option} 0"
            )
        result = []
        for number, links in enumerate(self.lines, 1):
            pair: dict[tuple[int, int], bool] = {}
            for link in links:
                if min(link.source, link.target) < base:
                    raise DataError(
                        f"{self.name}, line {number}: a word has the number 0, but words are numbered from 1 according "
                        f"to {option} 1. Use {option} 0"
                    )
                position = (link.source - base, link.target - base)
                pair[position] = pair.get(position, True) and link.is_possible
            result.append(pair)
        return result


def _parse_line(name: str, number: int, line: str) -> list[FileLink]:
    links = []
    for field in line.split():
        match = _LINK.fullmatch(field)
        if match is None:
            raise DataError(
                f"{name}, line {number}: '{field[:40]}' is not a link. Write links as 3-4 and possible links as 3p4, "
                "3?4 or 3-4-P"
            )
        source, target, mark, possible = match.groups()
        links.append(FileLink(int(source), int(possible or target), possible is not None or mark == "P"))
    return links


def _parse_naacl(name: str, lines: Sequence[str], pairs: int | None) -> list[list[FileLink]]:
    numbered: dict[int, list[FileLink]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _NAACL.fullmatch(line)
        if match is None:
            raise DataError(f"{name}, line {number}: this is not a link in NAACL's format, such as '17 3 4 S'")
        pair, source, target, mark = match.groups()
        if int(pair) == 0 or (pairs is not None and int(pair) > pairs):
            limit = "" if pairs is None else f" to {pairs}"
            raise DataError(
                f"{name}, line {number}: there is no sentence pair {int(pair)}; they are numbered from 1{limit}"
            )
        if int(source) and int(target):
            numbered.setdefault(int(pair), []).append(FileLink(int(source), int(target), mark == "P"))
    return [numbered.get(pair, []) for pair in range(1, (pairs or max(numbered, default=0)) + 1)]


def sorted_alignment(links: Iterable[tuple[int, int]]) -> Alignment:
    """Return the distinct links in order."""
    return tuple(sorted(set(links)))


def reversed_alignment(alignment: Alignment) -> Alignment:
    """Return the alignment of the target with the source."""
    return sorted_alignment((target, source) for source, target in alignment)


def format_pharaoh(alignment: Alignment) -> str:
    """Return an alignment in the Pharaoh format, such as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in alignment)
