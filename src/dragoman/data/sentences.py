"""`Sentences`: token ids of some sentences, one after another, as shards hold them and batches are made of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sentences:
    """ids: (sum of lengths,) integers, or (sum of lengths, n) float32 where they are vectors; lengths: (B,) int64."""

    ids: NDArray[Any]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int] | NDArray[Any]]) -> "Sentences":
        """Joined from one sequence a sentence; at least one."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        shape = next((np.shape(sentence) for sentence in sentences if len(sentence)), (0,))
        kind = np.int64 if len(shape) == 1 else np.float32
        filled = [np.asarray(sentence, dtype=kind) for sentence in sentences if len(sentence)]
        return cls(np.concatenate([np.zeros((0, *shape[1:]), kind), *filled]), lengths)
