"""`Alignments`: the links of several aligners over each other, beside annotated links, with their error rates."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.canvas import colour_map
from dragoman.figures.confusion import Confusion
from dragoman.figures.figure import Figure
from dragoman.figures.style import COLOURS, GREYS, GRID, INK
from dragoman.figures.token_grid import TokenGrid
from dragoman.metrics.alignment_error_rate import (
    ALIGNMENT_METRICS,
    AlignmentMetric,
    GoldLinks,
    Link,
    alignment_metric,
    count_links,
)

if TYPE_CHECKING:
    import matplotlib.figure

GOLD = "gold"
"""The name of the annotated links among those of aligners."""

_SLIDE = "deck 000, history: from rules to one network"
_WEIGHTS = (
    " The weight of a link is the attention, the fraction of gradient × input of the target word, or the posterior "
    "probability of a word aligner, the mean of both directions."
)
_ATTENTION_LIMITS = " A model attends to what helps to predict a word, which need not be the word that it translates."
_OUTCOMES = ("sure, found", "possible, found", "wrong", "sure, missed")

_SHAPES = ("o", "s", "D", "^", "v", "P")
"""Shapes of marks, so that aligners can be distinguished without colours."""
_POSSIBLE, _SURE = 0.35, 0.8
"""Shades of the annotated links."""
_GOLD = "grey cells: annotated links, light if only possible"
_LEGEND_LINE = 0.24
"""Height of a line of the legend in inches."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignments(Figure):
    """Word alignments of one sentence pair.

    source, target: the words. aligners: the links (source word, target word), from 0, by the name of the aligner, such
    as "attention" or "HMM". gold: the annotated links, or None. weights: (source words, target words), the weights of
    all possible links, from 0 to 1, of aligners that have them. hidden: the aligners whose links are not drawn, and
    `gold` for the annotated ones. Hidden aligners keep their marks and colours, and have error rates.
    """

    kind: ClassVar[str] = "alignments"

    source: tuple[str, ...]
    target: tuple[str, ...]
    aligners: Mapping[str, Collection[Link]]
    gold: GoldLinks | None = None
    weights: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    hidden: Collection[str] = ()

    @cached_property
    def metrics(self) -> dict[str, dict[AlignmentMetric, float]]:
        """All metrics of each aligner in percent, such as `aer`; empty without annotated links."""
        if self.gold is None:
            return {}
        counts = {
            name: np.array(count_links(self.gold, set(links)), np.float64) for name, links in self.aligners.items()
        }
        return {
            name: {key: float(alignment_metric(each, key)) for key in ALIGNMENT_METRICS}
            for name, each in counts.items()
        }

    @property
    def error_rates(self) -> dict[str, float]:
        """The alignment error rate of each aligner in percent; empty without annotated links."""
        return {name: each["aer"] for name, each in self.metrics.items()}

    def details(self) -> dict[str, Any]:
        """Return the words, and the names and metrics of the aligners, whose arrays are `links-0` and so on.

        `weights` is the name of the array of weights, or null.
        """
        unknown = dict.fromkeys(ALIGNMENT_METRICS)
        return {
            "source": list(self.source),
            "target": list(self.target),
            "aligners": [
                {
                    "name": name,
                    "hidden": name in self.hidden,
                    **self.metrics.get(name, unknown),
                    "array": f"links-{number}",
                    "weights": f"weights-{number}" if name in self.weights else None,
                }
                for number, name in enumerate(self.aligners)
            ],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the links (N, 2) int32 of each aligner as `links-0` and so on, and its weights as `weights-0`.

        The annotated links are `sure` and `possible`, which contains the sure ones.
        """
        annotated = {} if self.gold is None else {"sure": self.gold.sure, "possible": self.gold.possible}
        named: dict[str, Collection[Link]] = {f"links-{n}": each for n, each in enumerate(self.aligners.values())}
        links = {name: np.array(sorted(each), np.int32).reshape(-1, 2) for name, each in {**named, **annotated}.items()}
        weights = {
            f"weights-{number}": np.ascontiguousarray(self.weights[name], np.float64)
            for number, name in enumerate(self.aligners)
            if name in self.weights
        }
        return {**links, **weights}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per link that is drawn; its weight is empty if it has none."""
        yield "aligner", "source", "target", "source word", "target word", "weight"
        for name, links in self.aligners.items():
            weights = self.weights.get(name)
            for i, j in () if name in self.hidden else sorted(links):
                yield name, i, j, self.source[i], self.target[j], "" if weights is None else float(weights[i, j])
        if self.gold is not None and GOLD not in self.hidden:
            for name, links in (("gold, sure", self.gold.sure), ("gold, possible", self.gold.possible)):
                for i, j in sorted(links):
                    yield name, i, j, self.source[i], self.target[j], ""

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw a row per source word and a column per target word, with a mark per link; annotated cells are grey.

        The marks of later aligners are smaller, so that marks in the same cell remain visible.
        """
        gold, rates, count = None if GOLD in self.hidden else self.gold, self.error_rates, len(self.aligners)
        shown = [
            (number, f"{name}, AER {rates[name]:.1f}%" if name in rates else name, links)
            for number, (name, links) in enumerate(self.aligners.items())
            if name not in self.hidden
        ]
        lines = len(shown) + (gold is not None)
        grid = TokenGrid.with_labels(1, 1, self.source, self.target, below=_LEGEND_LINE * lines + 0.3)
        figure, axes = grid.begin(self.title)
        shades = np.zeros((len(self.source), len(self.target)))
        if gold is not None:
            for shade, annotated in ((_POSSIBLE, gold.possible), (_SURE, gold.sure)):
                for i, j in annotated:
                    shades[i, j] = shade
        grid.panel(axes, 0, 0, "", shades, cmap=colour_map(GREYS), vmin=0, vmax=1)
        left, top = grid.corner
        right, bottom = left + grid.width, top + grid.height
        horizontal = axes.hlines(np.linspace(top, bottom, len(self.source) + 1)[1:-1], left, right)
        vertical = axes.vlines(np.linspace(left, right, len(self.target) + 1)[1:-1], top, bottom)
        for rulings in (horizontal, vertical):
            rulings.set(color=GRID, linewidth=0.6)
        legend = grid.size[1] - _LEGEND_LINE * lines - 0.1
        for line, (number, label, links) in enumerate(shown):
            size = 0.82 * (1 - number / (count + 1)) * min(grid.cell_size)
            style: dict[str, Any] = {
                "marker": _SHAPES[number % len(_SHAPES)],
                "markersize": 72 * size,
                "markerfacecolor": "none" if number < count - 1 else COLOURS[number % len(COLOURS)],
                "markeredgecolor": COLOURS[number % len(COLOURS)],
                "markeredgewidth": min(1.6, 12 * size),
                "linestyle": "",
            }
            positions = np.array(sorted(links), np.float64).reshape(-1, 2) + 0.5
            width, height = grid.cell_size
            axes.plot(left + positions[:, 1] * width, top + positions[:, 0] * height, **style)
            middle = legend + _LEGEND_LINE * (line + 0.5)
            axes.plot([0.4], [middle], **{**style, "markersize": 8.0, "markeredgewidth": 1.6})
            axes.text(0.6, middle, label, fontsize=9, color=INK, va="center", parse_math=False)
        if gold is not None:
            middle = legend + _LEGEND_LINE * (len(shown) + 0.5)
            axes.text(0.25, middle, _GOLD, fontsize=9, color=INK, va="center")
        grid.end(axes)
        return figure


def alignment_figure(
    source: Sequence[str],
    target: Sequence[str],
    aligners: Mapping[str, Collection[Link]],
    *,
    gold: GoldLinks | None = None,
    weights: Mapping[str, NDArray[np.float64]] | None = None,
    hidden: Collection[str] = (),
) -> Alignments:
    """Return the figure of the alignments of a sentence pair; the arguments are those of `Alignments`."""
    grey = "" if gold is None else " Grey cells are annotated links; they are paler if the links are only possible."
    return Alignments(
        title="Word alignment",
        caption=f"Each mark links a source word (row) to a target word (column).{grey}{_WEIGHTS if weights else ''}",
        slide=_SLIDE,
        limits=f"The error rate of a single sentence varies widely; compare aligners on a test set."
        f"{_ATTENTION_LIMITS if weights else ''}",
        source=tuple(source),
        target=tuple(target),
        aligners=aligners,
        gold=gold,
        weights=weights or {},
        hidden=hidden,
    )


def link_confusion(
    aligners: Mapping[str, Sequence[Collection[Link]]], gold: Sequence[GoldLinks], title: str = "Links by outcome"
) -> Confusion:
    """Return the numbers of links of each aligner that are right, possible and wrong, and of sure links it missed.

    aligners: the links of all sentence pairs by the name of the aligner.
    """
    counts = [
        np.array([_outcomes(each, set(links)) for each, links in zip(gold, alignments, strict=True)]).sum(0)
        for alignments in aligners.values()
    ]
    return Confusion(
        title=title,
        caption="The links of each aligner (row) by their agreement with the annotation (column). The colour is the "
        "fraction of the row.",
        slide=_SLIDE,
        rows=tuple(aligners),
        columns=_OUTCOMES,
        counts=np.array(counts, np.int64),
        axes=("aligner", "link"),
    )


def _outcomes(gold: GoldLinks, links: set[Link]) -> tuple[int, int, int, int]:
    sure, possible, count, all_sure = count_links(gold, links)
    return sure, possible - sure, count - possible, all_sure - sure
