"""`Journal`: a record of decisions that depend on the clock or on measurements, so that a resumed run repeats them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError


class Journal:
    """An append-only journal. It is synced to disk before a decision takes effect.

    A run that is killed and resumed from an earlier step reads its decisions from the journal, so that it continues as
    if it had never stopped. JSON must represent the values exactly. Raises ModelError for a damaged journal.

    owned: whether this process writes the journal. Only the first rank does; the other ranks make the same decisions.
    """

    def __init__(self, path: Path, owned: bool = True) -> None:
        self.path, self.owned = path, owned
        self._decisions: dict[tuple[str, int], Any] = {}
        if path.exists():
            intact = 0
            with path.open("rb") as journal:
                for line in journal:
                    # A kill during a write leaves an incomplete last line, whose decision has not taken effect.
                    if not line.endswith(b"\n"):
                        break
                    try:
                        entry = json.loads(line)
                        self._decisions[entry["name"], entry["step"]] = entry["value"]
                    except (ValueError, KeyError, TypeError):
                        raise ModelError(
                            f"{path} is damaged after byte {intact}; a resumed run could not repeat its decisions. "
                            "Start a new run in another --out"
                        ) from None
                    intact += len(line)
            if owned and intact < path.stat().st_size:
                os.truncate(path, intact)

    def decide(self, name: str, step: int, compute: Callable[[], Any]) -> Any:
        """Return the recorded value of `name` at `step`.

        If there is none, return the result of `compute`, and record it unless it is None.
        """
        key = name, step
        if key not in self._decisions:
            value = compute()
            if value is None:
                return None
            self.record(name, step, value)
        return self._decisions[key]

    def record(self, name: str, step: int, value: Any) -> None:
        """Record a decision. It replaces an earlier decision with the same name and step."""
        self._decisions[name, step] = value
        if not self.owned:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps({"name": name, "step": step, "value": value}) + "\n")
            journal.flush()
            os.fsync(journal.fileno())

    def clear(self) -> None:
        """Delete all decisions, because the settings they depend on have changed."""
        self._decisions.clear()
        if self.owned:
            self.path.unlink(missing_ok=True)

    def get(self, name: str, step: int) -> Any:
        """Return the decision recorded for `name` at `step`, or None."""
        return self._decisions.get((name, step))
