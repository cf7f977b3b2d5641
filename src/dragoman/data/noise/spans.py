"""Noise that replaces spans of tokens by symbols: T5's span corruption and BART's text infilling."""

from math import ceil
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.data.batches.masking import MASK
from dragoman.data.noise.noise import BaseNoiseConfig, Noise, NoisyText, round_randomly
from dragoman.text.tokenizer import Tokenizer

SENTINEL = "extra_id_"
"""Prefix of the tags of sentinels: `<extra_id_0>`, `<extra_id_1>`, …, as in T5."""


class SpanCorruptionConfig(BaseNoiseConfig):
    """Each span is replaced by a sentinel, and the target consists of the sentinels, each followed by its span.

    Source: Raffel et al. 2020, sections 3.1.4 and 3.3.4. As in their figure 2, a final sentinel ends the target. All
    divisions of the text into spans with at least one token between them are equally likely.
    """

    restores: ClassVar = False
    kind: Literal["span_corruption"] = "span_corruption"
    rate: float = Field(0.15, gt=0, lt=1, description="Fraction of the tokens in spans.")
    mean_span: float = Field(3.0, ge=1, description="Mean length of a span in tokens.")

    def tags(self, length: int) -> tuple[str, ...]:
        """Return the sentinels of the maximum number of spans, and the final sentinel."""
        spans = max(1, ceil(ceil(self.rate * length) / self.mean_span))
        return tuple(f"{SENTINEL}{number}" for number in range(spans + 1))

    def build(self, tokenizer: Tokenizer) -> "SpanCorruption":
        """Build the noise for a vocabulary with sentinels."""
        return SpanCorruption(self, tokenizer)


class SpanCorruption(Noise):
    """Span corruption.

    A span that contains a special symbol is divided there. If there are not enough sentinels for the parts, the last
    parts are not corrupted.
    """

    def __init__(self, config: SpanCorruptionConfig, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._rate, self._mean_span = config.rate, config.mean_span
        ids = {**dict(zip(tokenizer.tags, tokenizer.tag_ids(tokenizer.tags), strict=True)), **tokenizer.marks}
        names = sorted(filter(_is_sentinel, ids), key=_sentinel_number)
        self._sentinels = np.array([ids[name] for name in names], np.int64)

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Replace spans of the source by sentinels. The target consists of the sentinels and their spans."""
        ids = text.source
        mask = self._draw_spans(len(ids), draw) & self.is_text(ids)
        starts = _starts(mask)
        numbers = np.cumsum(starts) - 1  # of the span at or before each token
        mask &= numbers < len(self._sentinels) - 1
        starts &= mask
        source = np.where(starts, self._sentinels[numbers * starts], ids)[starts | ~mask]
        used = int(starts.sum())
        target = np.insert(ids[mask], np.flatnonzero(starts[mask]), self._sentinels[:used])
        return NoisyText(source, np.append(target, self._sentinels[used]))

    def _draw_spans(self, length: int, draw: np.random.Generator) -> NDArray[np.bool_]:
        """Draw the spans of a text, (length,) bool. A text has at least one corrupted token."""
        if not length:
            return np.zeros(0, np.bool_)
        tokens = min(length, max(1, round_randomly(self._rate * length, draw)))
        spans = max(1, round_randomly(tokens / self._mean_span, draw))
        spans = min(spans, tokens, length - tokens + 1)
        return place_spans(divide(tokens, spans, draw), length, draw)


class InfillingConfig(BaseNoiseConfig):
    """Each span is replaced by a single mask, and masks are inserted at random positions as spans of length 0.

    The lengths of the spans have a Poisson distribution. Source: Lewis et al. 2020, section 2.2, "text infilling".
    """

    kind: Literal["infilling"] = "infilling"
    rate: float = Field(0.3, gt=0, lt=1, description="Fraction of the tokens in spans.")
    mean_span: float = Field(3.0, ge=1, description="λ, mean length of a span in tokens, including empty spans.")

    def tags(self, length: int) -> tuple[str, ...]:
        """Return the tag of masks."""
        return (MASK,)

    def build(self, tokenizer: Tokenizer) -> "Infilling":
        """Build the noise for a vocabulary with the tag `MASK`."""
        return Infilling(self, tokenizer)


class Infilling(Noise):
    """Text infilling. The length of the last span is reduced, so that the fraction of tokens in spans is the rate.

    A text does not become longer: in short texts, masks are not inserted if they would exceed the length of the text.
    """

    def __init__(self, config: InfillingConfig, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer)
        self._rate, self._mean_span = config.rate, config.mean_span
        (self._mask,) = tokenizer.tag_ids([MASK])

    def corrupt(self, text: NoisyText, draw: np.random.Generator) -> NoisyText:
        """Replace spans of the source by masks, and insert masks."""
        ids = text.source
        tokens = round_randomly(self._rate * len(ids), draw)
        if not tokens:
            return text
        lengths = self._draw_lengths(tokens, draw)
        spans = lengths[lengths > 0]
        inserted = min(len(lengths) - len(spans), tokens - len(spans))
        limit = len(ids) - tokens + 1  # spans need a token between them
        if len(spans) > limit:
            spans = np.append(spans[: limit - 1], spans[limit - 1 :].sum())
        mask = place_spans(draw.permutation(spans), len(ids), draw) & self.is_text(ids)
        starts = _starts(mask)
        source = np.where(starts, self._mask, ids)[starts | ~mask]
        positions = draw.integers(0, len(source) + 1, inserted)
        return text._replace(source=np.insert(source, positions, self._mask))

    def _draw_lengths(self, tokens: int, draw: np.random.Generator) -> NDArray[np.int64]:
        """Draw lengths of spans, including empty ones, until their sum is the number of tokens."""
        lengths = np.zeros(0, np.int64)
        while lengths.sum() < tokens:
            lengths = np.append(lengths, draw.poisson(self._mean_span, 1 + int(tokens / self._mean_span)))
        sums = np.cumsum(lengths)
        count = int(np.searchsorted(sums, tokens)) + 1
        lengths = lengths[:count]
        lengths[-1] -= sums[count - 1] - tokens
        return lengths


def divide(total: int, parts: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Divide a number into parts of at least 1. All divisions are equally likely."""
    cuts = np.sort(draw.choice(total - 1, parts - 1, replace=False)) + 1 if parts > 1 else np.zeros(0, np.int64)
    return np.diff(cuts, prepend=0, append=total)


def place_spans(spans: NDArray[np.int64], length: int, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Place spans of these lengths, in order, in a text with at least one token between them, (length,) bool."""
    gaps = divide(length - int(spans.sum()) + 2, len(spans) + 1, draw)
    gaps[[0, -1]] -= 1  # a span may be at the start or at the end
    sizes = np.empty(2 * len(spans) + 1, np.int64)
    sizes[::2], sizes[1::2] = gaps, spans
    return np.repeat(np.arange(len(sizes)) % 2 == 1, sizes)


def _starts(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the first token of each run of True values."""
    starts = mask.copy()
    starts[1:] &= ~mask[:-1]
    return starts


def _is_sentinel(tag: str) -> bool:
    return tag.startswith(SENTINEL) and tag.removeprefix(SENTINEL).isdecimal()


def _sentinel_number(tag: str) -> int:
    return int(tag.removeprefix(SENTINEL))
