"""The union of alignment methods, discriminated by `kind`. To add a method, add its config to the union."""

from typing import Annotated

from pydantic import Field

from dragoman.statistical.alignment.methods.diagonal import DiagonalConfig
from dragoman.statistical.alignment.methods.fertility import FertilityConfig
from dragoman.statistical.alignment.methods.hmm import HMMConfig
from dragoman.statistical.alignment.methods.ibm1 import IBM1Config
from dragoman.statistical.alignment.methods.ibm2 import IBM2Config

AlignmentMethod = Annotated[
    IBM1Config | IBM2Config | DiagonalConfig | HMMConfig | FertilityConfig, Field(discriminator="kind")
]
