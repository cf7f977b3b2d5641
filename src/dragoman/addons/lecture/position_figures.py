"""Figures of a position scheme: its vectors and their dot products, or the attention weights that it causes."""

import numpy as np
from torch import Tensor

from dragoman.addons.lecture.position_criteria import Probe, Setting, first_rise
from dragoman.figures.curves import Curve, CurvePanel, Curves
from dragoman.figures.matrices import Matrices

_SLIDE = "deck 001, four criteria for positions; deck 002, positions"


def position_figures(probe: Probe, setting: Setting, title: str) -> dict[str, Matrices]:
    """Return the figures of a scheme by name.

    A scheme with one vector per position has `encoding`, the matrix of all vectors, and `dot-products`, PE(i)·PE(j) for
    all pairs of positions. A scheme inside attention has `weights`, those of each head over identical tokens. A scheme
    with neither has no figures.
    """
    if probe.encoding is not None:
        return _vector_figures(probe, setting, title)
    return {} if probe.relation is None else {"weights": _weights(probe, setting, title)}


def distance_curve(products: Tensor, title: str) -> Curves:
    """Return the dot products with position 0 as a curve over the distance. products: from `Probe.pairs`."""
    rise = first_rise(products)
    course = "fall throughout" if rise is None else f"first rise at distance {rise}"
    values = products[0].double().numpy()
    curve = Curve("PE(0)·PE(k)", np.arange(len(values), dtype=np.float64), values)
    return Curves(
        title=title,
        caption="The dot products of the vector of position 0 and the vectors at each distance.",
        slide=_SLIDE,
        panels=(CurvePanel(f"Dot products with position 0 · {course}", "", (curve,)),),
        x_label="distance",
    )


def _vector_figures(probe: Probe, setting: Setting, title: str) -> dict[str, Matrices]:
    encoding = Matrices(
        title=title,
        caption="Each row is the vector of a position.",
        slide=_SLIDE,
        matrices={"position vectors PE(i)": probe.vectors(setting.length).numpy()},
        axes=("position i", "vector component"),
        unit="value",
    )
    products = Matrices(
        title=title,
        caption="The dot products of the vectors of all pairs of positions.",
        slide=_SLIDE,
        limits="Large products mean similar vectors only if all vectors have the same length.",
        matrices={"dot products of position vectors": probe.pairs(setting.length)[0].numpy()},
        axes=("position i", "position j"),
        unit="PE(i)·PE(j)",
    )
    return {"encoding": encoding, "dot-products": products}


def _weights(probe: Probe, setting: Setting, title: str) -> Matrices:
    matrices = probe.pairs(setting.length).numpy()
    names = [f"head {head + 1}" for head in range(setting.heads)] if len(matrices) > 1 else ["all heads"]
    return Matrices(
        title=f"{title}, {setting.heads} heads",
        caption="The attention weights of each head among identical tokens.",
        slide=_SLIDE,
        matrices=dict(zip(names, matrices, strict=True)),
        axes=("query position i", "key position j"),
        unit="weight for identical tokens, relative to the row's maximum",
    )
