"""`OptimiserConfig`: the optimisers that a run can use."""

from typing import Annotated

from pydantic import Field

from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.muon import MuonConfig

OptimiserConfig = Annotated[AdamConfig | MuonConfig, Field(discriminator="kind")]
