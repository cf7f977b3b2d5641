"""Every position scheme by its `kind`; a new one is a class in this folder and a line here."""

from typing import Annotated, Literal

from pydantic import Field

from dragoman.nn.positions.alibi import AlibiConfig
from dragoman.nn.positions.learned import LearnedConfig
from dragoman.nn.positions.number import FractionConfig, IndexConfig
from dragoman.nn.positions.one_hot import OneHotConfig
from dragoman.nn.positions.relative import RelativeConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.sinusoidal import SinusoidalConfig


class NoPositionsConfig(PositionScheme):
    """No positions: recurrence, convolution or a causal mask must tell the order, or nothing does."""

    kind: Literal["none"] = "none"


PositionsConfig = Annotated[
    SinusoidalConfig
    | LearnedConfig
    | RelativeConfig
    | RotaryConfig
    | AlibiConfig
    | NoPositionsConfig
    | IndexConfig
    | OneHotConfig
    | FractionConfig,
    Field(discriminator="kind"),
]
