"""`evaluate_judgements` reads filled-in sheets: the mean score of a system, or which of two systems is better."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from dragoman.base.errors import DataError
from dragoman.base.log import warn
from dragoman.base.marks import Mark
from dragoman.data.files.csv_rows import csv_rows
from dragoman.evaluation.judgement_sheet import PREFERENCES, SCORE, SheetKey, key_path
from dragoman.metrics.agreement import krippendorff_alpha
from dragoman.metrics.resampling import interval_of, resampled_counts
from dragoman.metrics.score import Interval

_SAMPLES, _SEED = 1000, 12345
_RELIABLE = 0.667
"""Agreement below which conclusions are not even tentative (Krippendorff 2004, "Content Analysis", chapter 11)."""


@dataclass(frozen=True)
class Judgements:
    """The judgements of a sheet.

    systems: one or two names. judges: for each judge, the number of judged sentences and the mean of the scores or, of
    two systems, of 1 for the first, −1 for the second and 0 for neither. sentences: number of judged sentences.
    mean: of the sentences, each of which is the mean of its judges. interval: the middle 95% of the means of resampled
    sentences. agreement: Krippendorff's alpha, or None if it is undefined.
    """

    systems: tuple[str, ...]
    judges: Mapping[str, tuple[int, float]]
    sentences: int
    mean: float
    interval: Interval
    agreement: float | None


@dataclass(frozen=True)
class Assessment(Judgements):
    """The scores of one system, from 0 to 100 (direct assessment, Graham et al. 2013)."""

    def __str__(self) -> str:
        (system,) = self.systems
        judges = [f"  {name}: mean {mean:.1f} of {count:,} sentences" for name, (count, mean) in self.judges.items()]
        return "\n".join(
            [
                f"{system}: mean score {self.mean:.1f} of 100 on {self.sentences:,} sentences "
                f"(95% of resampled sets of sentences: {self.interval.low:.1f} to {self.interval.high:.1f})",
                *judges,
                *_agreement(self),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return _as_json(self)


@dataclass(frozen=True)
class PairwiseJudgement(Judgements):
    """A comparison of two systems, sentence by sentence.

    wins: numbers of sentences for which more judges prefer the first, and the second system. ties: number of the other
    sentences. p_value: of the two-sided sign test, which ignores ties.
    """

    wins: tuple[int, int]
    ties: int
    p_value: float

    def __str__(self) -> str:
        (first, second), (more, less) = self.systems, self.wins
        judges = [f"  {name}: {count:,} sentences, balance {mean:+z.2f}" for name, (count, mean) in self.judges.items()]
        return "\n".join(
            [
                f"{first} is better in {more:,} sentences, {second} in {less:,}; {self.ties:,} ties",
                f"  sign test: {self._significance}",
                f"  balance from +1 (always {first}) to -1 (always {second}): {self.mean:+z.2f} "
                f"(95% of resampled sets of sentences: {self.interval.low:+z.2f} to {self.interval.high:+z.2f})",
                *judges,
                *_agreement(self),
            ]
        )

    @property
    def _significance(self) -> str:
        return f"p = {self.p_value:.4f}, {'' if self.p_value < 0.05 else 'not '}significant at 0.05"

    def marks(self) -> list[Mark]:
        """Return the significance. See `Marked`."""
        return [Mark("good" if self.p_value < 0.05 else "warning", self._significance)]

    def as_json(self) -> dict[str, Any]:
        """Return all values as JSON types."""
        return {**_as_json(self), "wins": self.wins, "ties": self.ties, "p_value": self.p_value}


def evaluate_judgements(sheets: Sequence[str | Path], key: str | Path | None = None) -> Assessment | PairwiseJudgement:
    r"""Evaluate filled-in copies of a sheet, one per judge, like `dragoman evaluate judgements`.

    sheets: CSV files with the columns `id` and `score` or `better`; the separator may also be a semicolon or a tab. An
    empty cell is no judgement. key: the key of the sheet; None: NAME.key.json beside the first file.

    Raises DataError with file and line for a cell that is no score or preference, for an unknown or repeated id, for a
    missing column, and if nothing has been judged.

    >>> from dragoman import evaluate_judgements, write_sheet
    >>> key = write_sheet("pair.csv", {"a": ["x", "y"], "b": ["v", "w"]})
    >>> _ = open("judge.csv", "w").write("id,better\n1,A\n2,=\n")
    >>> evaluate_judgements(["judge.csv"], "pair.key.json").ties
    1
    """
    paths = [Path(each) for each in sheets]
    hidden = SheetKey.read(key_path(paths[0]) if key is None else Path(key))
    if len(set(paths)) < len(paths):
        raise DataError("a sheet is given twice: give one file per judge")
    judged = {str(path): _read(path, hidden) for path in paths}
    units = [[values[number] for values in judged.values() if number in values] for number in range(len(hidden.lines))]
    filled = [unit for unit in units if unit]
    if not filled:
        raise DataError(f"{paths[0]}: the column {hidden.column!r} is empty: nothing has been judged")
    means = np.array([fmean(unit) for unit in filled])
    resampled = np.concatenate(
        [counts @ means / len(means) for counts in resampled_counts(len(means), _SAMPLES, _SEED)]
    )
    is_score = hidden.column == SCORE
    common = (
        hidden.systems,
        {name: (len(values), fmean(values.values())) for name, values in judged.items() if values},
        len(filled),
        float(means.mean()),
        interval_of(resampled),
        krippendorff_alpha(units, "interval" if is_score else "nominal"),
    )
    if is_score:
        return Assessment(*common)
    signs = Counter(np.sign(means).astype(int).tolist())
    return PairwiseJudgement(*common, (signs[1], signs[-1]), signs[0], sign_test(signs[1], signs[-1]))


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the sign test: whether wins and losses are equally probable. 1 without either."""
    count = wins + losses
    tail = sum(comb(count, number) for number in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / (1 << count))


