"""The batch plan, which depends only on the lengths of sentences, the weights of corpora, the seed and the epoch.

A plan is computed block by block, so that memory does not grow with the corpus. The rows of a block are sampled from
all corpora (see `EpochRows`), sorted by length, and divided into batches, which are shuffled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dragoman.base.settings.config import Config
from dragoman.data.batches.epoch import EpochRows, Part
from dragoman.data.batches.shapes import round_down_rows, round_up_columns

_TOKENS = 4096
_TOKENS_BY_SIZE = {20_000: 512, 100_000: 1024, 300_000: 2048}
"""Token budgets for corpora with fewer pairs than the key. On small corpora, many small updates are more efficient than
a few large updates (docs/EXPERIMENTS.md)."""


class BatchConfig(Config):
    """Batch size."""

    tokens: int | None = Field(
        default=None,
        ge=1,
        description="Token budget of a batch: the number of sentences times the length of the longest source or "
        "target, including padding and end-of-sentence symbols. A single pair that exceeds the budget forms a separate "
        "batch. null: 512 for corpora with fewer than 20,000 pairs, 1,024 with fewer than 100,000, 2,048 with fewer "
        "than 300,000, and 4,096 for larger corpora, as in the recipes of tensor2tensor and fairseq for one device.",
    )
    sentences: int | None = Field(
        default=None, ge=1, description="Maximum number of sentence pairs per batch; null: no limit."
    )
    packed: bool | Literal["auto"] = Field(
        "auto",
        description="Compute position-wise layers without padding. The budget `tokens` then counts the tokens of each "
        "side without padding. Supported by Transformers with attention of kind soft, window or hard. auto: packed on "
        "a GPU and in bfloat16, whose kernels are fast for few shapes only; padded in float32 on a CPU.",
    )
    few_shapes: bool | Literal["auto"] = Field(
        "auto",
        description="Pad batches to lengths that are multiples of 8, at most that of the longest example, and round "
        "their numbers of sentences, so that they have few different shapes. auto: on a GPU.",
    )

    def with_size(self, pairs: int | None = None) -> "BatchConfig":
        """Return the settings with a token budget for a corpus of `pairs` sentence pairs, unless a budget is set.

        pairs: None for a corpus that does not consist of pairs.
        """
        if self.tokens is not None:
            return self
        budgets = (tokens for limit, tokens in _TOKENS_BY_SIZE.items() if pairs is not None and pairs < limit)
        return self.model_copy(update={"tokens": next(budgets, _TOKENS)})

    def with_stored_choices(self, stored: "BatchConfig") -> "BatchConfig":
        """Return the settings with the choices of a stored run, unless they are set."""
        tokens = stored.tokens if self.tokens is None else self.tokens
        packed = stored.packed if self.packed == "auto" else self.packed
        few_shapes = stored.few_shapes if self.few_shapes == "auto" else self.few_shapes
        return self.model_copy(update={"tokens": tokens, "packed": packed, "few_shapes": few_shapes})


_CACHED_BLOCKS = 2
"""Number of blocks whose batches are cached. The loader reads one block while another may be distributed to the ranks.
"""


@dataclass(frozen=True)
class BatchPlan:
    """The batches of an epoch.

    batches: dataset rows (int64) of each batch, in training order. padding_waste: for each side, the fraction of
    padding among all symbols of the epoch (0 to 1).
    """

    batches: Sequence[NDArray[np.int64]]
    padding_waste: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.batches)


def plan_epoch(
    lengths: NDArray[np.int32],
    config: BatchConfig,
    seed: int,
    epoch: int,
    parts: Sequence[Part] = (),
    *,
    special: int = 1,
) -> BatchPlan:
    """Put every row of the epoch into exactly one batch. The plan depends only on the arguments.

    lengths: (N, sides), numbers of tokens. config: settings with a token budget, see `BatchConfig.with_size`. parts:
    the corpora in the order of the rows; empty: a single corpus, which is read once. special: number of special symbols
    that a batch adds to each side, see `Dataset`.

    An epoch of up to a few hundred thousand rows is a single block. For larger epochs, counting the batches takes about
    0.4 s per million rows, and the batches themselves are computed on demand.
    """
    if len(lengths) == 0:
        return BatchPlan([], (0.0,) * lengths.shape[1])
    rows = EpochRows(parts or [Part(len(lengths), 1.0)], seed, epoch)
    batches = BlockBatches(lengths, config, rows, (seed, epoch), special)
    return BatchPlan(batches.block(0) if len(rows) == 1 else batches, batches.padding_waste)


class BlockBatches(Sequence[NDArray[np.int64]]):
    """The batches of an epoch. Only the batches of the most recently used blocks are in memory."""

    def __init__(
        self, lengths: NDArray[np.int32], config: BatchConfig, rows: EpochRows, seed: tuple[int, int], special: int
    ) -> None:
        """seed: the seed of the run and the number of the epoch."""
        self._lengths, self._config, self._rows, self._seed, self._special = lengths, config, rows, seed, special
        self._cache: dict[int, list[NDArray[np.int64]]] = {}
        counts, (symbols, padded) = [], np.zeros((2, lengths.shape[1]), np.int64)
        for number in range(len(rows)):
            _, widths, starts = self._divide(number, self._generator(number))
            counts.append(len(starts))
            sizes = np.diff(starts, append=len(widths))
            symbols += widths.sum(axis=0)
            if config.packed is True:
                padded += len(starts) * (config.tokens or 0)
            else:
                longest = np.maximum.reduceat(widths, starts, axis=0)
                columns = round_up_columns(longest) if config.few_shapes is True else longest
                padded += (columns * sizes[:, None]).sum(axis=0)
        self._ends = np.cumsum(counts)
        self.padding_waste = tuple((1 - symbols / padded).tolist())

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, index: int) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.int64]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        index %= len(self)
        number = int(np.searchsorted(self._ends, index, side="right"))
        first = int(self._ends[number - 1]) if number else 0
        return self.block(number)[index - first]

    def block(self, number: int) -> list[NDArray[np.int64]]:
        """Return the batches of a block, in training order."""
        if number not in self._cache:
            rng = self._generator(number)
            rows, _, starts = self._divide(number, rng)
            batches = np.split(rows, starts[1:])
            while len(self._cache) >= _CACHED_BLOCKS:
                self._cache.pop(next(iter(self._cache)), None)
            self._cache[number] = [batches[index] for index in rng.permutation(len(batches))]
        return self._cache[number]

    def _generator(self, number: int) -> np.random.Generator:
        """Return the random generator of a block. A single block is seeded by the epoch alone."""
        return np.random.default_rng(self._seed if len(self._rows) == 1 else (*self._seed, number))

    def _divide(
        self, number: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of a block in batch order, the number of symbols of each side, and the start of each batch.

        Rows are sorted by target length, then by source length, with ties in random order, and divided into the largest
        batches within the budget. The order of source lengths alternates between ascending and descending, so that
        neighbouring rows have similar source lengths where the target length changes.
        """
        rows = self._rows.block(number)
        widths = self._lengths[rows].astype(np.int64) + self._special
        *sources, target = widths.T
        direction = np.where(target % 2 == 0, 1, -1)
        order = np.lexsort((rng.permutation(len(rows)), *(direction * source for source in sources), target))
        widths = widths[order]
        starts = _packed_starts if self._config.packed is True else _batch_starts
        return rows[order], widths, starts(widths, self._config)


