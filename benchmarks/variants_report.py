"""The table and the picture of `variants.py`, made from its results."""

import csv
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from dragoman.evaluate.bootstrap import paired_bootstrap

COLUMNS = (
    "group",
    "factor",
    "variant",
    "BLEU",
    "95% interval",
    "against its centre",
    "p",
    "parameters",
    "training target tokens/s",
    "decoding sentences/s",
    "training minutes",
    "remark",
)


def write_report(out: Path, references: list[str]) -> None:
    """Write table.md, table.csv and picture.png beside results.jsonl."""
    path = out / "results.jsonl"
    if not path.is_file():
        return
    # the last line of a run counts: one that failed is tried again
    lines = list({line["id"]: line for line in map(json.loads, path.read_text("utf-8").splitlines())}.values())
    measured = [_measured(line, lines, out, references) for line in lines]
    rows = [_row(line) for line in measured]
    with (out / "table.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    table = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join("---" for _ in COLUMNS) + " |"]
    table += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    (out / "table.md").write_text("\n".join(table) + "\n", "utf-8")
    _draw([line for line in measured if line["status"] == "done"], out / "picture.png")


def _measured(line: dict[str, Any], lines: list[dict[str, Any]], out: Path, references: list[str]) -> dict[str, Any]:
    """The line with its BLEU, kept in a file of its own so that resampling is done once a run."""
    if line["status"] != "done":
        return line
    centre = next(
        (each for each in lines if each["factor"] == "centre" and each["group"] == line["group"]),
        next((each for each in lines if not each["levels"]), line),
    )
    centre = centre if centre["status"] == "done" and centre["budget"] == line["budget"] else line
    stored = out / "translations" / f"{line['id']}.{centre['id']}.json"
    if not stored.is_file():
        own, other = (
            (out / "translations" / f"{key}.txt").read_text("utf-8").split("\n")[:-1]
            for key in (centre["id"], line["id"])
        )
        compared = paired_bootstrap(own, other, references)
        interval, change = compared.second_interval, compared.difference_interval
        found = {
            "bleu": compared.second.value,
            "low": interval.low,
            "high": interval.high,
            "difference": compared.difference,
            "difference_low": change.low,
            "difference_high": change.high,
            "p": compared.p_value if centre["id"] != line["id"] else None,
            "signature": compared.second.signature,
        }
        stored.write_text(json.dumps(found), "utf-8")
    return {**line, **json.loads(stored.read_text("utf-8"))}


def _row(line: dict[str, Any]) -> list[str]:
    head = [line["group"], line["factor"], line["varied"]]
    if line["status"] != "done":
        return [*head, *[""] * 8, f"{line['status']}: {line['message']}"]
    against = ["", ""]
    if line["p"] is not None:
        change = f"{line['difference']:+.1f} [{line['difference_low']:+.1f}, {line['difference_high']:+.1f}]"
        against = [change, f"{line['p']:.3f}"]
    return [
        *head,
        f"{line['bleu']:.1f}",
        f"{line['low']:.1f}–{line['high']:.1f}",
        *against,
        f"{line['parameters']:,}",
        f"{line['training_tokens_per_second']:,.0f}",
        f"{line['sentences_per_second']:,.1f}",
        f"{line['training_seconds'] / 60:.1f}",
        "",
    ]


def _draw(lines: list[dict[str, Any]], path: Path) -> None:
    """BLEU with its interval, a line a variant, grouped by factor; the centre as a dashed line."""
    lines = [line for line in lines if line["group"] != "pairs"] or lines
    if not lines:
        return
    order = list(dict.fromkeys((line["group"], line["factor"]) for line in lines))
    lines = sorted(lines, key=lambda line: order.index((line["group"], line["factor"])))
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.24 * len(lines)), layout="constrained")
    colours = dict(zip(order, (pyplot.get_cmap("tab20")(place % 20) for place in range(len(order))), strict=True))
    for place, line in enumerate(lines):
        colour = colours[line["group"], line["factor"]]
        axes.plot([line["low"], line["high"]], [place, place], color=colour, linewidth=3, alpha=0.5)
        axes.plot([line["bleu"]], [place], "o", color=colour, markersize=5)
    for group in dict.fromkeys(line["group"] for line in lines):
        places = [place for place, line in enumerate(lines) if line["group"] == group]
        centre = [line for line in lines if line["group"] == group and line["factor"] == "centre"]
        if centre:
            axes.plot([centre[0]["bleu"]] * 2, [places[0] - 0.5, places[-1] + 0.5], "--", color="grey", linewidth=1)
    labels = [": ".join(filter(None, (line["factor"], line["varied"][:70]))) for line in lines]
    axes.set_yticks(range(len(lines)), labels, fontsize=8)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_xlabel("BLEU on the test set, with the 95% bootstrap interval (dashed: the centre)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
