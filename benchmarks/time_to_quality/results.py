"""Results: one JSON line per run, from this machine or others, and their evaluation."""

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
"""name, title, fitted: of the contender; machine, threads, seed, minutes (the limit), facts of the program; updates,
tokens, seconds, cpu_seconds, own_seconds, sittings: as `ledger.Mark` has them; points: minutes, updates, bleu; its
signature."""

THRESHOLDS = (30.0, 35.0, 38.0)


def read(paths: Iterable[Path]) -> list[Line]:
    """Read the results of several files; the later line of a run counts. Missing files are ignored."""
    found: dict[str, Line] = {}
    for path in paths:
        for text in path.read_text("utf-8").splitlines() if path.exists() else []:
            line = json.loads(text)
            found[key(line)] = line
    return list(found.values())


def add(line: Line, path: Path) -> None:
    """Append a result to a file, unless the file contains it."""
    if line not in read([path]):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def key(line: Line) -> str:
    """Return the key that identifies a run; it includes the limit only if the learning rate is fitted to it."""
    limit = line["minutes"] if line["fitted"] else None
    return json.dumps([line["name"], line["machine"], line["threads"], line["seed"], limit], sort_keys=True)


def minutes_to(points: Sequence[dict[str, Any]], threshold: float) -> float | None:
    """Return the minutes of updates until a validation BLEU, interpolated linearly between two points.

    None if no point reaches it. If the first point does, its minutes, because the time before is unknown.
    """
    before = None
    for point in sorted(points, key=lambda point: point["minutes"]):
        if point["bleu"] >= threshold:
            if before is None:
                return float(point["minutes"])
            share = (threshold - before["bleu"]) / (point["bleu"] - before["bleu"])
            return float(before["minutes"] + share * (point["minutes"] - before["minutes"]))
        before = point
    return None


def best(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the point with the highest score; the first of equals."""
    return max(points, key=lambda point: (point["bleu"], -point["minutes"]))


def mean_minutes(lines: Sequence[Line], threshold: float) -> float | None:
    """Return the mean minutes over the seeds of a program; None if one of them did not reach the threshold."""
    found = [minutes_to(line["points"], threshold) for line in lines]
    reached = [minutes for minutes in found if minutes is not None]
    return statistics.mean(reached) if reached and len(reached) == len(found) else None


def groups(lines: Iterable[Line]) -> list[tuple[dict[str, Any], list[list[Line]]]]:
    """Return machines with their threads, and for each the programs (and limits) with their seeds."""
    machines: dict[str, tuple[dict[str, Any], dict[str, list[Line]]]] = {}
    for line in lines:
        where = {**line["machine"], "threads": line["threads"]}
        _, programs = machines.setdefault(json.dumps(where, sort_keys=True), (where, {}))
        programs.setdefault(json.dumps([line["name"], line["fitted"] and line["minutes"]]), []).append(line)
    return [(where, list(programs.values())) for where, programs in machines.values()]
