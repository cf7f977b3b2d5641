"""`draw_positions`: pictures of a position scheme, and what the schemes can and cannot tell a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.inspect.pictures.matrices import draw_matrices
from dragoman.lecture.position_criteria import Probe, Setting, Verdict, criteria_table, first_rise, judge
from dragoman.lecture.reach import reach_table
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import PositionsConfig


@dataclass(frozen=True)
class PositionsDrawing:
    """pictures: the files, none of a scheme without vectors and relations. verdicts: of the scheme, by criterion.

    falls: whether it has a vector a position, whose dot products can fall with the distance; rise: the distance at
    which those with position 0 rise again, None where they fall all the way.
    """

    kind: str
    setting: Setting
    pictures: tuple[Path, ...]
    verdicts: Mapping[str, Verdict]
    falls: bool
    rise: int | None
    schemes: Mapping[str, PositionScheme]
    layers: int

    def __str__(self) -> str:
        """Deck 001's criteria for all schemes, and how far kinds of layers see."""
        kind, length = self.kind, self.setting.length
        products = ""
        if self.falls:
            told = "fall all the way" if self.rise is None else f"first rise again at distance {self.rise}"
            products = f"\n{kind}: dot products with position 0 {told}, of {length} tokens.\n"
        lines = [
            f"Deck 001's criteria for d = {self.setting.width}, {self.setting.heads} heads and {length} tokens; {kind} "
            "as it is set, the others by default.",
            criteria_table(self.schemes, self.setting),
            "unique: in an encoder, as the token in the middle sees the others; a decoder, which looks back only, "
            "tells\nalibi's distances apart. deterministic: a formula, not learned. evenly spaced: neighbours are "
            f"equally far\napart everywhere, also in a text of {max(2, length // 2)} tokens. longer texts: "
            f"{10 * length} tokens, with nothing larger to read.",
            products,
            reach_table(self.layers, length),
        ]
        return "\n".join(lines)


def draw_positions(
    out: str | Path,
    positions: Overrides = (),
    *,
    width: int = 128,
    heads: int = 8,
    length: int = 100,
    layers: int = 6,
) -> PositionsDrawing:
    """Draw a position scheme into the folder `out`, and judge it as deck 001 does.

    positions: its settings, as under `model.positions`, such as `{"kind": "alibi"}` (default: sinusoidal). width: d;
    length: tokens of a text; layers: that receptive fields are given for. Two pictures of a scheme with a vector a
    position: encoding.png, the matrix of all vectors, and dot-products.png, PE(i)·PE(j) of all pairs. One of a scheme
    inside attention: weights.png, what each head attends among equal tokens. Raises ConfigError for sizes that do not
    fit.
    """
    if width % heads:
        raise ConfigError(f"{heads} heads do not divide a width of {width}: choose --heads or --width that fit")
    chosen: Any = load_settings(None, all_overrides(["kind=sinusoidal"], positions), cast(Any, PositionsConfig))
    setting = Setting(width, heads, length)
    schemes = {kinds(member)[0]: member() for member in union_members(PositionsConfig)}
    schemes[chosen.kind] = chosen
    probe = Probe(chosen, setting)
    if probe.limit is not None and length > probe.limit:
        raise ConfigError(f"--length {length} is more than the {probe.limit} positions of {chosen.kind}: lower it")
    verdicts = judge(chosen, setting)
    title = (
        f"Positions of kind {chosen.kind}, d = {width}{'' if verdicts['deterministic'].holds else ', before training'}"
    )
    falls, rise = probe.encoding is not None, None
    pictures: tuple[Path, ...] = ()
    if probe.encoding is not None:
        pictures, rise = _draw_vectors(probe, setting, title, Path(out))
    elif probe.relation is not None:
        pictures = (_draw_weights(probe, setting, title, Path(out)),)
    return PositionsDrawing(chosen.kind, setting, pictures, verdicts, falls, rise, schemes, layers)


def _draw_vectors(probe: Probe, setting: Setting, title: str, out: Path) -> tuple[tuple[Path, ...], int | None]:
    out.mkdir(parents=True, exist_ok=True)
    matrix, pairs = probe.vectors(setting.length).numpy(), probe.pairs(setting.length)[0]
    vectors, products = out / "encoding.png", out / "dot-products.png"
    draw_matrices({"the vectors PE(i)": matrix}, vectors, title, ("component of the vector", "position i"), "value")
    axes = ("position j", "position i")
    draw_matrices({"their dot products": pairs.numpy()}, products, title, axes, "PE(i)·PE(j)")
    return (vectors, products), first_rise(pairs)


def _draw_weights(probe: Probe, setting: Setting, title: str, out: Path) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    matrices = probe.pairs(setting.length).numpy()
    names = [f"head {head + 1}" for head in range(setting.heads)] if len(matrices) > 1 else ["all heads"]
    bar = "weight of equal tokens, relative to the row's largest"
    weights = dict(zip(names, matrices, strict=True))
    path, axes = out / "weights.png", ("position of the key j", "position of the query i")
    draw_matrices(weights, path, f"{title}, {setting.heads} heads", axes, bar)
    return path
