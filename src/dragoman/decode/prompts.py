"""`Prompts`: the starting points of a search or a sampler, one per sentence."""

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
    """The initial state of a decoder, the tokens that it reads first, and the maximum output lengths, for B sentences.

    Prompts can be used once. state: the state of any decoder, with or without a source, before it has read tokens; B
    rows. tokens: (B, T) int64, read first, padded on the left by `state.left_padding`. limits: (B,) int64, maximum
    output length of each sentence in tokens, including EOS. prefix_lengths: (B,) int64, number of tokens at the end of
    each prompt that belong to the output. source: (B, S) bool, True at source tokens, None without a source; only rules
    use it.
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
                f"prompt {row}: an output of at most {self.limits[row]} tokens that begins with a prefix of "
                f"{self.prefix_lengths[row]} tokens has no room for another token: raise the limit"
            )

    def __len__(self) -> int:
        """The number of sentences (B)."""
        return len(self.tokens)

    def prefixes(self) -> list[tuple[int, ...]]:
        """The tokens with which each output begins."""
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
        """Prompts for translations of the B sentences in `memory`, each of which may begin with a prefix.

        config: one shared value, or one per sentence. prefixes: token ids (without EOS) with which each output begins,
        which may include forbidden ones; the maximum length is raised to leave room for at least one more token. least:
        number of tokens that each output has to contain, added to its maximum length. Raises ConfigError for prefixes
        that do not fit.
        """
        source = source_mask(memory)
        configs = each(config, len(source))
        checked = _checked(prefixes, len(source))
        tokens, left_padding = _left_padded([(BOS, *prefix) for prefix in checked], source.device)
        state = _started(decoder, memory, left_padding, any(config.attends for config in configs))
        lengths = np.array([len(prefix) for prefix in checked], np.int64)
        limits = np.array(
            [config.max_length(tokens) for config, tokens in zip(configs, source.sum(1).tolist(), strict=True)],
            np.int64,
        )
        needed = np.array([0] * len(checked) if least is None else least, np.int64)
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
        """Prompts for continuations of B texts by a decoder without a source; the texts are not part of the outputs.

        texts: token ids, at least one each, including BOS if the model was trained with it. limits: maximum number of
        tokens to generate after each text, including EOS; reduced if the decoder does not have enough positions. Raises
        ConfigError for a text that is empty or has more tokens than the decoder has positions.
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
                f"prompt {row}: {lengths[row]} tokens with {limits[row]} to generate; both must be at least 1, and the "
                f"decoder has {positions} positions"
            )
        return Prompts(_with_room(state, tokens, most), tokens, most, np.zeros_like(lengths))


def _started(decoder: Decoder, memory: TensorTree, left_padding: Tensor | None, attention: bool) -> State:
    """Start the decoder; if no row is padded, without `left_padding`, which some decoders do not support."""
    return (
        decoder.start(memory, attention)
        if left_padding is None
        else decoder.start(memory, attention, left_padding=left_padding)
    )


def _with_room(state: State, tokens: Tensor, most: NDArray[np.int64]) -> State:
    """Set the capacity for these tokens and all generated tokens but the last. most: (B,), maximum number of them."""
    return replace(state, capacity=tokens.size(1) + int(most.max(initial=1)) - 1)


def _left_padded(texts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Return token ids (B, T) int64, and the padding of each row (B,), None if no row is padded."""
    longest = max(map(len, texts), default=1)
    left_padding = [longest - len(text) for text in texts]
    rows = [[PAD] * padding + list(text) for padding, text in zip(left_padding, texts, strict=True)]
    tokens = torch.tensor(rows, dtype=torch.int64, device=device).view(len(texts), longest)
    return tokens, torch.tensor(left_padding, device=device) if any(left_padding) else None


def _checked(prefixes: Sequence[Sequence[int]] | None, count: int) -> Sequence[Sequence[int]]:
    if prefixes is None:
        return [()] * count
    if len(prefixes) != count:
        raise ConfigError(f"{len(prefixes)} prefixes for {count} sentences; give one per sentence, which may be empty")
    for row, prefix in enumerate(prefixes):
        if EOS in prefix or any(token < 0 for token in prefix):
            raise ConfigError(f"prefix of sentence {row}: {list(prefix)} contains the end of sentence or a negative id")
    return prefixes
