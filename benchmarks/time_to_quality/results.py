"""Results: a JSON line a run, from this machine or others, and what can be read from them."""

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
    """Of several files; of two lines of the same run the later one. A file that is not there has none."""
    found: dict[str, Line] = {}
    for path in paths:
        for text in path.read_text("utf-8").splitlines() if path.exists() else []:
            line = json.loads(text)
            found[key(line)] = line
    return list(found.values())


def add(line: Line, path: Path) -> None:
    """To a file, unless it has this result."""
    if line not in read([path]):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def key(line: Line) -> str:
    """What tells one run from another: the limit only where the learning rate is fitted to it."""
    limit = line["minutes"] if line["fitted"] else None
    return json.dumps([line["name"], line["machine"], line["threads"], line["seed"], limit], sort_keys=True)


def minutes_to(points: Sequence[dict[str, Any]], threshold: float) -> float | None:
    """Minutes of updates until a validation BLEU: where the straight line between the first point that has it and the
    point before crosses it. None where no point has it.

    If the first point of all has it, that one's minutes, since nothing is known of the time before.
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
    """The point of the highest score; the first of equals."""
    return max(points, key=lambda point: (point["bleu"], -point["minutes"]))


def mean_minutes(lines: Sequence[Line], threshold: float) -> float | None:
    """Over the seeds of a program; None where one of them did not get there."""
    found = [minutes_to(line["points"], threshold) for line in lines]
    reached = [minutes for minutes in found if minutes is not None]
    return statistics.mean(reached) if reached and len(reached) == len(found) else None


def groups(lines: Iterable[Line]) -> list[tuple[dict[str, Any], list[list[Line]]]]:
    """Machines with their threads, and of each the programs (and limits), each with its seeds."""
    machines: dict[str, tuple[dict[str, Any], dict[str, list[Line]]]] = {}
    for line in lines:
        where = {**line["machine"], "threads": line["threads"]}
        _, programs = machines.setdefault(json.dumps(where, sort_keys=True), (where, {}))
        programs.setdefault(json.dumps([line["name"], line["fitted"] and line["minutes"]]), []).append(line)
    return [(where, list(programs.values())) for where, programs in machines.values()]
