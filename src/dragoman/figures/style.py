"""Colours of all figures, for matplotlib and, as `style_sheet`, for browsers."""

DEFAULT_FONT = "DejaVu Sans"
"""A font that is bundled with matplotlib."""

INK, QUIET, GRID = "#1f2933", "#66737f", "#e4e8ec"
BLUE, ORANGE, GREEN = "#1f5fa8", "#c2570c", "#217346"
COLOURS = (BLUE, ORANGE, GREEN, "#8a4fa8", "#b03a48", "#59626b")
"""Colours of lines, such as runs, heads and aligners. Each has a contrast of at least 4.5 : 1 with white."""

SHADES = ("#ffffff", "#d5e4f3", "#86b3dc", "#2f74b5", "#0d2f5c")
"""Colours of values from 0, at equal distances of the scale."""
SIGNED = ("#8a3d06", "#e89a4f", "#ffffff", "#6a9fd4", "#0d2f5c")
"""Colours of values around 0, the most negative first."""
GREYS = ("#ffffff", "#9aa5b1")
"""Colours of annotated links."""

_DARK_COLOURS = ("#86b3dc", "#f0a05a", "#7fcf9f", "#cfa3e6", "#f28b98", "#a4aeb7")
_DARK_SHADES = ("#1d2226", "#22405c", "#2f74b5", "#86b3dc", "#f2f8fd")
_DARK_SIGNED = ("#f0b98a", "#a35410", "#1d2226", "#2f74b5", "#bcd9f2")
_DARK_GREYS = ("#1d2226", "#59626b")
"""The same on a dark page, where 0 has the colour of the page."""


def style_sheet() -> str:
    """Return the colours as custom properties of CSS, for light and dark pages.

    `--shade-0` to `--shade-4`, `--signed-0` and so on are the scales, `--curve-0` and so on the colours of lines, and
    `--gold-0` and `--gold-1` those of annotated links.
    """
    light = {"shade": SHADES, "signed": SIGNED, "curve": COLOURS, "gold": GREYS}
    dark = {"shade": _DARK_SHADES, "signed": _DARK_SIGNED, "curve": _DARK_COLOURS, "gold": _DARK_GREYS}
    return (
        "/* Colours of figures, written by `python -m dragoman.figures.style`. */\n\n"
        f":root {{\n{_lines(light, 2)}}}\n\n"
        f"@media (prefers-color-scheme: dark) {{\n  :root {{\n{_lines(dark, 4)}  }}\n}}\n"
    )


def _lines(scales: dict[str, tuple[str, ...]], indent: int) -> str:
    colours = [(f"{name}-{number}", colour) for name, scale in scales.items() for number, colour in enumerate(scale)]
    return "".join(f"{' ' * indent}--{name}: {colour};\n" for name, colour in colours)


if __name__ == "__main__":
    print(style_sheet(), end="")
