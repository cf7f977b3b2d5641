"""The union of position schemes, discriminated by `kind`. To add a scheme, add its class to the union in this file."""

from typing import Annotated, Literal

from dragoman.base.settings.variants import Variants
from dragoman.nn.positions.alibi import AlibiConfig
from dragoman.nn.positions.bucketed import BucketedConfig
from dragoman.nn.positions.learned import LearnedConfig
from dragoman.nn.positions.naive import FractionConfig, IndexConfig, OneHotConfig
from dragoman.nn.positions.relative import RelativeConfig
from dragoman.nn.positions.rotary import RotaryConfig
from dragoman.nn.positions.scheme import PositionScheme
from dragoman.nn.positions.sinusoidal import SinusoidalConfig


class NoPositionsConfig(PositionScheme):
    """No positions. The model represents word order only through recurrence, convolution or a causal mask."""

    kind: Literal["none"] = "none"


POSITIONS = Variants("position scheme", PositionScheme, ("build_embedding", "build_relative"))
"""The registry of position schemes: `POSITIONS.register` adds a `PositionScheme`."""
PositionsConfig = Annotated[
    SinusoidalConfig
    | LearnedConfig
    | RelativeConfig
    | RotaryConfig
    | AlibiConfig
    | BucketedConfig
    | NoPositionsConfig
    | IndexConfig
    | OneHotConfig
    | FractionConfig,
    POSITIONS,
]
POSITIONS.extend(PositionsConfig)