def _read(path: Path, key: SheetKey) -> dict[int, float]:
    """Return the judgements of a sheet by the index of the item. Preferences are those of the first system."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}") from None
    separator = max(",;\t", key=(lines[0] if lines else "").count)
    rows = csv_rows(lines, separator, path, "save the sheet as CSV again")
    header = [name.strip() for name in next(rows, (0, []))[1]]
    if missing := [name for name in ("id", key.column) if name not in header]:
        raise DataError(f"{path}: the column {missing[0]!r} is missing: it has {', '.join(header) or 'no line'}")
    found: dict[int, float] = {}
    seen: set[int] = set()
    for number, row in rows:
        if not any(map(str.strip, row)):
            continue
        cells = dict(zip(header, map(str.strip, row), strict=False))
        location, item = f"{path}, line {number}", cells["id"]
        if not item.isdecimal() or not 0 < int(item) <= len(key.lines):
            raise DataError(f"{location}: the id {item!r} is not in the key: it belongs to another sheet")
        index = int(item) - 1
        if index in seen:
            raise DataError(f"{location}: the id {item} occurs twice")
        seen.add(index)
        if value := cells.get(key.column, ""):
            found[index] = _score(value, location) if key.column == SCORE else _preference(value, location)
            if key.swapped[index]:
                found[index] = -found[index]
    if len(found) < len(key.lines):
        warn(f"{path}: {len(key.lines) - len(found):,} of {len(key.lines):,} sentences are not judged")
    return found


def _score(value: str, location: str) -> float:
    try:
        score = float(value.replace(",", "."))
    except ValueError:
        score = float("nan")
    if not 0 <= score <= 100:
        raise DataError(f"{location}: {value!r} is no score: give a number from 0 to 100, or leave the cell empty")
    return score


def _preference(value: str, location: str) -> float:
    if value.upper() not in PREFERENCES:
        raise DataError(f"{location}: {value!r} is no preference: give A, B or =, or leave the cell empty")
    return PREFERENCES[value.upper()]


def _agreement(judgements: Judgements) -> list[str]:
    """Return the line about the agreement of several judges."""
    if len(judgements.judges) < 2:
        return []
    if judgements.agreement is None:
        return ["  agreement: undefined, because no sentence has several judgements, or all of them are equal"]
    level = "enough" if judgements.agreement >= _RELIABLE else f"below {_RELIABLE}: too little for firm conclusions"
    return [f"  agreement: Krippendorff's alpha {judgements.agreement:.2f} ({level})"]


def _as_json(judgements: Judgements) -> dict[str, Any]:
    interval = judgements.interval
    return {
        "systems": judgements.systems,
        "judges": {name: {"sentences": count, "mean": mean} for name, (count, mean) in judgements.judges.items()},
        "sentences": judgements.sentences,
        "mean": judgements.mean,
        "interval": [interval.low, interval.high],
        "agreement": judgements.agreement,
    }
