"""Restrictions on outputs: forbidden tokens, a minimum length, and no repeated n-grams."""

from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.output import OutputConfig
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Restriction, Step
from dragoman.models.interface import TensorTree
from dragoman.text.symbols import EOS


class ForbiddenTokens(Restriction):
    """Forbids a set of tokens in the output of each sentence."""

    def __init__(self, tokens: Sequence[Collection[int]], device: torch.device) -> None:
        """tokens: ids of the forbidden tokens of each sentence."""
        sets = [sorted(set(each)) for each in tokens]
        self._same = all(each == sets[0] for each in sets)
        self._largest = max((each[-1] for each in sets if each), default=-1)
        longest = max(map(len, sets), default=0)
        padded = [each + [-1] * (longest - len(each)) for each in sets]
        self._tokens = torch.tensor(padded, dtype=torch.int64, device=device).view(len(sets), longest)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Forbid the tokens. Raises ConfigError for a token that is not in the vocabulary."""
        if self._largest >= logits.size(1):
            raise ConfigError(
                f"forbid contains token {self._largest}, but the vocabulary has only {logits.size(1)} tokens"
            )
        if self._same:
            logits.index_fill_(1, self._tokens[0], -torch.inf)
            return
        tokens = step.of_hypotheses(self._tokens)  # (R, N), padded with −1
        rows, columns = (tokens >= 0).nonzero(as_tuple=True)
        logits[rows, tokens[rows, columns]] = -torch.inf


class MinimumLength(Restriction):
    """Forbids EOS in outputs that are shorter than the minimum length of their sentence."""

    def __init__(self, lengths: Sequence[int]) -> None:
        """lengths: minimum output length of each sentence in tokens, without EOS."""
        self._lengths = np.array(lengths, np.int64)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Forbid EOS in outputs that are too short."""
        short = step.lengths <= self._lengths[step.sentences]
        if short.all():
            logits[:, EOS] = -torch.inf
        elif short.any():
            rows = torch.from_numpy(short).to(logits.device).repeat_interleave(step.beam_size)
            logits[:, EOS].masked_fill_(rows, -torch.inf)


_PADDING = -1


class NoRepeatNgram(Restriction):
    """Forbids tokens that would repeat an n-gram of the output (Paulus et al. 2018, section 2.5).

    All previous tokens count, including a prefix and the prompt of a language model. Each step compares the last n − 1
    tokens with those at each earlier position.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: n for each sentence; 0 for no restriction."""
        self._sizes = np.array(sizes, np.int64)
        self._distinct = sorted({size for size in sizes if size})

    def start(self, prompts: Prompts) -> TensorTree:
        """Return (B, 0), an empty sequence of previous tokens."""
        return prompts.tokens[:, :0]

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """Return (R, T + N), all previous tokens, with −1 for padding."""
        tokens = step.tokens if step.left_padding is None else step.tokens.masked_fill(~step.read, _PADDING)
        return torch.cat([state, tokens], 1)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Forbid tokens that would repeat an n-gram."""
        for size in self._distinct:
            selected = np.flatnonzero((self._sizes[step.sentences] == size).repeat(step.beam_size))
            if len(selected) and state.size(1) >= size:
                rows = torch.from_numpy(selected).to(state.device)
                read = state if len(rows) == len(state) else state[rows]
                matched, tokens = _repeating_tokens(read, size)
                logits[rows[matched], tokens] = -torch.inf


def _repeating_tokens(tokens: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the rows and ids of tokens that would repeat an n-gram.

    tokens: (R, T). A token would repeat an n-gram if it follows an earlier copy of the row's last size − 1 tokens.
    """
    positions = tokens.size(1) - size + 1
    matches = tokens[:, size - 1 :] != _PADDING  # (R, positions)
    for offset in range(size - 1):
        matches &= tokens[:, offset : offset + positions] == tokens[:, positions + offset, None]
    rows, starts = matches.nonzero(as_tuple=True)
    return rows, tokens[rows, starts + size - 1]


def restrictions(configs: Sequence[OutputConfig], prompts: Prompts) -> list[Restriction]:
    """Return the restrictions that are set in the config of at least one sentence.

    Raises ConfigError if a minimum length is relative to the source but the model has no source.
    """
    result: list[Restriction] = []
    if any(config.forbid for config in configs):
        result.append(ForbiddenTokens([config.forbid for config in configs], prompts.tokens.device))
    if any(config.minimum_length or config.minimum_factor for config in configs):
        result.append(MinimumLength(_minimum_lengths(configs, prompts)))
    if any(config.no_repeat_ngram for config in configs):
        result.append(NoRepeatNgram([config.no_repeat_ngram for config in configs]))
    return result


def _minimum_lengths(configs: Sequence[OutputConfig], prompts: Prompts) -> list[int]:
    if prompts.source is not None:
        sources = prompts.source.sum(1).tolist()
    elif any(config.minimum_factor for config in configs):
        raise ConfigError(
            "search.minimum_factor is relative to the source, but the model has no source: use search.minimum_length"
        )
    else:
        sources = [1] * len(configs)
    return [config.min_length(source) for config, source in zip(configs, sources, strict=True)]
