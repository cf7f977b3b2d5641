"""`Figure`: the specification of a picture as data, from which matplotlib and the browser draw the same picture."""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import DataError
from dragoman.base.files import atomic_write
from dragoman.base.notebook import Picture
from dragoman.figures.canvas import PIXELS_PER_INCH, render, save

if TYPE_CHECKING:
    import matplotlib.figure

FORMATS = ("svg", "png", "json", "csv")
"""The formats of `Figure.save`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(ABC):
    """The data of a picture, independent of the program that draws it.

    title: heading of the picture. caption: one or two sentences that say what the picture shows. slide: the slides of
    the lecture decks that show such a picture, such as "deck 000, heads"; empty if there are none. limits: what the
    picture does not show; empty if there is nothing to warn about.
    """

    kind: ClassVar[str]
    """Name of the kind of figure, by which the browser selects its drawing code."""

    title: str
    caption: str
    slide: str = ""
    limits: str = ""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return the JSON values of this kind of figure, such as labels, without the numbers of `arrays`."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the numbers of the figure by name. Heat maps have one array per row of panels, such as a layer."""

    @abstractmethod
    def table(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of the figure as a table, starting with the names of its columns."""

    @abstractmethod
    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the figure with matplotlib, whose import takes a second."""

    def description(self) -> dict[str, Any]:
        """Return the figure as JSON values, with the shapes and types of the arrays instead of their numbers."""
        return {
            "kind": self.kind,
            "title": self.title,
            "caption": self.caption,
            "slide": self.slide,
            "limits": self.limits,
            **self.details(),
            "arrays": {
                name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in self.arrays().items()
            },
        }

    def values_at(self, name: str, index: Iterable[int] = ()) -> Any:
        """Return an exact number of an array, or the numbers of a part of it as nested lists.

        index: positions along the first axes, from 0; empty for the whole array. Numbers that are not finite are None.
        Raises DataError for an unknown array or a position outside of it.
        """
        arrays, position = self.arrays(), tuple(index)
        if name not in arrays:
            raise DataError(f"the figure has no array {name!r}: choose one of {', '.join(arrays)}")
        shape = arrays[name].shape
        if len(position) > len(shape) or any(
            not 0 <= each < size for each, size in zip(position, shape[: len(position)], strict=True)
        ):
            raise DataError(f"the position {list(position)} is outside of array {name!r} with the shape {list(shape)}")
        return _finite(arrays[name][position].tolist())

    def as_json(self) -> dict[str, Any]:
        """Return the description and, under `values`, all numbers of the arrays as nested lists."""
        return {**self.description(), "values": {name: self.values_at(name) for name in self.arrays()}}

    def write(self, *files: str | Path) -> None:
        """Write the figure to files, in the format of each suffix: SVG, JSON, CSV, or PNG for any other suffix.

        The same figure has the same bytes each time. Raises ResourceError if a file cannot be written.
        """
        paths = [Path(file) for file in files]
        pictures = [file for file in paths if file.suffix not in (".json", ".csv")]
        if pictures:
            save(self.draw(), *pictures)
        for file in paths:
            if file.suffix == ".json":
                atomic_write(file, json.dumps(self.as_json(), ensure_ascii=False, allow_nan=False) + "\n")
            elif file.suffix == ".csv":
                atomic_write(file, self.csv())

    def picture(self) -> Picture:
        """Return the picture as a part of a card. Its description is the caption."""
        drawn = self.draw()
        (png,) = render(drawn, False)
        return Picture(png, round(drawn.get_figwidth() * PIXELS_PER_INCH), self.caption)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture for IPython, with its width in pixels of a page."""
        picture = self.picture()
        return picture.png, {"width": picture.width}

    def _repr_svg_(self) -> str:
        """Return the picture for IPython. It is narrower where the page is."""
        svg = render(self.draw(), True)[0].decode()
        return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)

    def csv(self) -> str:
        """Return the table as comma-separated values."""
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.table())
        return text.getvalue()

    def save(self, folder: str | Path, name: str, formats: Sequence[str] = FORMATS) -> list[Path]:
        """Write NAME.svg, NAME.png, NAME.json and NAME.csv into a folder; returns their paths.

        formats: a selection of `FORMATS`. Raises ResourceError if a file cannot be written.
        """
        files = [Path(folder) / f"{name}.{suffix}" for suffix in formats]
        self.write(*files)
        return files


def _finite(values: Any) -> Any:
    if isinstance(values, list):
        return [_finite(each) for each in values]
    return None if isinstance(values, float) and not isfinite(values) else values


def indices(numbers: Iterable[int | None]) -> NDArray[np.int32]:
    """Return numbers as an array, with −1 for None."""
    return np.array([-1 if number is None else number for number in numbers], np.int32)
