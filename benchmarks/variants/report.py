"""The table of all runs, its picture, and the analysis of pairs, made from results.jsonl."""

import csv
import json
from pathlib import Path

from interactions import pairs_report
from picture import draw
from runs import Line, Results

from dragoman.metrics.bootstrap import paired_bootstrap

COLUMNS = (
    "group",
    "factor",
    "variant",
    "BLEU",
    "95% interval",
    "against its centre",
    "p",
    "exact %",
    "perplexity",
    "parameters",
    "training target tokens/s (× centre)",
    "decoding sentences/s (× centre)",
    "CPU s",
    "remark",
)


def write_report(out: Path, references: list[str]) -> None:
    """Write table.md, table.csv, pairs.md and picture.png next to results.jsonl."""
    lines = list(Results(out / "results.jsonl").read().values())
    if not lines:
        return
    order = list(dict.fromkeys((line["group"], line["factor"]) for line in lines))
    lines.sort(key=lambda line: order.index((line["group"], line["factor"])))
    measured = [compared(line, centre_of(line, lines), out, references) for line in lines]
    rows = [row(line) for line in measured]
    with (out / "table.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *rows])
    done = [line for line in measured if line["status"] == "done"]
    (out / "table.md").write_text(markdown(COLUMNS, rows) + "\n" + conditions(done), "utf-8")
    refused = out / "refused.json"
    (out / "pairs.md").write_text(
        pairs_report(done, json.loads(refused.read_text("utf-8")) if refused.is_file() else {}), "utf-8"
    )
    draw([line for line in done if line["group"] != "pairs"], out / "picture.png")


def markdown(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in each) + " |" for each in rows]
    return "\n".join(lines) + "\n"


def conditions(done: list[Line]) -> str:
    """Describe the conditions under which the numbers of the table were measured."""
    seconds = sorted(line["cpu_seconds"] for line in done)
    text = [f"Signature of BLEU: `{each}`." for each in sorted({line["signature"] for line in done})]
    text += [f"Budget: `{each}`." for each in sorted({line["budget"] for line in done})]
    if seconds:
        middle = seconds[len(seconds) // 2]
        text.append(
            f"{len(done)} runs took {sum(seconds) / 3600:.2f} hours of CPU time, the median {middle:.0f} s, "
            f"the longest {seconds[-1]:.0f} s."
        )
    return "\n".join(text) + "\n"


def centre_of(line: Line, lines: list[Line]) -> Line:
    """Return the run to compare with: the centre of the group, else the Transformer's, else the run itself."""
    centres = [
        each
        for each in lines
        if each["factor"] == "centre" and each["status"] == "done" and each["budget"] == line["budget"]
    ]
    return next((each for each in centres if each["group"] == line["group"]), centres[0] if centres else line)


def compared(line: Line, centre: Line, out: Path, references: list[str]) -> Line:
    """Return the line with its intervals, which are cached in a separate file so that each run is resampled once."""
    if line["status"] != "done":
        return line
    stored = out / "translations" / f"{line['id']}.{centre['id']}.json"
    if not stored.is_file():
        own, other = (
            (out / "translations" / f"{each['id']}.txt").read_text("utf-8").split("\n")[:-1] for each in (line, centre)
        )
        result = paired_bootstrap(other, own, references)
        interval, change = result.second_interval, result.difference_interval
        found = {
            "low": interval.low,
            "high": interval.high,
            "difference": result.difference,
            "difference_low": change.low,
            "difference_high": change.high,
            "p": result.p_value if centre["id"] != line["id"] else None,
        }
        stored.write_text(json.dumps(found), "utf-8")
    return {**line, **json.loads(stored.read_text("utf-8"))}


def row(line: Line) -> list[str]:
    """The cells of a run."""
    head = [line["group"], line["factor"], line["varied"]]
    if line["status"] != "done":
        return [*head, *[""] * 10, f"{line['status']}: {line['message']}"]
    against = ["", ""]
    if line["p"] is not None:
        change = f"{line['difference']:+.1f} [{line['difference_low']:+.1f}, {line['difference_high']:+.1f}]"
        against = [change, f"{line['p']:.3f}"]
    speeds = ["", ""]
    if "decoding_ratio" in line:
        speeds = [
            f"{line['training_tokens_per_second']:,.0f} ({line['training_ratio']:.2f})",
            f"{line['sentences_per_second']:,.1f} ({line['decoding_ratio']:.2f})",
        ]
    return [
        *head,
        f"{line['bleu']:.1f}",
        f"{line['low']:.1f}–{line['high']:.1f}",
        *against,
        f"{100 * line['exact']:.1f}",
        f"{line['valid_perplexity']:.3g}",
        f"{line['parameters']:,}",
        *speeds,
        f"{line['cpu_seconds']:.0f}",
        "",
    ]
