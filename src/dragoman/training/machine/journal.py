"""`Journal`: what a run decided by the clock or by measuring, written down so that a resumed run decides the same."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError


class Journal:
    """An append-only journal, synced to disk before a decision takes effect.

    A run that is killed and resumed from an earlier step meets its own decisions again and follows them, so it goes on
    as if it had never stopped. Values must survive JSON unchanged. Raises ModelError for a journal that was edited.

    owned: False for other ranks than the first, which decide the same and write nothing.
    """

    def __init__(self, path: Path, owned: bool = True) -> None:
        self.path, self.owned = path, owned
        self._made: dict[tuple[str, int], Any] = {}
        if path.exists():
            intact = 0
            with path.open("rb") as journal:
                for line in journal:
                    # A kill in the middle of a write leaves a last line without its end: it took no effect.
                    if not line.endswith(b"\n"):
                        break
                    try:
                        entry = json.loads(line)
                        self._made[entry["name"], entry["step"]] = entry["value"]
                    except (ValueError, KeyError, TypeError):
                        raise ModelError(
                            f"{path} is damaged after byte {intact}; resuming would not repeat what the run decided. "
                            "Train anew in another --out"
                        ) from None
                    intact += len(line)
            if owned and intact < path.stat().st_size:
                os.truncate(path, intact)

    def make(self, name: str, step: int, decide: Callable[[], Any]) -> Any:
        """The value decided earlier for `name` at `step`, or `decide()`, written down. None is not written."""
        key = name, step
        if key not in self._made:
            value = decide()
            if value is None:
                return None
            self.record(name, step, value)
        return self._made[key]

    def record(self, name: str, step: int, value: Any) -> None:
        """Write down a decision, over an earlier one of the same name and step."""
        self._made[name, step] = value
        if not self.owned:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"name": name, "step": step, "value": value}) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def forget(self) -> None:
        """Drop everything: the settings that the decisions were made for have changed."""
        self._made.clear()
        if self.owned:
            self.path.unlink(missing_ok=True)

    def made(self, name: str, step: int) -> Any:
        """What was decided for `name` at `step`, or None."""
        return self._made.get((name, step))
