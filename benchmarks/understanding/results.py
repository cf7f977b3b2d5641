"""The results of the benchmark: one line per seed, and their table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rows import ROWS, Test

Line = Mapping[str, Any]


def read(path: Path) -> list[Line]:
    """Return the results of a file, which may be missing."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def add(line: Line, path: Path) -> None:
    """Append a result to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def table(lines: Sequence[Line]) -> str:
    """Return a Markdown table with the mean and the sample standard deviation over the seeds of each row."""
    rows = ["| data | wanted | mean ± sd | seeds | CPU minutes per seed |", "| --- | --- | --- | --- | --- |"]
    for row in ROWS:
        own = [line for line in lines if line["row"] == row.name]
        if own and row.test is not None:
            minutes = fmean(line["cpu_minutes"] for line in own)
            rows.append(f"| {row.title} | {row.wanted} | {_values(row.test, own)} | {len(own)} | {minutes:.1f} |")
    return "\n".join(rows)


def _values(test: Test, lines: Sequence[Line]) -> str:
    """Return the mean and the deviation of each metric. With one seed, return the interval of the test set, if any."""
    texts = []
    for key, digits in test.measures.items():
        entries = [line["measures"][key] for line in lines]
        values = [entry["value"] for entry in entries]
        text = f"{fmean(values):.{digits}f}"
        if len(values) > 1:
            text += f" ± {stdev(values):.{digits}f}"
        elif interval := entries[0].get("interval"):
            text += f" ({interval['low']:.{digits}f}–{interval['high']:.{digits}f})"
        texts.append(text)
    return " / ".join(texts)
