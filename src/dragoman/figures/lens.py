"""`LayerLens`: what a decoder would predict after each of its layers, for each position of a text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from dragoman.figures.canvas import axes_in_inches, colour_map, draw_title
from dragoman.figures.figure import Figure
from dragoman.figures.style import INK, QUIET, SHADES
from dragoman.figures.text_layout import shorten_token, text_width

if TYPE_CHECKING:
    import matplotlib.figure

_ROW, _POINTS, _SMALL = 0.42, 8.0, 6.0
_TITLE, _MARGIN, _NOTE = 0.6, 0.25, 0.45
_MAX_WIDTH = 60.0
"""Maximum width of a picture in inches; the letters of longer texts are smaller."""
_DARK = 0.6
_LABEL = 14
"""Maximum number of characters of a token."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerLens(Figure):
    """The most probable token after each layer (row) and position (column), with its probability.

    layers: labels of the L rows, the lowest layer first. columns: labels of the T positions, such as the tokens that
    the model predicts. tokens: the most probable token of each cell, L rows of T. probabilities: (L, T).
    """

    kind: ClassVar[str] = "lens"

    layers: tuple[str, ...]
    columns: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...]
    probabilities: NDArray[Any]

    def details(self) -> dict[str, Any]:
        """Return the labels and the tokens."""
        return {
            "layers": list(self.layers),
            "columns": list(self.columns),
            "tokens": [list(row) for row in self.tokens],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the probabilities (L, T) as `probabilities`."""
        return {"probabilities": self.probabilities}

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per layer and position."""
        yield "layer", "position", "column", "token", "probability"
        for layer, tokens, values in zip(self.layers, self.tokens, self.probabilities.tolist(), strict=True):
            for position, (column, token, value) in enumerate(zip(self.columns, tokens, values, strict=True)):
                yield layer, position, column, token, value

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the highest layer on top, with a token in each cell whose shade is its probability."""
        from matplotlib.patches import Rectangle

        shades = colour_map(SHADES)
        cells = [[shorten_token(each, _LABEL) for each in row] for row in self.tokens]
        heads = [shorten_token(each, _LABEL) for each in self.columns]
        cell = max(text_width(each, _POINTS) for row in [*cells, heads] for each in row) + 0.16
        left = _MARGIN + max(text_width(each, _POINTS) for each in self.layers) + 0.1
        scale = min(1.0, (_MAX_WIDTH - left - _MARGIN) / (cell * len(self.columns)))
        cell *= scale
        width = max(left + cell * len(self.columns) + _MARGIN, 6.0)
        height = _TITLE + _ROW * (len(self.layers) + 1) + _NOTE
        figure, axes = axes_in_inches(width, height)
        draw_title(axes, self.title, _MARGIN, _TITLE / 2)
        shared: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
        for row, (layer, shown, values) in enumerate(
            zip(reversed(self.layers), reversed(cells), self.probabilities[::-1].tolist(), strict=True)
        ):
            top = _TITLE + row * _ROW
            axes.text(left - 0.08, top + _ROW / 2, layer, fontsize=_POINTS, color=QUIET, ha="right", va="center")
            for column, (token, value) in enumerate(zip(shown, values, strict=True)):
                x = left + column * cell
                axes.add_patch(Rectangle((x, top), cell, _ROW, facecolor=shades(value), edgecolor="white", linewidth=1))
                ink = "white" if value > _DARK else INK
                axes.text(x + cell / 2, top + 0.38 * _ROW, token, fontsize=_POINTS * scale, color=ink, **shared)
                axes.text(x + cell / 2, top + 0.78 * _ROW, f"{value:.2f}", fontsize=_SMALL * scale, color=ink, **shared)
        bottom = _TITLE + len(self.layers) * _ROW
        for column, head in enumerate(heads):
            style = {**shared, "fontsize": _POINTS * scale, "color": INK}
            axes.text(left + (column + 0.5) * cell, bottom + _ROW / 2, head, **style)
        note = "shade and number: probability of the token; bottom row: the token that follows in the text"
        axes.text(_MARGIN, height - _NOTE / 2, note, fontsize=8, color=QUIET, va="center")
        return figure


def layer_lens(
    layers: Sequence[str], columns: Sequence[str], tokens: Sequence[Sequence[str]], probabilities: NDArray[Any]
) -> LayerLens:
    """Return the figure of the predictions after each layer; the arguments are those of `LayerLens`."""
    return LayerLens(
        title="Most probable token after each layer",
        caption="For each position (column), the token that the output projection would predict from the states after "
        "a layer (row), shaded by its probability. The top row is the model's prediction.",
        slide="deck 001, residual connections",
        limits="Only the last layer was trained to be read by the output projection, so the probabilities of lower "
        'layers understate what their states contain (nostalgebraist 2020, "the logit lens").',
        layers=tuple(layers),
        columns=tuple(columns),
        tokens=tuple(map(tuple, tokens)),
        probabilities=probabilities,
    )
