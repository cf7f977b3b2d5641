"""All optimisers, as a setting."""

from typing import Annotated

from pydantic import Field

from dragoman.train.optimisers.adam import AdamConfig
from dragoman.train.optimisers.muon import MuonConfig

OptimiserConfig = Annotated[AdamConfig | MuonConfig, Field(discriminator="kind")]
