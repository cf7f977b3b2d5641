"""`Prompts`: the starting points of a search or a sampler, one per sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.output import C, expand_configs
from dragoman.models.interface import Decoder, State, TensorTree, source_mask
from dragoman.text.symbols import BOS, EOS, PAD


@dataclass(frozen=True)
class Prompts:
    """The initial decoder state, the prompt tokens, and the maximum output lengths of B sentences; for a single use.

    state: the state, with B rows, of any decoder, with or without a source, before its first token. tokens: (B, T)
    int64, the prompts, padded on the left by `state.left_padding`. limits: (B,) int64, maximum output length of each
    sentence in tokens, including EOS. prefix_lengths: (B,) int64, number of tokens at the end of each prompt that
    belong to the output. source: (B, S) bool, True at source tokens, None without a source; used only by rules.
    """

    state: State
    tokens: Tensor
    limits: NDArray[np.int64]
    prefix_lengths: NDArray[np.int64]
    source: Tensor | None = None

    def __post_init__(self) -> None:
        if (exhausted := np.flatnonzero(self.limits <= self.prefix_lengths)).size:
            row = int(exhausted[0])
            raise ConfigError(
                f"prompt {row}: the prefix has {self.prefix_lengths[row]} tokens, but the maximum output length is "
                f"{self.limits[row]} tokens: raise the maximum length"
            )

    def __len__(self) -> int:
        """Return the number of sentences (B)."""
        return len(self.tokens)

    def prefixes(self) -> list[tuple[int, ...]]:
        """Return the prefix of each output as token ids."""
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
        required_tokens: Sequence[int] | None = None,
    ) -> "Prompts":
        """Return prompts for translations of the B sentences in `memory`.

        config: one shared value, or one per sentence. prefixes: token ids, without EOS, at the start of each output,
        including forbidden ones; the maximum length is raised so that at least one more token can follow.
        required_tokens: number of tokens that the constraints on each output need, added to its maximum length. Raises
        ConfigError for a prefix that is longer than the decoder allows.
        """
        source = source_mask(memory)
        configs = expand_configs(config, len(source))
        checked = _checked_prefixes(prefixes, len(source))
        tokens, left_padding = _left_padded([(BOS, *prefix) for prefix in checked], source.device)
        state = _start(decoder, memory, left_padding, any(config.needs_attention for config in configs))
        lengths = np.array([len(prefix) for prefix in checked], np.int64)
        limits = np.array(
            [config.max_length(tokens) for config, tokens in zip(configs, source.sum(1).tolist(), strict=True)],
            np.int64,
        )
        extra = np.array([0] * len(checked) if required_tokens is None else required_tokens, np.int64)
        limits = np.maximum(limits + extra, lengths + extra)
        if state.max_length is not None:
            limits = np.minimum(limits, state.max_length)
            if (too_long := np.flatnonzero(lengths >= state.max_length)).size:
                row = int(too_long[0])
                raise ConfigError(
                    f"prefix of sentence {row}: {lengths[row]} tokens, but the decoder has {state.max_length} "
                    "positions, one of them for the start of the sentence: shorten the prefix"
                )
        limits = np.maximum(limits, lengths + 1)
        return Prompts(_with_capacity(state, tokens, limits - lengths), tokens, limits, lengths, source)

    @staticmethod
    @torch.no_grad()
    def after(
        decoder: Decoder, texts: Sequence[Sequence[int]], limits: Sequence[int], device: torch.device
    ) -> "Prompts":
        """Return prompts for continuations of B texts by a decoder without a source; outputs do not include the texts.

        texts: token ids, at least one each, including BOS if the model was trained with it. limits: maximum number of
        tokens to generate after each text, including EOS; reduced if the decoder does not have enough positions. Raises
        ConfigError for a text that is empty or has more tokens than the decoder has positions.
        """
        tokens, left_padding = _left_padded(texts, device)
        state = _start(decoder, None, left_padding, False)
        lengths = np.array([len(text) for text in texts], np.int64)
        max_new_tokens = np.array(limits, np.int64)
        if state.max_length is not None:
            max_new_tokens = np.minimum(max_new_tokens, state.max_length - lengths + 1)
        if (invalid := np.flatnonzero((lengths < 1) | (max_new_tokens < 1))).size:
            row = int(invalid[0])
            positions = "any number of" if state.max_length is None else state.max_length
            raise ConfigError(
                f"prompt {row}: {lengths[row]} tokens with {limits[row]} to generate, but both must be at least 1, and "
                f"the decoder has {positions} positions"
            )
        return Prompts(_with_capacity(state, tokens, max_new_tokens), tokens, max_new_tokens, np.zeros_like(lengths))


def _start(decoder: Decoder, memory: TensorTree, left_padding: Tensor | None, attention: bool) -> State:
    """Start the decoder. Pass `left_padding` only if a row is padded, because some decoders do not support it."""
    return (
        decoder.start(memory, attention)
        if left_padding is None
        else decoder.start(memory, attention, left_padding=left_padding)
    )


def _with_capacity(state: State, tokens: Tensor, max_new_tokens: NDArray[np.int64]) -> State:
    """Set the capacity of the state for the prompts and all new tokens except the last.

    max_new_tokens: (B,), maximum number of new tokens.
    """
    return replace(state, capacity=tokens.size(1) + int(max_new_tokens.max(initial=1)) - 1)


def _left_padded(texts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Pad texts on the left: return token ids (B, T) int64 and the padding of each row (B,), None without padding."""
    longest = max(map(len, texts), default=1)
    left_padding = [longest - len(text) for text in texts]
    rows = [[PAD] * padding + list(text) for padding, text in zip(left_padding, texts, strict=True)]
    tokens = torch.tensor(rows, dtype=torch.int64, device=device).view(len(texts), longest)
    return tokens, torch.tensor(left_padding, device=device) if any(left_padding) else None


def _checked_prefixes(prefixes: Sequence[Sequence[int]] | None, count: int) -> Sequence[Sequence[int]]:
    if prefixes is None:
        return [()] * count
    if len(prefixes) != count:
        raise ConfigError(f"{len(prefixes)} prefixes for {count} sentences: pass one per sentence, which may be empty")
    for row, prefix in enumerate(prefixes):
        if EOS in prefix or any(token < 0 for token in prefix):
            raise ConfigError(f"prefix of sentence {row}: {list(prefix)} contains the end of sentence or a negative id")
    return prefixes
