"""The picture of the singles: a forest plot of BLEU with its bootstrap interval."""

from pathlib import Path

import matplotlib
from runs import Line

matplotlib.use("Agg")
from matplotlib import pyplot

ROW = 0.2
"""Inches per line."""


def draw(lines: list[Line], path: Path) -> None:
    """Draw one panel per group, one line per variant, the best of a factor first; the centre's interval is shaded."""
    groups = list(dict.fromkeys(line["group"] for line in lines))
    if not groups:
        return
    rows = {group: _rows([line for line in lines if line["group"] == group]) for group in groups}
    figure, panels = pyplot.subplots(
        len(groups),
        1,
        figsize=(9, 1.2 + sum(0.6 + ROW * len(rows[group]) for group in groups)),
        height_ratios=[3 + len(rows[group]) for group in groups],
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    for group, axes in zip(groups, panels[:, 0], strict=True):
        shown = rows[group]
        centre = next((line for line in shown if line["factor"] == "centre"), None)
        if centre is not None:
            axes.axvspan(centre["low"], centre["high"], color="grey", alpha=0.2, linewidth=0)
            axes.axvline(centre["bleu"], color="grey", linewidth=0.8)
        factors = list(dict.fromkeys(line["factor"] for line in shown))
        for place, line in enumerate(shown):
            colour = ("tab:blue", "tab:orange")[factors.index(line["factor"]) % 2]
            axes.plot([line["low"], line["high"]], [place, place], color=colour, linewidth=1.5)
            axes.plot([line["bleu"]], [place], "o", color=colour, markersize=3.5)
            if place and shown[place - 1]["factor"] != line["factor"]:
                axes.axhline(place - 0.5, color="lightgrey", linewidth=0.6)
        labels = [
            line["varied"] if line["factor"] in ("centre", "") else f"{line['factor']}: {line['varied']}"
            for line in shown
        ]
        axes.set_yticks(range(len(shown)), labels, fontsize=7)
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_title(group, fontsize=9, loc="left")
        axes.tick_params(axis="x", labelbottom=True, labelsize=7)
        axes.grid(axis="x", alpha=0.3)
    panels[-1, 0].set_xlabel("BLEU on the test set with its 95% bootstrap interval; grey: the centre", fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _rows(lines: list[Line]) -> list[Line]:
    order = list(dict.fromkeys(line["factor"] for line in lines))
    return sorted(lines, key=lambda line: (order.index(line["factor"]), -line["bleu"]))
