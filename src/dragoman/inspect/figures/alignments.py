"""`Alignments`: the links of several aligners over each other, beside annotated links, with their error rates."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.inspect.figures.confusion import Confusion
from dragoman.inspect.figures.figure import Figure
from dragoman.metrics.alignment_error_rate import GoldLinks, Link, count_links, measure

if TYPE_CHECKING:
    import matplotlib.figure

_SLIDE = "deck 000, history: from rules to one network"
_OUTCOMES = ("sure, found", "possible, found", "wrong", "sure, missed")


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignments(Figure):
    """Word alignments of one sentence pair.

    source, target: the words. aligners: the links (source word, target word), from 0, by the name of the aligner, such
    as "attention" or "HMM". gold: the annotated links, or None.
    """

    kind: ClassVar[str] = "alignments"

    source: tuple[str, ...]
    target: tuple[str, ...]
    aligners: Mapping[str, Collection[Link]]
    gold: GoldLinks | None = None

    @cached_property
    def error_rates(self) -> dict[str, float]:
        """The alignment error rate of each aligner in percent; empty without annotated links."""
        if self.gold is None:
            return {}
        return {
            name: float(measure(np.array(count_links(self.gold, set(links)), np.float64), "aer"))
            for name, links in self.aligners.items()
        }

    def details(self) -> dict[str, Any]:
        """Return the words, and the names and error rates of the aligners, whose arrays are `links-0` and so on."""
        rates = self.error_rates
        return {
            "source": list(self.source),
            "target": list(self.target),
            "aligners": [
                {"name": name, "aer": rates.get(name), "array": f"links-{number}"}
                for number, name in enumerate(self.aligners)
            ],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the links (N, 2) int32 of each aligner, and the annotated ones as `sure` and `possible`."""
        annotated = {} if self.gold is None else {"sure": self.gold.sure, "possible": self.gold.possible}
        named: dict[str, Collection[Link]] = {f"links-{n}": each for n, each in enumerate(self.aligners.values())}
        return {
            name: np.array(sorted(links), np.int32).reshape(-1, 2) for name, links in {**named, **annotated}.items()
        }

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per link of each aligner and of the annotation."""
        yield "aligner", "source", "target", "source word", "target word"
        annotated = {} if self.gold is None else {"gold, sure": self.gold.sure, "gold, possible": self.gold.possible}
        for name, links in {**self.aligners, **annotated}.items():
            for i, j in sorted(links):
                yield name, i, j, self.source[i], self.target[j]

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw a row per source word and a column per target word, with a mark per link; annotated cells are grey."""
        from dragoman.inspect.pictures.alignments import draw_alignments

        names = {
            f"{name}, AER {self.error_rates[name]:.1f}%" if name in self.error_rates else name: links
            for name, links in self.aligners.items()
        }
        return draw_alignments(self.title, (self.source, self.target), names, self.gold)


def alignment_figure(
    source: Sequence[str],
    target: Sequence[str],
    aligners: Mapping[str, Collection[Link]],
    gold: GoldLinks | None = None,
) -> Alignments:
    """Return the figure of the alignments of a sentence pair; the arguments are those of `Alignments`."""
    grey = "" if gold is None else " Dark grey cells are sure links of the annotation, light grey cells possible ones."
    return Alignments(
        title="Word alignment",
        caption=f"Each mark links a source word (row) to a target word (column).{grey}",
        slide=_SLIDE,
        limits="The error rate of a single sentence varies widely; compare aligners on a test set.",
        source=tuple(source),
        target=tuple(target),
        aligners=aligners,
        gold=gold,
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
        "share of the row.",
        slide=_SLIDE,
        rows=tuple(aligners),
        columns=_OUTCOMES,
        counts=np.array(counts, np.int64),
        axes=("aligner", "link"),
    )


def _outcomes(gold: GoldLinks, links: set[Link]) -> tuple[int, int, int, int]:
    sure, possible, count, all_sure = count_links(gold, links)
    return sure, possible - sure, count - possible, all_sure - sure
