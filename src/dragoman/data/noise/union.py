"""The union of the kinds of noise, and their combinations."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from dragoman.data.noise.noise import BaseNoiseConfig, Noise, NoisyText
from dragoman.data.noise.sentences import SentencePermutationConfig
from dragoman.data.noise.spans import InfillingConfig, SpanCorruptionConfig
from dragoman.data.noise.tokens import TokenDeletionConfig, TokenMaskingConfig
from dragoman.text.tokenizer import Tokenizer

SingleNoiseConfig = Annotated[
    SpanCorruptionConfig | InfillingConfig | SentencePermutationConfig | TokenDeletionConfig | TokenMaskingConfig,
    Field(discriminator="kind"),
]
"""The union of the kinds of noise without combinations."""


class CombinationConfig(BaseNoiseConfig):
    """Several kinds of noise, which corrupt a text one after the other.

    BART's is `{kind: combination, noises: [{kind: sentence_permutation}, {kind: infilling}]}` (Lewis et al. 2020,
    section 5.1).
    """

    kind: Literal["combination"] = "combination"
    noises: tuple[SingleNoiseConfig, ...] = Field(min_length=1, description="Kinds of noise, in order.")

    def tags(self, length: int) -> tuple[str, ...]:
        """Return the tags of all noises."""
        return tuple(dict.fromkeys(tag for noise in self.noises for tag in noise.tags(length)))

    def build(self, tokenizer: Tokenizer) -> "Combination":
        """Build the noises for a vocabulary that has their tags."""
        return Combination(self, tokenizer)

    def describe(self) -> str:
        """Return the kinds and settings of all noises, for the model card."""
        return ", then ".join(noise.describe() for noise in self.noises)

    @model_validator(mode="after")
    def _check_targets(self) -> "CombinationConfig":
        hiding = [noise for noise in self.noises if noise.hides]
        partial = next((noise for noise in hiding if not noise.restores), None)
        if partial is not None and len(hiding) > 1:
            other = next(noise for noise in hiding if noise is not partial)
            raise ValueError(
                f"the target of {partial.kind} contains only its own spans, so a model would never predict the tokens "
                f"that {other.kind} hides: combine {partial.kind} only with sentence_permutation"
            )
        return self


class Combination(Noise):
    """Several kinds of noise in order."""

    def __init__(self, config: CombinationConfig, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._noises = [noise.build(tokenizer) for noise in config.noises]

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Corrupt a text with each noise."""
        for noise in self._noises:
            text = noise.corrupt(text, draw)
        return text


NoiseConfig = Annotated[
    SpanCorruptionConfig
    | InfillingConfig
    | SentencePermutationConfig
    | TokenDeletionConfig
    | TokenMaskingConfig
    | CombinationConfig,
    Field(discriminator="kind"),
]
"""The union of all kinds of noise. To add a kind, write a config and its noise, and add the config to both unions."""
