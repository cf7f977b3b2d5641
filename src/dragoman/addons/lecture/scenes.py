"""Scenes of coloured shapes on a grid: their grammar, their pictures, and the vectors of their regions.

A caption names the shapes from left to right, and those of one column from top to bottom. The region of a cell is
described by a vector, as in image captioning (Xu et al. 2015): which of its blocks are covered, the mean colour of what
covers them, and its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GRID = 3
"""Number of rows and of columns."""

CELL, BLOCK = 24, 4
"""Side of a cell, and of a block of a cell, in pixels."""

BACKGROUND = np.array([245, 245, 240], np.float64)
COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (205, 40, 40),
    "green": (40, 150, 60),
    "blue": (40, 80, 200),
    "yellow": (230, 200, 40),
    "purple": (130, 50, 160),
}
SHAPES = ("circle", "square", "triangle", "cross", "bar")
COMBINATIONS = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)
HELD_OUT = (("red", "cross"), ("green", "bar"), ("blue", "circle"), ("yellow", "triangle"), ("purple", "square"))
"""Combinations of colour and shape that do not occur in training. Each colour and each shape does."""

REGION_WIDTH = (CELL // BLOCK) ** 2 + 3 + 2
"""Number of components of the vector of a region."""

_ROWS = ("top", "middle", "bottom")
_COLUMNS = ("left", "centre", "right")
_NOISE = 8.0
"""Standard deviation of the noise of a pixel, on a scale of 255."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Thing:
    """A shape in a cell. row, column: from 0."""

    colour: str
    shape: str
    row: int
    column: int

    @property
    def region(self) -> int:
        """The number of the cell, row by row."""
        return self.row * GRID + self.column


class Word(NamedTuple):
    """A word of a caption. region: the region of the shape that it names or whose colour it states, or None."""

    text: str
    region: int | None = None


@dataclass(frozen=True)
class Scene:
    """One or two shapes, in the order of the caption."""

    things: tuple[Thing, ...]

    @property
    def words(self) -> list[Word]:
        """The words of the caption."""
        first, *others = self.things
        words = _noun_phrase(first)
        if not others:
            return [*words, *map(Word, f"at the {_ROWS[first.row]} {_COLUMNS[first.column]}".split())]
        relation = "above" if first.column == others[0].column else "to the left of"
        return [*words, *map(Word, relation.split()), *_noun_phrase(others[0])]

    @property
    def caption(self) -> str:
        """The words, separated by spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def is_unseen(self) -> bool:
        """Whether the scene contains a combination that does not occur in training."""
        return any((thing.colour, thing.shape) in HELD_OUT for thing in self.things)


def _noun_phrase(thing: Thing) -> list[Word]:
    return [Word("a"), Word(thing.colour, thing.region), Word(thing.shape, thing.region)]


def draw_scenes(count: int, seed: int | Sequence[int], unseen: bool) -> Iterator[Scene]:
    """Yield random scenes, a quarter of which have one shape, the others two.

    unseen: whether each scene contains a combination that does not occur in training; otherwise, none contains one.
    """
    random = np.random.default_rng(seed)
    while count:
        size = 1 if random.random() < 0.25 else 2
        cells = random.choice(GRID * GRID, size, replace=False)
        combinations = [COMBINATIONS[index] for index in random.choice(len(COMBINATIONS), size)]
        things = [
            Thing(colour, shape, int(cell) // GRID, int(cell) % GRID)
            for (colour, shape), cell in zip(combinations, cells, strict=True)
        ]
        scene = Scene(tuple(sorted(things, key=lambda thing: (thing.column, thing.row))))
        if scene.is_unseen == unseen:
            yield scene
            count -= 1


def paint(scene: Scene, random: np.random.Generator) -> Pixels:
    """Return the picture of a scene, (rows, columns, 3). The size, place and colour of shapes vary, and pixels are
    noisy.
    """
    side = GRID * CELL
    picture = np.broadcast_to(BACKGROUND, (side, side, 3)).copy()
    for thing in scene.things:
        radius = random.uniform(0.3, 0.42) * CELL
        middle = CELL / 2 + random.uniform(-1.5, 1.5, 2)
        y, x = np.mgrid[0:CELL, 0:CELL] + 0.5
        inside = _covers(thing.shape, (x - middle[0]) / radius, (y - middle[1]) / radius)
        colour = np.array(COLOURS[thing.colour]) + random.normal(0, 10, 3)
        cell = picture[thing.row * CELL : (thing.row + 1) * CELL, thing.column * CELL : (thing.column + 1) * CELL]
        cell[inside] = colour
    noisy = picture + random.normal(0, _NOISE, picture.shape)
    return noisy.clip(0, 255).round().astype(np.uint8)


def _covers(shape: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether a shape of radius 1 covers each point. y grows downwards."""
    if shape == "circle":
        return x**2 + y**2 <= 1
    if shape == "square":
        return np.maximum(abs(x), abs(y)) <= 0.85
    if shape == "triangle":
        return (y <= 0.8) & (abs(x) <= (y + 1) / 1.8)
    if shape == "cross":
        return (np.minimum(abs(x), abs(y)) <= 0.3) & (np.maximum(abs(x), abs(y)) <= 1)
    return (abs(x) <= 1) & (abs(y) <= 0.35)


def region_vectors(picture: Pixels) -> NDArray[np.float64]:
    """Return the vector of each cell of a picture, (cells, `REGION_WIDTH`), row by row.

    A vector contains the covered fraction of each block, the mean colour of the covered pixels minus that of the
    background (0 if nothing is covered), and the row and column of the cell, from −1 to 1.
    """
    vectors = []
    for row in range(GRID):
        for column in range(GRID):
            cell = picture[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL].astype(np.float64)
            difference = cell - BACKGROUND
            covered = np.abs(difference).max(2) > 6 * _NOISE
            blocks = covered.reshape(CELL // BLOCK, BLOCK, CELL // BLOCK, BLOCK).mean((1, 3))
            colour = difference[covered].mean(0) / 128 if covered.sum() > BLOCK else np.zeros(3)
            place = [2 * row / (GRID - 1) - 1, 2 * column / (GRID - 1) - 1]
            vectors.append([*blocks.ravel(), *colour, *place])
    return np.array(vectors)
