"""`attention_rollout`: the attention of all layers multiplied, from the last layer to the inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.figures.head_lines import SMALLEST, HeadLines
from dragoman.figures.heat_maps import HeatMap, HeatMaps
from dragoman.inference.abilities import SupportsInspect
from dragoman.inference.subject import NO_SETTINGS, SubjectSettings
from dragoman.inspection.attention import attention_of
from dragoman.models.attention_weights import AttentionMap

_ROUNDING = 1e-3
"""Maximum rounding error of the sum of a row of weights."""

_SLIDE = "deck 001, residual connections"
_LIMITS = "Rollout assumes that residual connections and sublayers contribute equally. It ignores the values."

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Rollout:
    """The attention of one side of a model to its inputs through all layers.

    side: encoder or decoder. queries: the T tokens of the side, as in `AttentionMap`. keys: the K inputs: the source
    tokens, followed by the decoder's own inputs for a decoder. layers: (T, K) after each layer; rows sum to 1.
    """

    side: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    layers: tuple[Matrix, ...]

    @property
    def values(self) -> Matrix:
        """The attention (T, K) through all layers."""
        return self.layers[-1]

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON types."""
        return {
            "side": self.side,
            "queries": list(self.queries),
            "keys": list(self.keys),
            "layers": [each.tolist() for each in self.layers],
        }

    def figure(self, layer: int | None = None) -> HeatMaps:
        """Return the attention through all layers as a heat map. layer: the last of the layers, from 1.

        Raises ConfigError if there is no such layer.
        """
        number = len(self.layers) if layer is None else layer
        if not 1 <= number <= len(self.layers):
            raise ConfigError(f"there is no layer {layer}: the {self.side} has layers 1 to {len(self.layers)}")
        through = "all layers" if number == len(self.layers) else f"layers 1 to {number}"
        title = f"{self.title}{'' if layer is None else f' through {through}'}"
        return self._heat_maps(title, through, ((HeatMap("", self.layers[number - 1], layer),),))

    def grid(self) -> HeatMaps:
        """Return the attention through the first layer, the first two layers, and so on, one panel per row."""
        rows = tuple(
            (HeatMap(f"rollout through layer {number}", values, number),)
            for number, values in enumerate(self.layers, 1)
        )
        return self._heat_maps(self.title, "all layers up to that of the panel", rows, compact=True)

    def lines(self, layer: int | None = None, smallest: float = SMALLEST) -> HeadLines:
        """Return the attention through all layers as lines between tokens. layer: the last of the layers, from 1.

        smallest: value below which a line is omitted. Raises ConfigError if there is no such layer.
        """
        whole = self.figure(layer)
        return HeadLines(
            title=whole.title,
            caption=f"{whole.caption} Values below {smallest:g} have no line.",
            slide=whole.slide,
            limits=whole.limits,
            rows=self.queries,
            columns=self.keys,
            headings=("rollout",),
            weights=whole.grid[0][0].values[np.newaxis],
            smallest=smallest,
        )

    @property
    def title(self) -> str:
        """The heading of the figures."""
        return f"Attention rollout of the {self.side}"

    def _heat_maps(
        self, title: str, through: str, grid: tuple[tuple[HeatMap, ...], ...], compact: bool = False
    ) -> HeatMaps:
        return HeatMaps(
            title=title,
            caption=f"The attention of each token (row) to the inputs (columns) through {through}, averaged over the "
            "heads.",
            slide=_SLIDE,
            limits=_LIMITS,
            rows=self.queries,
            columns=self.keys,
            grid=grid,
            unit="rollout",
            compact=compact,
        )


def attention_rollout(loaded: SupportsInspect, text: Any, settings: SubjectSettings = NO_SETTINGS) -> list[Rollout]:
    """Return the rollout of each side of a model whose self-attention has weights (Abnar and Zuidema 2020, section 3).

    With the mean A of the heads of a layer, the joint attention of the layers is R ← (½A + ½I)R, and R = I at the
    input. The paper has encoders only. In a decoder layer with attention C to the source, R has columns for the source
    and for the decoder's inputs, and this step is followed by R ← ½R + ½CE, where E is the rollout of the encoder, or
    the identity if its layers have no attention weights.

    Raises ConfigError if neither side has self-attention with weights in its layers, or if the weights are not a
    distribution, as those of linear attention with rotary positions; and the errors of `subject`.

    >>> from dragoman import Translator, attention_rollout
    >>> encoder, decoder = attention_rollout(Translator.load("runs/ende"), "The dog sleeps.")
    >>> encoder.layers[-1].shape == (len(encoder.queries), len(encoder.keys))
    True
    """
    return roll_out(attention_of(loaded.subject(text, settings)))


def roll_out(maps: Sequence[AttentionMap]) -> list[Rollout]:
    """Return the rollout of each side of a model from the weights of all its attention layers.

    Raises ConfigError as `attention_rollout` does.
    """
    of_kind = {kind: [each for each in maps if each.kind == kind] for kind in dict.fromkeys(each.kind for each in maps)}
    found = []
    encoder = of_kind.get("encoder.self_attention", [])
    if encoder:
        found.append(Rollout("encoder", encoder[0].queries, encoder[0].keys, tuple(_encoder_layers(encoder))))
    own, cross = of_kind.get("decoder.self_attention", []), of_kind.get("decoder.cross_attention", [])
    if own:
        source = np.zeros((0, 0)) if not cross else found[0].values if found else np.eye(len(cross[0].keys))
        source_keys = cross[0].keys if cross else ()
        layers = tuple(_decoder_layers(own, cross, source))
        found.append(Rollout("decoder", own[0].queries, (*source_keys, *own[0].keys), layers))
    if not found:
        raise ConfigError(
            "rollout multiplies the weights of self-attention, which the layers of this model do not have"
        )
    return found


def _encoder_layers(maps: Sequence[AttentionMap]) -> list[Matrix]:
    joint, layers = np.eye(len(maps[0].keys)), []
    for each in maps:
        joint = _with_residual(each) @ joint
        layers.append(joint)
    return layers


def _decoder_layers(own: Sequence[AttentionMap], cross: Sequence[AttentionMap], source: Matrix) -> list[Matrix]:
    """Return the joint attention after each layer. source: the rollout of the encoder, or an empty matrix."""
    length, layers = len(own[0].queries), []
    joint = np.concatenate((np.zeros((length, len(source))), np.eye(length)), 1)
    of_source = np.concatenate((source, np.zeros((len(source), length))), 1)
    for number, each in enumerate(own):
        joint = _with_residual(each) @ joint
        if cross:
            joint = 0.5 * joint + 0.5 * _mean(cross[number]) @ of_source
        layers.append(joint)
    return layers


def _with_residual(attention: AttentionMap) -> Matrix:
    return 0.5 * _mean(attention) + 0.5 * np.eye(len(attention.queries))


def _mean(attention: AttentionMap) -> Matrix:
    """Return the mean weights of the heads. Raises ConfigError if they are not a distribution."""
    mean: Matrix = attention.weights.astype(np.float64).mean(0)
    if (attention.weights < 0).any() or (np.abs(mean.sum(1) - 1) > _ROUNDING).any():
        raise ConfigError(f"rollout needs weights that sum to 1, but those of {attention.name} do not")
    return mean
