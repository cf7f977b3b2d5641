"""`Curves`: panels with lines over a common horizontal axis, such as the learning curves of several runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.figures.curve import CurvePanel
from dragoman.figures.figure import Figure

if TYPE_CHECKING:
    import matplotlib.figure

_PIXELS = 1000
"""Number of pixel columns for which the curves of a picture are thinned, which exceeds the width of a panel."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Curves(Figure):
    """Panels of curves. x_label: name of the horizontal axis."""

    kind: ClassVar[str] = "curves"

    panels: tuple[CurvePanel, ...]
    x_label: str = "step"

    def thinned(self, pixels: int) -> "Curves":
        """Return the figure for panels of this width, in which extreme values are kept (see `Curve.thinned`)."""
        panels = tuple(
            replace(panel, curves=tuple(curve.thinned(pixels) for curve in panel.curves)) for panel in self.panels
        )
        return replace(self, panels=panels)

    def details(self) -> dict[str, Any]:
        """Return headings, units and scales of the panels, and the names of the arrays of each curve."""
        return {
            "x_label": self.x_label,
            "panels": [
                {
                    "heading": panel.heading,
                    "unit": panel.unit,
                    "logarithmic": panel.is_logarithmic,
                    "limits": panel.limits,
                    "best": panel.best,
                    "note": panel.note,
                    "curves": [
                        {"label": curve.label, "colour": curve.colour, "style": curve.style, "array": _name(p, c)}
                        for c, curve in enumerate(panel.curves)
                    ],
                }
                for p, panel in enumerate(self.panels)
            ],
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return one array (2, N) per curve: x and y. `panel-0.curve-0` is the first."""
        return {
            _name(p, c): np.stack([curve.x, curve.y])
            for p, panel in enumerate(self.panels)
            for c, curve in enumerate(panel.curves)
        }

    def table(self) -> Iterator[Sequence[Any]]:
        """Yield one row per point."""
        yield "panel", "curve", self.x_label, "value"
        for panel in self.panels:
            for curve in panel.curves:
                for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True):
                    yield panel.heading, curve.label, x, y

    def draw(self) -> "matplotlib.figure.Figure":
        """Draw the panels in up to three columns."""
        from dragoman.figures.pictures.curves import draw_curves

        return draw_curves(self.title, self.thinned(_PIXELS).panels, self.x_label)


def _name(panel: int, curve: int) -> str:
    return f"panel-{panel}.curve-{curve}"
