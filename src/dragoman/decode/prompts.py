"""`Prompts`: what a search or a sampler starts from, one for each sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.output import C, each
from dragoman.models.interface import Decoder, State, Tree, source_keep
from dragoman.text.special import BOS, EOS


@dataclass(frozen=True)
class Prompts:
    """A started decoder, what it reads first, and how long outputs may be, for B sentences.

    state: of B rows, nothing read yet; of any decoder, with a source or without. tokens: (B, T) int64, what is read
    first. limits: (B,) int64, the longest output of each sentence in tokens, its end counted. source: (B, S) bool, True
    at source tokens, None without a source; only rules ask for it. forced: (B, n) int64, tokens that an output begins
    with, −1 where nothing is forced.
    """

    state: State
    tokens: Tensor
    limits: NDArray[np.int64]
    source: Tensor | None = None
    forced: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        """B."""
        return len(self.tokens)

    @staticmethod
    @torch.no_grad()
    def of(
        decoder: Decoder,
        memory: Tree,
        config: C | Sequence[C],
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> "Prompts":
        """For translations of a memory's B sentences, each of which may begin with a prefix.

        config: one for all or one a sentence. prefixes: token ids (no EOS) that each output starts with, forbidden ones
        allowed; the longest output leaves room for at least one token after them. Raises ConfigError where the prefixes
        do not fit.
        """
        source = source_keep(memory)
        configs = each(config, len(source))
        forced = _table(prefixes, len(source))
        state = decoder.start(memory, attention=any(config.attends for config in configs))
        lengths = source.sum(1).tolist()
        limits = np.array(
            [config.max_length(tokens) for config, tokens in zip(configs, lengths, strict=True)], np.int64
        )
        needed = (forced >= 0).sum(1) + 1
        if state.limit is not None:
            limits = np.minimum(limits, state.limit)
            if (too_long := np.flatnonzero(needed > state.limit)).size:
                row = int(too_long[0])
                raise ConfigError(
                    f"prefix of sentence {row}: {needed[row] - 1} tokens, but the decoder has {state.limit} positions, "
                    "one of them for the beginning of the sentence: shorten the prefix"
                )
        tokens = torch.full((len(source), 1), BOS, dtype=torch.int64, device=source.device)
        return Prompts(state, tokens, np.maximum(limits, needed), source, forced)


def _table(prefixes: Sequence[Sequence[int]] | None, count: int) -> NDArray[np.int64]:
    """(B, longest prefix) int64, −1 where nothing is forced."""
    if prefixes is None:
        return np.full((count, 0), -1, dtype=np.int64)
    if len(prefixes) != count:
        raise ConfigError(
            f"{len(prefixes)} prefixes for {count} sentences; give one a sentence, empty ones where none is wanted"
        )
    table = np.full((count, max((len(prefix) for prefix in prefixes), default=0)), -1, dtype=np.int64)
    for row, prefix in enumerate(prefixes):
        if EOS in prefix or any(token < 0 for token in prefix):
            raise ConfigError(f"prefix of sentence {row}: {list(prefix)} holds the end of sentence or a negative id")
        table[row, : len(prefix)] = prefix
    return table
