"""Units of translation memories and of localisation files: texts in several languages, two of which form a pair."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dragoman.base.errors import DataError
from dragoman.base.log import info
from dragoman.data.corpora.items import Pair
from dragoman.text.languages.codes import match_language_codes, parse_language_code
from dragoman.text.languages.names import language_name

_SAMPLE = 1000
"""Number of units from which the languages of a file are determined."""

_MAX_LISTED_CODES = 20
_MAX_COUNTED_CODES = 1000


class Variant(NamedTuple):
    """A text of a unit. code: its language code in the file."""

    code: str
    text: str


class UnitPairs:
    """Makes pairs of units, in order. Languages that are not requested are determined from the first units."""

    def __init__(self, path: Path, source_code: str | None, target_code: str | None, address: str) -> None:
        """address: of the settings of the corpus, for messages."""
        self._path, self._address = path, address
        self._requested = source_code, target_code
        self._languages = None if source_code is None or target_code is None else (source_code, target_code)
        self._waiting: list[tuple[int, Sequence[Variant]]] = []
        self._pairs: list[Pair] = []
        self._codes: Counter[str] = Counter()
        self._complete = 0
        self.count = 0
        self.declared_source: str | None = None
        """Code of the source language that the file declares."""

    def add(self, line: int, variants: Sequence[Variant]) -> None:
        """Add a unit. Raises DataError if the file has other languages than the requested ones, or too many."""
        self.count += 1
        for code in dict.fromkeys(variant.code for variant in variants):
            if code in self._codes or len(self._codes) < _MAX_COUNTED_CODES:
                self._codes[code] += 1
        if self._languages is not None:
            self._pairs.append(self._pair(line, variants, self._languages))
            return
        self._waiting.append((line, variants))
        if len(self._waiting) == _SAMPLE:
            self._determine_languages()

    def pop(self) -> list[Pair]:
        """Return the pairs that were completed since the last call."""
        pairs, self._pairs = self._pairs, []
        return pairs

    def finish(self) -> None:
        """Complete the last pairs. Raises DataError if no unit is complete, or if the languages must be chosen."""
        if self._waiting:
            self._determine_languages()
        if self.count and not self._complete:
            assert self._languages is not None
            raise DataError(
                f"{self._path}: no unit contains both {self._languages[0]} and {self._languages[1]}. The language "
                f"codes of the file are: {self._listed_codes()}. Set source_code and target_code of the corpus."
            )

    def _listed_codes(self) -> str:
        return ", ".join(f"{code} ({n:,})" for code, n in self._codes.most_common(_MAX_LISTED_CODES)) or "none"

    def _determine_languages(self) -> None:
        groups: dict[str, list[str]] = {}
        for code in self._codes:
            groups.setdefault(parse_language_code(code).language, []).append(code)
        if len(groups) == 1:  # variants of one language, such as en-US and en-GB
            groups = {code: [code] for code in self._codes}
        names = [codes[0] if len(codes) == 1 else language for language, codes in groups.items()]
        source, target = self._requested
        if len(names) == 2:
            if source is None:
                source = next((name for name in names if target and match_language_codes(target, name) is None), None)
            if source is None:
                declared = self.declared_source or ""
                source = next((name for name in names if match_language_codes(name, declared) is not None), names[0])
            if target is None:
                target = next((name for name in names if match_language_codes(source, name) is None), None)
        if source is None or target is None:
            number = "more than two languages" if len(names) > 2 else "only one language"
            raise DataError(
                f"{self._path} has {number}: {self._listed_codes()}. Choose two with the settings source_code and "
                f"target_code of the corpus, such as {self._address}.source_code=en {self._address}.target_code=de."
            )
        self._languages = source, target
        _report_languages(str(self._path), source, target)
        waiting, self._waiting = self._waiting, []
        self._pairs += [self._pair(line, variants, self._languages) for line, variants in waiting]

    def _pair(self, line: int, variants: Sequence[Variant], languages: tuple[str, str]) -> Pair:
        best: list[tuple[int, str] | None] = [None, None]
        for code, text in variants:
            for side, requested in enumerate(languages):
                rank, found = match_language_codes(requested, code), best[side]
                if rank is not None and (found is None or rank < found[0]):
                    best[side] = rank, text
        source, target = (None if side is None else side[1] for side in best)
        is_complete = source is not None and target is not None
        self._complete += is_complete
        return Pair(line, source or "", target or "", is_complete)


@cache  # reports a file once, although it is read several times
def _report_languages(path: str, source: str, target: str) -> None:
    info(f"{path}: the source is {_described(source)}, the target {_described(target)}.")


def _described(code: str) -> str:
    name = language_name(parse_language_code(code).language)
    return name if name == code else f"{name} ({code})"