def _batch_starts(sides: NDArray[np.int64], config: BatchConfig) -> NDArray[np.int64]:
    """Return the index of the first row of each batch. sides: (N, sides), the length of each row, in order."""
    assert config.tokens is not None
    widths = sides.max(axis=1)
    few_shapes = config.few_shapes is True
    if few_shapes:
        widths = round_up_columns(widths)
    limit = config.sentences or len(widths)
    starts = []
    start = 0
    while start < len(widths):
        starts.append(start)
        # an upper bound for the number of rows, because the running maximum is at least the first width
        most = max(1, min(limit, config.tokens // int(widths[start])))
        widest = np.maximum.accumulate(widths[start : start + most])
        symbols = widest * np.arange(1, len(widest) + 1)
        rows = max(1, int(np.searchsorted(symbols, config.tokens, side="right")))
        start += round_down_rows(rows) if few_shapes else rows
    return np.array(starts, dtype=np.int64)


_PADDED_FRACTION = 2
"""Maximum size of a packed batch with padding, as a multiple of the budget. Attention computes padded states."""


def _packed_starts(sides: NDArray[np.int64], config: BatchConfig) -> NDArray[np.int64]:
    """Return the index of the first row of each packed batch.

    Each side of a batch has fewer tokens than the budget, because packed states contain filler, and with padding at
    most `_PADDED_FRACTION` budgets. sides: (N, sides), the length of each row, sorted by the last side.
    """
    assert config.tokens is not None
    starts = []
    start = 0
    while start < len(sides):
        starts.append(start)
        # an upper bound for the number of rows, because the last side of all following rows is at least as long
        most = max(1, min(config.sentences or len(sides), config.tokens // max(1, int(sides[start, -1]))))
        rows = sides[start : start + most]
        counts = np.arange(1, len(rows) + 1)[:, None]
        padded = np.maximum.accumulate(rows, axis=0) * counts
        fits = (np.cumsum(rows, axis=0) < config.tokens) & (padded <= _PADDED_FRACTION * config.tokens)
        start += max(1, int(fits.all(axis=1).sum()))
    return np.array(starts, dtype=np.int64)
