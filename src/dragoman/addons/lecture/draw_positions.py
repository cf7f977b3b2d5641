"""Draw a position scheme and compare all schemes by the criteria of deck 001."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dragoman.addons.lecture.position_criteria import Probe, Setting, Verdict, criteria_table, first_rise, judge
from dragoman.addons.lecture.position_figures import position_figures
from dragoman.addons.lecture.reach import reach_table
from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import kinds, union_members
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.union import PositionsConfig


@dataclass(frozen=True)
class PositionsDrawing:
    """The result of `draw_positions`.

    kind: kind of the scheme. pictures: paths of the pictures; empty for a scheme with neither position vectors nor
    terms inside attention. verdicts: the scheme's verdict for each criterion. has_vectors: whether the scheme has one
    vector per position. first_rise: the smallest distance at which dot products with position 0 increase, or None if
    they decrease throughout. schemes: the schemes to compare, by kind. layers: number of layers for which receptive
    fields are listed.
    """

    kind: str
    setting: Setting
    pictures: tuple[Path, ...]
    verdicts: Mapping[str, Verdict]
    has_vectors: bool
    first_rise: int | None
    schemes: Mapping[str, PositionScheme]
    layers: int

    def __str__(self) -> str:
        """Return a table of deck 001's criteria for all schemes and a table of receptive fields."""
        kind, length = self.kind, self.setting.length
        products = ""
        if self.has_vectors:
            course = (
                "decrease throughout"
                if self.first_rise is None
                else f"decrease up to distance {self.first_rise - 1} and first increase at distance {self.first_rise}"
            )
            products = f"\n{kind}: in a text of {length} tokens, dot products with position 0 {course}.\n"
        lines = [
            f"Deck 001's criteria for d = {self.setting.width}, {self.setting.heads} heads and {length} tokens. {kind} "
            "has the given settings; the other schemes have default settings.",
            criteria_table(self.schemes, self.setting),
            "unique: in an encoder, the token in the middle can distinguish all positions. In a decoder, which attends "
            "only to\nthe left, the distances of alibi are unique too. deterministic: defined by a formula, not "
            "learned. evenly spaced:\nthe distance between neighbours is constant, also in a text of "
            f"{max(2, length // 2)} tokens. longer texts: a text of\n{10 * length} tokens has positions too, and no "
            "value increases.",
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
    """Draw a position scheme and evaluate it by the criteria of deck 001.

    For a scheme with one vector per position, two pictures are written: encoding.png shows the matrix of all vectors,
    and dot-products.png shows PE(i)·PE(j) for all pairs of positions. For a scheme inside attention, weights.png shows
    the attention weights of each head over identical tokens.

    out: output folder. positions: settings of the scheme, as under `model.positions`, such as `{"kind": "alibi"}`
    (default: sinusoidal). width: model width d. heads: number of attention heads, which must divide d. length: text
    length in tokens. layers: number of layers for which receptive fields are listed. Raises ConfigError for
    incompatible sizes.

    >>> from dragoman import draw_positions
    >>> drawing = draw_positions("pictures", {"kind": "sinusoidal"}, width=32, heads=4, length=20)
    >>> [path.name for path in drawing.pictures]
    ['encoding.png', 'dot-products.png']
    """
    if width % heads:
        raise ConfigError(f"a width of {width} is not divisible by {heads} heads: change --heads or --width")
    chosen: Any = load_settings(None, all_overrides(["kind=sinusoidal"], positions), cast(Any, PositionsConfig))
    setting = Setting(width, heads, length)
    schemes = {kinds(member)[0]: member() for member in union_members(PositionsConfig)}
    schemes[chosen.kind] = chosen
    probe = Probe(chosen, setting)
    if probe.limit is not None and length > probe.limit:
        raise ConfigError(
            f"--length {length} exceeds the {probe.limit} positions of {chosen.kind}: choose a shorter length"
        )
    verdicts = judge(chosen, setting)
    title = (
        f"Positions of kind {chosen.kind}, d = {width}{'' if verdicts['deterministic'].holds else ', before training'}"
    )
    has_vectors = probe.encoding is not None
    figures = position_figures(probe, setting, title)
    if figures:
        _create_folder(Path(out))
    pictures = tuple(Path(out) / f"{name}.png" for name in figures)
    for picture, figure in zip(pictures, figures.values(), strict=True):
        figure.write(picture)
    rise = first_rise(probe.pairs(length)[0]) if has_vectors else None
    return PositionsDrawing(chosen.kind, setting, pictures, verdicts, has_vectors, rise, schemes, layers)


_PICTURES = ("encoding.png", "dot-products.png", "weights.png")


def _create_folder(out: Path) -> None:
    """Create the folder for pictures. Raises ConfigError if a folder that also contains other files has pictures."""
    out.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in out.iterdir()}
    replaced = sorted(names.intersection(_PICTURES))
    if replaced and not names.issubset(_PICTURES):
        raise ConfigError(f"{out} contains {', '.join(replaced)} and other files: choose another --out")
