"""The picture: validation BLEU against minutes of training, one panel per machine, one colour per program."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from results import THRESHOLDS, Line, groups

TICKS = [step * 10**power for power in range(-2, 4) for step in (1, 2, 5)]
"""Minutes."""


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw the picture, if there are results."""
    machines = groups(lines)
    if not machines:
        return
    names = list(dict.fromkeys(line["name"] for line in lines))
    figure, panels = pyplot.subplots(
        len(machines), 1, figsize=(9, 5.5 * len(machines)), squeeze=False, sharex=True, layout="constrained"
    )
    for (where, programs), axes in zip(machines, panels[:, 0], strict=True):
        for threshold in THRESHOLDS:
            axes.axhline(threshold, color="lightgrey", linewidth=0.8, linestyle="--")
            axes.annotate(f"{threshold:g}", (1, threshold), xycoords=("axes fraction", "data"), xytext=(4, -3),
                          textcoords="offset points", color="grey", fontsize=8)  # fmt: skip
        for runs in programs:
            for number, line in enumerate(runs):
                points = sorted(line["points"], key=lambda point: point["minutes"])
                axes.plot(
                    [point["minutes"] for point in points],
                    [point["bleu"] for point in points],
                    color=f"C{names.index(line['name'])}",
                    marker=".",
                    markersize=4,
                    linewidth=1.3,
                    label=f"{line['title']}, {line['minutes']:g} min" if number == 0 else None,
                )
        axes.set_xscale("log")
        first, last = _span(lines)
        axes.set_xlim(first / 1.2, last * 1.2)
        axes.set_xticks([each for each in TICKS if first / 1.2 <= each <= last * 1.2])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.set_ylabel("BLEU on val (greedy, cased, 13a)")
        axes.set_title(f"{where['processor']}, {where['threads']} threads", fontsize=9, loc="left")
    panels[-1, 0].set_xlabel("minutes of training updates")
    shown = {curve.get_label(): curve for axes in panels[:, 0] for curve in axes.get_legend_handles_labels()[0]}
    figure.legend(shown.values(), shown.keys(), fontsize=8, ncols=2, loc="outside lower center")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _span(lines: Sequence[Line]) -> tuple[float, float]:
    minutes = [float(point["minutes"]) for line in lines for point in line["points"]]
    return min(minutes), max(minutes)
