"""The union of alignment methods, discriminated by `kind`. To add a method, add its config to the union."""

from typing import Annotated

from pydantic import Field

from dragoman.statistical.alignment.estimation.pairs import Longs
from dragoman.statistical.alignment.methods.diagonal import DiagonalConfig
from dragoman.statistical.alignment.methods.fertility import FertilityConfig
from dragoman.statistical.alignment.methods.hmm import HMMConfig
from dragoman.statistical.alignment.methods.ibm1 import IBM1Config
from dragoman.statistical.alignment.methods.ibm2 import IBM2Config

AlignmentMethod = Annotated[
    IBM1Config | IBM2Config | DiagonalConfig | HMMConfig | FertilityConfig, Field(discriminator="kind")
]

_MOST_COMBINATIONS = 50_000_000


def default_method(source_lengths: Longs, target_lengths: Longs) -> HMMConfig | FertilityConfig:
    """Return the default method for pairs with these numbers of words (N,).

    Fertilities have the lowest error rates on all texts that were compared (EXPERIMENTS.md, "Alignment error rates").
    They need about 16 bytes for each combination of a source and a target word of a pair.
    """
    combinations = int(source_lengths @ target_lengths)
    return FertilityConfig() if combinations <= _MOST_COMBINATIONS else HMMConfig()
