"""`Ledger`: records a run's clock at its updates, so that a killed run continues with the right time."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mark:
    """The clock after a number of updates: target tokens so far, and seconds and CPU seconds of the updates only.

    own_seconds: of the program's own validations, which are not part of `seconds`. point: whether the curve has a point
    there, for which translations exist or will be made. sitting: number of processes so far.
    """

    updates: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    own_seconds: float = 0.0
    point: bool = False
    sitting: int = 0


class LedgerError(Exception):
    """The ledger does not contain a checkpoint, so its time is unknown."""


class Ledger:
    """In a run's folder: marks.jsonl with one `Mark` per line, and translations/ with one file per point.

    A mark is written to disk before its checkpoint, so that every checkpoint found later has its time here.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._translations = folder / "marks.jsonl", folder / "translations"
        self._translations.mkdir(parents=True, exist_ok=True)

    def marks(self) -> list[Mark]:
        """Return the marks by updates. The last mark of each number of updates counts, but a point remains a point."""
        found: dict[int, Mark] = {}
        for line in self._path.read_text("utf-8").splitlines() if self._path.exists() else []:
            try:
                mark = Mark(**json.loads(line))
            except ValueError:
                break  # the incomplete line of a killed process
            before = found.get(mark.updates)
            if before is not None and before.point and not mark.point:
                mark = Mark(**{**asdict(mark), "point": True})
            found[mark.updates] = mark
        return [found[updates] for updates in sorted(found)]

    def add(self, mark: Mark) -> None:
        """Append a mark; it is on disk when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(mark)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def go_back(self, updates: int) -> Mark:
        """Remove marks after the checkpoint of this many updates, which will be repeated; returns its mark.

        Raises LedgerError if there is none.
        """
        kept = [mark for mark in self.marks() if mark.updates <= updates]
        if updates > 0 and (not kept or kept[-1].updates != updates):
            raise LedgerError(f"{self._path} has no mark of update {updates}, at which the checkpoint is")
        _write(self._path, "".join(json.dumps(asdict(mark)) + "\n" for mark in kept))
        for path in self._translations.iterdir():
            if not path.stem.isdigit() or int(path.stem) > updates:
                path.unlink()
        return kept[-1] if kept and kept[-1].updates == updates else Mark()

    def translations(self, updates: int) -> Path:
        """Return the file of the translations after this many updates: one line per validation sentence."""
        return self._translations / f"{updates:08d}.txt"

    def write_translations(self, updates: int, lines: Sequence[str]) -> None:
        """Write the translations atomically. Line breaks inside a translation become spaces."""
        _write(self.translations(updates), "".join(" ".join(line.splitlines()) + "\n" for line in lines))


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
