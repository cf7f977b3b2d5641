"""`Comparison`: two translations of a sentence, with their differences, their scores and their links to the source."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.figure import Figure
from dragoman.metrics.alignment_error_rate import Link
from dragoman.text.differences import Difference

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Figure):
    """Two translations of a sentence.

    names: of the two models. source, translations: the words. links: the links (source word, target word) of each
    translation, from 0. differences: the words that the translations do not share. scores: two values per measure, one
    for each model.
    """

    kind: ClassVar[str] = "comparison"

    names: tuple[str, str]
    source: tuple[str, ...]
    translations: tuple[tuple[str, ...], tuple[str, ...]]
    links: tuple[Collection[Link], Collection[Link]]
    differences: tuple[Difference, ...]
    scores: Mapping[str, tuple[float, float]]

    @property
    def different(self) -> tuple[frozenset[int], frozenset[int]]:
        """The words of each translation that the other one does not have at this point."""
        first = frozenset(word for each in self.differences for word in range(each.start, each.end))
        second = frozenset(word for each in self.differences for word in range(each.other_start, each.other_end))
        return first, second

    def details(self) -> dict[str, Any]:
        """Return the names, the words, and the names of the scores; the links are `links-0` and `links-1`."""
        return {
            "names": list(self.names),
            "source": list(self.source),
            "translations": [list(each) for each in self.translations],
            "measures": list(self.scores),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the links (N, 2), the differences (D, 4) as in `Difference`, and the scores (measures, 2)."""
        links = [np.array(sorted(each), np.int32).reshape(-1, 2) for each in self.links]
        return {
            "links-0": links[0],
            "links-1": links[1],
            "differences": np.array(self.differences, np.int32).reshape(-1, 4),
            "scores": np.array(list(self.scores.values()), np.float64).reshape(-1, 2),
        }

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per word of the translations, with its position from 1 and the linked source words."""
        yield "model", "position", "word", "differs", "source words"
        for name, words, links, different in zip(
            self.names, self.translations, self.links, self.different, strict=True
        ):
            for position, word in enumerate(words):
                linked = " ".join(self.source[i] for i, j in sorted(links) if j == position)
                yield name, position + 1, word, "yes" if position in different else "no", linked

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the source between the translations, with lines between linked words and boxes around differences."""
        from dragoman.figures.pictures.comparison import draw_comparison

        columns = (self.translations[0], self.source, self.translations[1])
        return draw_comparison(self.title, self.names, columns, self.links, self.different, self.scores)
