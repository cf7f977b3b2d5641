"""The table: minutes of training to each threshold, one row per program."""

import statistics
from collections.abc import Sequence
from typing import Any

from results import THRESHOLDS, Line, best, groups, mean_minutes

REFERENCE = "dragoman"
"""The program to which the others are compared."""

NONE = "–"


def table(lines: Sequence[Line]) -> str:
    """Return the tables in Markdown: one per machine and number of threads."""
    return "\n\n".join(_table(where, programs) for where, programs in groups(lines)) or "there are no results yet"


def _table(where: dict[str, Any], programs: list[list[Line]]) -> str:
    instructions = ", ".join(where["instructions"]) or "unknown vector instructions"
    head = f"{where['processor']}, {where['cores']} cores ({instructions}), {where['threads']} threads"
    columns = [
        "program", *(f"minutes to {threshold:g}" for threshold in THRESHOLDS), "best BLEU (at)", "limit", "updates",
        "target tokens/s", "own validations", "cores busy", "million parameters", "precision", "seeds",
    ]  # fmt: skip
    reference = next((lines for lines in programs if lines[0]["name"] == REFERENCE), None)
    rows = [_row(lines, reference) for lines in programs]
    split = ["---", *["---:"] * (len(columns) - 1)]
    return f"{head}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, split, *rows))


def _row(lines: list[Line], reference: list[Line] | None) -> list[str]:
    tops = [best(line["points"]) for line in lines]
    own = sum(line["own_seconds"] for line in lines)
    seconds = sum(line["seconds"] for line in lines)
    facts = lines[-1]["facts"]
    return [
        lines[0]["title"],
        *(_minutes(lines, reference, threshold) for threshold in THRESHOLDS),
        f"{statistics.mean(top['bleu'] for top in tops):.1f} ({statistics.mean(top['minutes'] for top in tops):.0f})",
        f"{lines[0]['minutes']:g}",
        f"{statistics.mean(line['updates'] for line in lines):,.0f}",
        f"{sum(line['tokens'] for line in lines) / seconds:,.0f}",
        f"{own / (own + seconds):.1%}" if own else NONE,
        f"{sum(line['cpu_seconds'] for line in lines) / seconds:.1f}",
        f"{facts['parameters'] / 1e6:.1f}" if "parameters" in facts else NONE,
        facts.get("precision", NONE),
        f"{len(lines)}",
    ]


def _minutes(lines: list[Line], reference: list[Line] | None, threshold: float) -> str:
    """Return the minutes, and their ratio to the reference's if both reached the threshold."""
    own = mean_minutes(lines, threshold)
    if own is None:
        return NONE
    measure = None if reference is None or reference is lines else mean_minutes(reference, threshold)
    return f"{own:.1f}" + (f" ({own / measure:.1f}×)" if measure else "")
