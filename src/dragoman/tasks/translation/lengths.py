"""Detection of texts that exceed the model's positions, before training starts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.models.interface import LengthLimit, first_exceeded
from dragoman.tasks.translation.config import DataConfig
from dragoman.tasks.translation.validation import HeldOut

_AT_ONCE = 1 << 20
"""Number of pairs that are checked at once."""


def check_lengths(
    limits: Sequence[LengthLimit], data: DataConfig, prepared: PreparedCorpora, held_out: Sequence[HeldOut]
) -> None:
    """Compare the lengths of all pairs with the limits of the model. held_out: the validation sets.

    Raises ConfigError, naming the first line that is too long and the settings to change.
    """
    if all(limit.positions is None for limit in limits):
        return
    tokenizers = prepared.tokenizers
    for corpus, part in zip(data.corpora, prepared.dataset.parts, strict=True):
        _check(limits, part.lengths, part.lines, str(corpus), data.cleaning.enabled)
    for each in held_out:
        tags = len(each.corpus.all_tags)
        ids = zip(
            tokenizers.source.encode_batch(each.sources), tokenizers.target.encode_batch(each.targets), strict=True
        )
        lengths = np.array([[tags + len(source), len(target)] for source, target in ids], np.int32)
        _check(limits, lengths, np.arange(1, len(lengths) + 1), each.name, False)


def _check(
    limits: Sequence[LengthLimit], lengths: NDArray[np.int32], lines: NDArray[np.int64], corpus: str, cleaned: bool
) -> None:
    """Check one corpus. lengths: (N, 2) tokens; lines: (N,); cleaned: whether cleaning could drop long pairs."""
    most = np.array([np.inf if limit.tokens is None else limit.tokens for limit in limits])
    first, count, longest = None, 0, np.zeros(2, dtype=np.int64)
    for start in range(0, len(lengths), _AT_ONCE):  # memory-mapped, and possibly larger than memory
        block = lengths[start : start + _AT_ONCE]
        rows = np.flatnonzero((block > most).any(1))
        count += len(rows)
        first = start + int(rows[0]) if first is None and len(rows) else first
        longest = np.maximum(longest, block.max(0))
    if first is None:
        return
    found = first_exceeded(limits, *map(int, lengths[first]))
    assert found is not None
    limit, length = found
    drop = f"set data.cleaning.max_tokens={int(most.min())}, which drops them" if cleaned else "shorten those lines"
    enough = 1 + max(int(longest[side]) for side, each in enumerate(limits) if each.positions is not None)
    raise ConfigError(
        f"{corpus}, line {lines[first]}: {limit.describe(length)}; {count:,} of {len(lengths):,} pairs are too "
        f"long. Set {limit.setting}={enough} or more, or {drop}"
    )
