"""`write_sheet` writes translations for people to judge, in random order and without the names of their systems."""

import csv
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path
from random import Random

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_write, check_new_files
from dragoman.base.log import info
from dragoman.data.corpora.inputs import Lines, read_parallel
from dragoman.evaluation.evaluate import name_texts

SCORE, BETTER = "score", "better"
"""The columns that judges fill in: of one system, and of two systems."""

PREFERENCES: Mapping[str, float] = {"A": 1, "B": -1, "=": 0}
"""The values of the column `better`."""

_VERSION = 1


@dataclass(frozen=True)
class SheetKey:
    """What a sheet hides. systems: one or two names. lines: number of the line of each item, counted from 1.

    swapped: for each item, whether A is the translation of the second system.
    """

    systems: tuple[str, ...]
    lines: tuple[int, ...]
    swapped: tuple[bool, ...]

    @property
    def column(self) -> str:
        """The column that judges fill in."""
        return SCORE if len(self.systems) == 1 else BETTER

    def write(self, path: Path) -> None:
        """Write the key as JSON."""
        content = {"version": _VERSION, "systems": self.systems, "lines": self.lines, "swapped": self.swapped}
        atomic_write(path, json.dumps(content, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> "SheetKey":
        """Read a key. Raises DataError if the file is missing or damaged."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["version"] != _VERSION:
                raise ValueError(f"it does not have version {_VERSION}")
            key = cls(*(tuple(content[name]) for name in ("systems", "lines", "swapped")))
        except FileNotFoundError:
            raise DataError(
                f"{path} does not exist: `dragoman evaluate sheet` writes it beside the sheet. Give it with --key FILE"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is not the key of a sheet, or is damaged ({error})") from None
        if len(key.systems) not in (1, 2) or len(key.lines) != len(key.swapped):
            raise DataError(f"{path} is damaged: restore it")
        return key


def key_path(sheet: Path) -> Path:
    """Return the path of the key of a sheet."""
    return sheet.with_suffix(".key.json")


def write_sheet(
    out: str | Path,
    hypothesis: Lines | Sequence[Lines] | Mapping[str, Lines],
    *,
    source: Lines | None = None,
    reference: Lines | None = None,
    sentences: int | None = 100,
    seed: int = 1,
) -> SheetKey:
    r"""Write a sheet for human judgement, and its key, like `dragoman evaluate sheet`.

    One system: each translation gets a score from 0 to 100 (direct assessment, Graham et al. 2013). Two systems: the
    better of two translations is chosen. The sentences are drawn at random, and their order and that of the systems is
    random. Sentences that both systems translate equally are left out.

    out: a CSV file, or an HTML page that saves a CSV file. The key, which judges must not see, is written beside it as
    NAME.key.json. hypothesis: translations by one or two systems, as in `evaluate`. source, reference: shown beside the
    translations. sentences: number of sentences; None: all. seed: determines the sentences and the order.

    Raises ConfigError for another number of systems, another suffix, and existing files; DataError for unequal numbers
    of lines.

    >>> from dragoman import write_sheet
    >>> key = write_sheet("sheet.csv", {"mine": ["der Hund"]}, source=["the dog"])
    >>> print(open("sheet.csv", encoding="utf-8-sig").read())
    id,source,translation,score
    1,the dog,der Hund,
    <BLANKLINE>
    """
    path, named = Path(out), name_texts(hypothesis, "system")
    if len(named) not in (1, 2):
        raise ConfigError(f"a sheet has the translations of one or two systems, not of {len(named)}: --hypothesis FILE")
    if path.suffix not in (".csv", ".html"):
        raise ConfigError(f"{path}: a sheet is a .csv or an .html file")
    check_new_files({"--out": path, "--out (its key)": key_path(path)})
    beside = [(name, text) for name, text in (("source", source), ("reference", reference)) if text is not None]
    texts = read_parallel(*beside, *named)
    shown, outputs = texts[: len(beside)], texts[len(beside) :]
    rows = [row for row in range(len(outputs[0])) if len(outputs) == 1 or outputs[0][row] != outputs[1][row]]
    if not rows:
        raise DataError("the translations of both systems are equal, so there is nothing to judge")
    random = Random(seed)
    random.shuffle(rows)
    rows = rows[:sentences]
    swapped = tuple(len(outputs) == 2 and random.random() < 0.5 for _ in rows)
    key = SheetKey(tuple(name for name, _ in named), tuple(row + 1 for row in rows), swapped)
    translations = ["translation"] if len(outputs) == 1 else ["A", "B"]
    header = ["id", *(name for name, _ in beside), *translations, key.column]
    table = [
        [str(number), *(text[row] for text in shown), *(text[row] for text in outputs[:: -1 if turned else 1]), ""]
        for number, (row, turned) in enumerate(zip(rows, swapped, strict=True), 1)
    ]
    atomic_write(path, _page(header, table) if path.suffix == ".html" else "\ufeff" + _csv([header, *table]))
    key.write(key_path(path))
    info(f"{path}: {len(rows):,} sentences to judge. Do not show the judges {key_path(path)}, which names the systems")
    return key


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _page(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a page on which each row is judged, and which saves the judgements as CSV.

    The browser keeps unfinished judgements under a name that follows from the texts.
    """
    template = (Path(__file__).parent / "judgement_sheet.html").read_text(encoding="utf-8")
    column = header[-1]
    values = {
        "task": _TASKS[column],
        "keys": _KEYS[column],
        "count": str(len(rows)),
        "id": sha256(_csv([header, *rows]).encode()).hexdigest()[:16],
        "column": column,
        "items": "\n".join(_item(header, row, len(rows)) for row in rows),
    }
    return re.sub("|".join(f"{{{name}}}" for name in values), lambda match: values[match[0][1:-1]], template)


def _item(header: Sequence[str], row: Sequence[str], count: int) -> str:
    """Return the texts of a sentence, and the controls that judge it."""
    number, column = row[0], header[-1]
    texts = "".join(
        f'<div class="{_CLASSES.get(name, "")}"><dt>{name[:1].upper()}{name[1:]}</dt>'
        f'<dd dir="auto">{html.escape(text)}</dd></div>'
        for name, text in zip(header[1:-1], row[1:-1], strict=True)
    )
    return f'<li data-id="{number}"><h2>{number} of {count}</h2><dl>{texts}</dl>{_controls(column, number)}</li>'


def _controls(column: str, number: str) -> str:
    if column == SCORE:
        label = f"Score of sentence {number}, 0 to 100"
        field = f'<input type="number" min="0" max="100" step="any" name="{number}" aria-label="{label}">'
        return f"<label>Score {field} of 100</label>"
    names = {"A": "A is better", "=": "Equal", "B": "B is better"}
    choices = (
        f'<label><input type="radio" name="{number}" value="{value}"> {name}</label>' for value, name in names.items()
    )
    return f"<fieldset><legend>Sentence {number}: which is better?</legend>{''.join(choices)}</fieldset>"


_TASKS = {
    SCORE: "How well does the translation express the meaning of the text, in good language? 0: not at all, "
    "100: fully.",
    BETTER: "Which translation expresses the meaning of the text better, in good language?",
}
_KEYS = {
    SCORE: "Type a number.",
    BETTER: "<kbd>A</kbd> or <kbd>←</kbd>, <kbd>B</kbd> or <kbd>→</kbd>, <kbd>=</kbd> or <kbd>0</kbd> (equal) choose "
    "and go on, <kbd>Delete</kbd> takes a choice back.",
}
_CLASSES = {"translation": "translation", "A": "translation half", "B": "translation half"}
