"""The table and the picture of the finished systems."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runs import Line
from systems import CORPORA

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEADERS = {
    "bleu": ("BLEU", "lowercased tokenised BLEU"),
    "perplexity": ("perplexity per word", "unknown tokens"),
}
"""The headers of the two columns with results, for each metric."""


def table(lines: Sequence[Line]) -> str:
    """Return the results as one table per corpus in Markdown, with systems in the order of systems.py."""
    parts = []
    for name, rows in _by_corpus(lines).items():
        measure = rows[0]["measure"]
        headers = (
            "system",
            "source",
            *HEADERS[measure],
            "training, minutes",
            "training, CPU minutes",
            "evaluation, seconds",
        )
        parts += [f"**{CORPORA[name].title}**", "", f"| {' | '.join(headers)} |", "| --- " * len(headers) + "|"]
        for line in rows:
            second = f"{line['tokenised']:.2f}" if measure == "bleu" else f"{line['unknown']}"
            times = (line["training_minutes"], line["cpu_minutes"], line["evaluation_seconds"])
            cells = [
                line["title"],
                line["source"],
                f"{line['value']:.2f}",
                second,
                *(f"{value:.1f}" for value in times),
            ]
            parts.append(f"| {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts).rstrip()


def draw(lines: Sequence[Line], path: Path) -> None:
    """Draw one panel per corpus: the result of each system as a bar, labelled with its CPU minutes of training."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    corpora = _by_corpus(lines)
    heights = [len(rows) + 1 for rows in corpora.values()]
    figure, panels = pyplot.subplots(
        len(corpora),
        1,
        figsize=(9, 0.45 * sum(heights) + 0.8),
        squeeze=False,
        height_ratios=heights,
        layout="constrained",
    )
    for (name, rows), axes in zip(corpora.items(), panels[:, 0], strict=True):
        _draw_corpus(CORPORA[name].title, rows, axes)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_corpus(title: str, rows: Sequence[Line], axes: "Axes") -> None:
    bars = axes.barh([row["title"] for row in rows], [row["value"] for row in rows], color="C0", height=0.7)
    labels = [f"{row['value']:.1f}   ({row['cpu_minutes']:.1f} CPU minutes)" for row in rows]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.invert_yaxis()  # the oldest system is at the top
    axes.margins(x=0.25)
    axes.set_title(title, fontsize=10, loc="left")
    measure = rows[0]["measure"]
    axes.set_xlabel(
        "BLEU on the test set" if measure == "bleu" else "perplexity per word (lower is better)", fontsize=8
    )
    axes.spines[["top", "right"]].set_visible(False)


def _by_corpus(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Return the results by corpus, both in the order of systems.py, and the longest run of each system."""
    corpora = {}
    for corpus in CORPORA.values():
        rows = []
        for system in corpus.systems:
            own = [line for line in lines if (line["corpus"], line["system"]) == (corpus.name, system.name)]
            rows += sorted(own, key=lambda line: line["minutes"] or 0.0)[-1:]
        if rows:
            corpora[corpus.name] = rows
    return corpora
