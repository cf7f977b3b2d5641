"""Finding texts that are longer than the model's positions before training starts, instead of in the middle of it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.data.prepare import Prepared
from dragoman.models.limits import LengthLimit, first_exceeded
from dragoman.train.config import DataConfig


def check_lengths(
    limits: Sequence[LengthLimit], data: DataConfig, prepared: Prepared, sources: list[str], targets: list[str]
) -> None:
    """Compare every pair with what the model can read; sources, targets: the validation texts.

    Raises ConfigError that names the first line that is too long, and the settings to change.
    """
    if all(limit.positions is None for limit in limits):
        return
    dataset, tokenizers = prepared.dataset, prepared.tokenizers
    _check(limits, dataset.lengths, dataset.lines, str(data.train), data.cleaning.enabled)
    ids = zip(tokenizers.source.encode_batch(sources), tokenizers.target.encode_batch(targets), strict=True)
    lengths = np.array([[len(source), len(target)] for source, target in ids], np.int32)
    _check(limits, lengths, np.arange(1, len(lengths) + 1), str(data.valid), False)


def _check(
    limits: Sequence[LengthLimit], lengths: NDArray[np.int32], lines: NDArray[np.int64], corpus: str, cleaned: bool
) -> None:
    """lengths: (N, 2) tokens; lines: (N,); cleaned: whether cleaning could drop such pairs."""
    most = np.array([np.inf if limit.tokens is None else limit.tokens for limit in limits])
    rows = np.flatnonzero((lengths > most).any(1))
    if not len(rows):
        return
    found = first_exceeded(limits, *map(int, lengths[rows[0]]))
    assert found is not None
    limit, length = found
    drop = f"set data.cleaning.max_tokens={int(most.min())}, which drops them" if cleaned else "shorten those lines"
    longest = 1 + max(int(lengths[:, place].max()) for place, each in enumerate(limits) if each.positions is not None)
    raise ConfigError(
        f"{corpus}, line {lines[rows[0]]}: {limit.describe(length)}; {len(rows):,} of {len(lengths):,} pairs are too "
        f"long. Set {limit.setting}={longest} or more, or {drop}"
    )
