"""`RunLog`: the records of a run's `log.jsonl`, also while the run is writing them."""

import json
import os
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Record = dict[str, Any]


class RunLog:
    """The records of a log file in step order.

    If a step was logged twice because the run was resumed, the last record is used. Incomplete lines, such as the last
    line of a run that is being written, and lines that are not records are ignored.
    """

    def __init__(self, path: Path) -> None:
        """Read the log. Raises OSError if there is no such file."""
        self.path = path
        self._records: dict[tuple[float, bool], Record] = {}
        self._tail, self._offset, self._file = b"", 0, 0
        self.update()

    @property
    def records(self) -> list[Record]:
        """The records, in step order. A step may have a record of the training and one of the validation."""
        return [self._records[key] for key in sorted(self._records)]

    def update(self) -> bool:
        """Read what was appended since the last call; returns whether there are new records.

        A file that was replaced or shortened, as a resumed run does, is read from the start.
        """
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._file or status.st_size < self._offset:
                self._records, self._tail, self._offset, self._file = {}, b"", 0, status.st_ino
            file.seek(self._offset)
            added = file.read()
        if not added:
            return False
        self._offset += len(added)
        lines = (self._tail + added).split(b"\n")
        self._tail = lines[-1]
        found = [record for line in lines if (record := _parse(line)) is not None]
        for record in found:
            self._records[record["step"], any(key.startswith("valid_") for key in record)] = record
        return bool(found)


def series(records: Sequence[Record], key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the steps and the values of a field, without records that lack it or whose value is not finite."""
    points = [(each["step"], each[key]) for each in records if _is_number(each.get(key))]
    table = np.array(points, np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _parse(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and _is_number(record.get("step")) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value)
