"""A check before training: no text may have more tokens than the model has positions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.models.interface import LengthLimit, first_exceeded
from dragoman.tasks.translation.config import DataConfig
from dragoman.tasks.translation.validation import HeldOutPairs

_BLOCK = 1 << 20
"""Number of pairs that are checked at once."""


def check_lengths(
    limits: Sequence[LengthLimit], data: DataConfig, prepared: PreparedCorpora, held_out: Sequence[HeldOutPairs]
) -> None:
    """Compare the lengths of all pairs with the limits of the model. held_out: the validation sets.

    Raises ConfigError if a pair is too long. The message names its line and the settings to change.
    """
    if all(limit.positions is None for limit in limits):
        return
    tokenizers = prepared.tokenizers
    for corpus, part in zip(data.corpora, prepared.dataset.parts, strict=True):
        _check_corpus(limits, part.lengths, part.lines, str(corpus), data.cleaning.enabled)
    for validation_set in held_out:
        tags = len(validation_set.corpus.all_tags)
        source_ids = tokenizers.source.encode_batch(validation_set.sources)
        target_ids = tokenizers.target.encode_batch(validation_set.targets)
        pairs = zip(source_ids, target_ids, strict=True)
        lengths = np.array([[tags + len(source), len(target)] for source, target in pairs], np.int32)
        _check_corpus(limits, lengths, np.arange(1, len(lengths) + 1), validation_set.name, False)


def _check_corpus(
    limits: Sequence[LengthLimit], lengths: NDArray[np.int32], lines: NDArray[np.int64], corpus: str, cleaning: bool
) -> None:
    """Check the lengths of one corpus.

    lengths: (N, 2) numbers of tokens. lines: (N,) line numbers. cleaning: True if the corpus is cleaned, so that
    cleaning can drop long pairs.
    """
    maximum = np.array([np.inf if limit.tokens is None else limit.tokens for limit in limits])
    first, count, longest = None, 0, np.zeros(2, dtype=np.int64)
    for start in range(0, len(lengths), _BLOCK):  # in blocks, because memory-mapped lengths can exceed the memory
        block = lengths[start : start + _BLOCK]
        rows = np.flatnonzero((block > maximum).any(1))
        count += len(rows)
        first = start + int(rows[0]) if first is None and len(rows) else first
        longest = np.maximum(longest, block.max(0))
    if first is None:
        return
    exceeded = first_exceeded(limits, *map(int, lengths[first]))
    assert exceeded is not None
    limit, length = exceeded
    drop = f"set data.cleaning.max_tokens={int(maximum.min())} to drop them" if cleaning else "shorten those lines"
    positions = 1 + max(int(longest[side]) for side, each in enumerate(limits) if each.positions is not None)
    raise ConfigError(
        f"{corpus}, line {lines[first]}: {limit.describe(length)}; {count:,} of {len(lengths):,} pairs are too "
        f"long. Set {limit.setting}={positions} or more, or {drop}"
    )
