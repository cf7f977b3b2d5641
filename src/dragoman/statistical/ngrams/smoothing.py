"""The union of smoothing methods. Each config estimates the tables of a model: `estimate(counts)`."""

from typing import Annotated

from pydantic import Field

from dragoman.statistical.ngrams.kneser_ney import KneserNeyConfig, ModifiedKneserNeyConfig
from dragoman.statistical.ngrams.relative_frequency import AddKConfig, MaximumLikelihoodConfig

SmoothingConfig = Annotated[
    ModifiedKneserNeyConfig | KneserNeyConfig | AddKConfig | MaximumLikelihoodConfig, Field(discriminator="kind")
]
