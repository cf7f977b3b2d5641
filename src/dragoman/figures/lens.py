"""`LayerLens`: what a decoder would predict after each of its layers, for each position of a text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from dragoman.figures.figure import Figure

if TYPE_CHECKING:
    import matplotlib.figure


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
        from dragoman.figures.pictures.lens import draw_lens

        return draw_lens(self.title, (self.layers, self.columns), self.tokens, self.probabilities)


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
