"""Noise that affects single tokens: masking and deletion."""

from typing import Literal

import numpy as np
from pydantic import Field

from dragoman.data.batches.masking import MASK
from dragoman.data.noise.noise import BaseNoiseConfig, Noise, NoisyText
from dragoman.text.tokenizer import Tokenizer


class TokenMaskingConfig(BaseNoiseConfig):
    """Tokens are replaced by masks, and the target is the whole text (Lewis et al. 2020, section 2.2)."""

    kind: Literal["token_masking"] = "token_masking"
    rate: float = Field(0.15, gt=0, lt=1, description="Probability that a token is replaced by <mask>.")

    def tags(self, length: int) -> tuple[str, ...]:
        """Return the tag of masks."""
        return (MASK,)

    def build(self, tokenizer: Tokenizer) -> "TokenMasking":
        """Build the noise for a vocabulary with the tag `MASK`."""
        return TokenMasking(self, tokenizer)


class TokenMasking(Noise):
    """Masking of tokens, independently of each other."""

    def __init__(self, config: TokenMaskingConfig, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._rate = config.rate
        (self._mask,) = tokenizer.tag_ids([MASK])

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Replace tokens of the source by masks."""
        ids = text.source
        masked = (draw.random(len(ids)) < self._rate) & self.is_text(ids)
        return text._replace(source=np.where(masked, self._mask, ids))


class TokenDeletionConfig(BaseNoiseConfig):
    """Tokens are deleted without a trace, and the target is the whole text (Lewis et al. 2020, section 2.2)."""

    kind: Literal["token_deletion"] = "token_deletion"
    rate: float = Field(0.15, gt=0, lt=1, description="Probability that a token is deleted.")

    def build(self, tokenizer: Tokenizer) -> "TokenDeletion":
        """Build the noise."""
        return TokenDeletion(self, tokenizer)


class TokenDeletion(Noise):
    """Deletion of tokens, independently of each other."""

    def __init__(self, config: TokenDeletionConfig, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._rate = config.rate

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Delete tokens of the source."""
        ids = text.source
        return text._replace(source=ids[(draw.random(len(ids)) >= self._rate) | ~self.is_text(ids)])
