"""Draw a position scheme, and compare all schemes by the criteria of deck 001."""

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
    """The result of `draw_positions`.

    pictures: the files written, empty for a scheme with neither position vectors nor terms inside attention.
    verdicts: the scheme's verdict per criterion. falls: whether the scheme has one vector per position, so that dot
    products can fall with distance. rise: the first distance at which dot products with position 0 rise again, or None
    if they fall throughout.
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
        """Return a table of deck 001's criteria for all schemes, and the receptive fields of kinds of layers."""
        kind, length = self.kind, self.setting.length
        products = ""
        if self.falls:
            course = "fall throughout" if self.rise is None else f"first rise again at distance {self.rise}"
            products = f"\n{kind}: in a text of {length} tokens, dot products with position 0 {course}.\n"
        lines = [
            f"Deck 001's criteria for d = {self.setting.width}, {self.setting.heads} heads and {length} tokens. {kind} "
            "has the given settings, the others have their defaults.",
            criteria_table(self.schemes, self.setting),
            "unique: in an encoder, the token in the middle can tell all positions apart; in a decoder, which attends "
            "only to\nthe left, alibi's distances are unique too. deterministic: given by a formula, not learned. "
            f"evenly spaced:\nneighbours are equally far apart everywhere, also in a text of {max(2, length // 2)} "
            f"tokens. longer texts: {10 * length} tokens have\npositions too, and no value grows.",
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
    """Draw a position scheme into the folder `out`, and apply the criteria of deck 001 to it.

    positions: settings of the scheme, as under `model.positions`, such as `{"kind": "alibi"}` (default: sinusoidal).
    width: model width d. heads: attention heads, which must divide d. length: length of the text in tokens. layers:
    number of layers for which receptive fields are listed. For a scheme with one vector per position, two pictures are
    written: encoding.png, the matrix of all vectors, and dot-products.png, PE(i)·PE(j) for all pairs. For a scheme
    inside attention, weights.png shows the attention weights of each head over identical tokens. Raises ConfigError for
    sizes that do not fit.
    """
    if width % heads:
        raise ConfigError(f"a width of {width} is not divisible by {heads} heads: change --heads or --width")
    chosen: Any = load_settings(None, all_overrides(["kind=sinusoidal"], positions), cast(Any, PositionsConfig))
    setting = Setting(width, heads, length)
    schemes = {kinds(member)[0]: member() for member in union_members(PositionsConfig)}
    schemes[chosen.kind] = chosen
    probe = Probe(chosen, setting)
    if probe.limit is not None and length > probe.limit:
        raise ConfigError(f"--length {length} exceeds the {probe.limit} positions of {chosen.kind}: lower it")
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
