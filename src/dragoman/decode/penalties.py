"""Length penalties: what a hypothesis' summed log-probability is divided by before hypotheses are compared."""

from typing import Annotated, Literal

from pydantic import Field

from dragoman.base.config import Config


class GNMTPenalty(Config):
    """((5 + length) / 6) ** alpha, Wu et al. 2016, section 7. The length counts the end-of-sentence symbol."""

    kind: Literal["gnmt"] = Field(default="gnmt", description="Which length penalty.")
    alpha: float = Field(
        default=0.6,
        ge=0,
        description="Exponent (no unit); 0 compares plain sums. Default: Vaswani et al. 2017, section 6.1.",
    )

    def divisor(self, length: int) -> float:
        """For a hypothesis of `length` tokens; never smaller for a longer one."""
        return float(((5 + length) / 6) ** self.alpha)


class MeanLogProbability(Config):
    """The length itself, so that a score is the mean log-probability of a token."""

    kind: Literal["mean"] = Field(default="mean", description="Which length penalty.")

    def divisor(self, length: int) -> float:
        """For a hypothesis of `length` tokens; never smaller for a longer one."""
        return float(max(length, 1))


class NoPenalty(Config):
    """One, so that a score is the summed log-probability."""

    kind: Literal["none"] = Field(default="none", description="Which length penalty.")

    def divisor(self, length: int) -> float:
        """The same for every `length`."""
        return 1.0


LengthPenalty = Annotated[GNMTPenalty | MeanLogProbability | NoPenalty, Field(discriminator="kind")]
"""Every member's divisor grows with the length or stays: the exact stopping rule of the search rests on that."""
