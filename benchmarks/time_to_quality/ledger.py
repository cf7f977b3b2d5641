"""`Ledger`: what a run's clock showed at which update, so that one that was killed goes on with the right time."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mark:
    """After so many updates: target tokens read so far, and seconds and CPU seconds of these updates alone.

    own_seconds: of the validations that the program makes by itself, which are no part of `seconds`. point: whether the
    curve has a point there, so that there are, or shall be, translations. sitting: how many processes it took, from 1.
    """

    updates: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    own_seconds: float = 0.0
    point: bool = False
    sitting: int = 0


class LedgerError(Exception):
    """A checkpoint that the ledger does not know of: its time is lost."""


class Ledger:
    """In a run's folder: marks.jsonl, one `Mark` a line, and translations/, a file a point.

    A mark is on disk before the checkpoint that it belongs to, so whatever checkpoint is found later has its time here.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._translations = folder / "marks.jsonl", folder / "translations"
        self._translations.mkdir(parents=True, exist_ok=True)

    def marks(self) -> list[Mark]:
        """By updates. Of several for the same updates the last counts, but a point stays one."""
        found: dict[int, Mark] = {}
        for line in self._path.read_text("utf-8").splitlines() if self._path.exists() else []:
            try:
                mark = Mark(**json.loads(line))
            except ValueError:
                break  # the half line of a killed process
            before = found.get(mark.updates)
            if before is not None and before.point and not mark.point:
                mark = Mark(**{**asdict(mark), "point": True})
            found[mark.updates] = mark
        return [found[updates] for updates in sorted(found)]

    def add(self, mark: Mark) -> None:
        """On disk when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(mark)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def go_back(self, updates: int) -> Mark:
        """Forget what is later than a checkpoint of so many updates, which will be made again; gives its mark.

        Raises LedgerError where there is none.
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
        """Where those of the point after so many updates are, or will be: a line a sentence of the validation set."""
        return self._translations / f"{updates:08d}.txt"

    def write_translations(self, updates: int, lines: Sequence[str]) -> None:
        """All of them, or nothing. A line break inside a translation becomes a blank."""
        _write(self.translations(updates), "".join(" ".join(line.splitlines()) + "\n" for line in lines))


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
