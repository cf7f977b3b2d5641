"""`Prompts`: what a search or a sampler starts from, one for each sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.output import C, each
from dragoman.models.interface import Decoder, State, TensorTree, source_mask
from dragoman.text.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class Prompts:
    """A started decoder, what it reads before it writes, and how long outputs may be, for B sentences. To be used once.

    state: of B rows, nothing read yet; of any decoder, with a source or without. tokens: (B, T) int64, to be read
    first, padded on the left by `state.left_padding`. limits: (B,) int64, the longest output of each sentence in
    tokens, its end counted. prefix_lengths: (B,) int64, how many of the tokens, the last ones, are the beginning of the
    output itself. source: (B, S) bool, True at source tokens, None without a source; only rules ask for it.
    """

    state: State
    tokens: Tensor
    limits: NDArray[np.int64]
    prefix_lengths: NDArray[np.int64]
    source: Tensor | None = None

    def __post_init__(self) -> None:
        if (full := np.flatnonzero(self.limits <= self.prefix_lengths)).size:
            row = int(full[0])
            raise ConfigError(
                f"prompt {row}: an output of at most {self.limits[row]} tokens that begins with "
                f"{self.prefix_lengths[row]} given ones has no room for one more: raise the limit"
            )

    def __len__(self) -> int:
        """B."""
        return len(self.tokens)

    def prefixes(self) -> list[tuple[int, ...]]:
        """The tokens that each output begins with."""
        return [
            tuple(row[len(row) - length :])
            for row, length in zip(self.tokens.tolist(), self.prefix_lengths.tolist(), strict=True)
        ]

    @staticmethod
    @torch.no_grad()
    def of(
        decoder: Decoder,
        memory: TensorTree,
        config: C | Sequence[C],
        prefixes: Sequence[Sequence[int]] | None = None,
        least: Sequence[int] | None = None,
    ) -> "Prompts":
        """For translations of a memory's B sentences, each of which may begin with a prefix.

        config: one for all or one a sentence. prefixes: token ids (no EOS) that each output starts with, forbidden ones
        allowed; the longest output leaves room for at least one token after them. least: tokens that must be written
        in each output; it may be longer by so many. Raises ConfigError where the prefixes do not fit.
        """
        source = source_mask(memory)
        configs = each(config, len(source))
        begun = _checked(prefixes, len(source))
        tokens, left_padding = _left_padded([(BOS, *prefix) for prefix in begun], source.device)
        state = _started(decoder, memory, left_padding, any(config.attends for config in configs))
        lengths = np.array([len(prefix) for prefix in begun], np.int64)
        limits = np.array(
            [config.max_length(tokens) for config, tokens in zip(configs, source.sum(1).tolist(), strict=True)],
            np.int64,
        )
        needed = np.array([0] * len(begun) if least is None else least, np.int64)
        limits = np.maximum(limits + needed, lengths + needed)
        if state.max_length is not None:
            limits = np.minimum(limits, state.max_length)
            if (too_long := np.flatnonzero(lengths >= state.max_length)).size:
                row = int(too_long[0])
                raise ConfigError(
                    f"prefix of sentence {row}: {lengths[row]} tokens, but the decoder has {state.max_length} "
                    "positions, one of them for the beginning of the sentence: shorten the prefix"
                )
        limits = np.maximum(limits, lengths + 1)
        return Prompts(_with_room(state, tokens, limits - lengths), tokens, limits, lengths, source)

    @staticmethod
    @torch.no_grad()
    def after(
        decoder: Decoder, texts: Sequence[Sequence[int]], limits: Sequence[int], device: torch.device
    ) -> "Prompts":
        """For what a decoder without a source writes after B texts, which are not part of it.

        texts: token ids, at least one each, a beginning of sentence among them where the model was trained with one.
        limits: the most tokens to be written after each, an end counted; less where the decoder's positions end.
        Raises ConfigError for a text that is empty or longer than the decoder's positions.
        """
        tokens, left_padding = _left_padded(texts, device)
        state = _started(decoder, None, left_padding, False)
        lengths = np.array([len(text) for text in texts], np.int64)
        most = np.array(limits, np.int64)
        if state.max_length is not None:
            most = np.minimum(most, state.max_length - lengths + 1)
        if (wrong := np.flatnonzero((lengths < 1) | (most < 1))).size:
            row = int(wrong[0])
            positions = "any number of" if state.max_length is None else state.max_length
            raise ConfigError(
                f"prompt {row}: {lengths[row]} tokens with {limits[row]} to write, but a prompt has at least one, at "
                f"least one is written, and the decoder has {positions} positions"
            )
        return Prompts(_with_room(state, tokens, most), tokens, most, np.zeros_like(lengths))


def _started(decoder: Decoder, memory: TensorTree, left_padding: Tensor | None, attention: bool) -> State:
    """A decoder without support for left padding can still be searched if no row is padded."""
    return (
        decoder.start(memory, attention)
        if left_padding is None
        else decoder.start(memory, attention, left_padding=left_padding)
    )


def _with_room(state: State, tokens: Tensor, most: NDArray[np.int64]) -> State:
    """With room for what is read, these tokens and all that are written but the last; most: (B,), written at most."""
    return replace(state, capacity=tokens.size(1) + int(most.max(initial=1)) - 1)


def _left_padded(texts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """(B, T) int64, and how far each row is padded, None where none is."""
    longest = max(map(len, texts), default=1)
    left_padding = [longest - len(text) for text in texts]
    rows = [[PAD] * padding + list(text) for padding, text in zip(left_padding, texts, strict=True)]
    tokens = torch.tensor(rows, dtype=torch.int64, device=device).view(len(texts), longest)
    return tokens, torch.tensor(left_padding, device=device) if any(left_padding) else None


def _checked(prefixes: Sequence[Sequence[int]] | None, count: int) -> Sequence[Sequence[int]]:
    if prefixes is None:
        return [()] * count
    if len(prefixes) != count:
        raise ConfigError(
            f"{len(prefixes)} prefixes for {count} sentences; give one a sentence, empty ones where none is wanted"
        )
    for row, prefix in enumerate(prefixes):
        if EOS in prefix or any(token < 0 for token in prefix):
            raise ConfigError(f"prefix of sentence {row}: {list(prefix)} holds the end of sentence or a negative id")
    return prefixes
