"""Noise that changes the order of sentences."""

from typing import ClassVar, Literal

import numpy as np
import regex
from numpy.typing import NDArray

from dragoman.data.noise.noise import BaseNoiseConfig, Noise, NoisyText, Tokens
from dragoman.text.tokenizer import Tokenizer

_END = regex.compile(r"[.!?…]+[\p{Pe}\p{Pf}\"']*(?=\s|$)|[。！？]+[\p{Pe}\p{Pf}]*|\n+")
"""The end of a sentence: a full stop, question mark or exclamation mark, or a newline."""


class SentencePermutationConfig(BaseNoiseConfig):
    """The sentences of a text are shuffled, and the target is the text in its original order.

    Source: Lewis et al. 2020, section 2.2, who divide documents into sentences at full stops.
    """

    hides: ClassVar = False
    kind: Literal["sentence_permutation"] = "sentence_permutation"

    def build(self, tokenizer: Tokenizer) -> "SentencePermutation":
        """Build the noise."""
        return SentencePermutation(tokenizer)


class SentencePermutation(Noise):
    """Permutation of sentences. All orders are equally likely."""

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Shuffle the sentences of the source."""
        ids = text.source
        sentences = np.split(ids, self.sentence_ends(ids)[:-1])
        if len(sentences) < 2:
            return text
        order = draw.permutation(len(sentences))
        return text._replace(source=np.concatenate([sentences[number] for number in order]))

    def sentence_ends(self, ids: Tokens) -> NDArray[np.int64]:
        """Return the position after the last token of each sentence. The last one is the length of the text."""
        surfaces = [self._tokenizer.surface(number) for number in ids.tolist()]
        token_ends = np.cumsum([len(surface) for surface in surfaces])
        # Stray bytes of incomplete characters become single characters, so that the number of bytes is unchanged.
        text = b"".join(surfaces).decode("utf-8", "surrogateescape")
        positions = np.cumsum([0, *(len(each.encode("utf-8", "surrogateescape")) for each in text)])
        ends = [int(positions[match.end()]) for match in _END.finditer(text)]
        tokens = np.searchsorted(token_ends, ends) + 1
        return np.unique(np.append(tokens[tokens < len(ids)], len(ids)))
