"""All optimisers, as a setting."""

from typing import Annotated

from pydantic import Field

from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.muon import MuonConfig

OptimiserConfig = Annotated[AdamConfig | MuonConfig, Field(discriminator="kind")]
