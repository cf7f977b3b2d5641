"""Restrictions on outputs of search and sampling: forbidden tokens, minimum length, and repeated n-grams."""

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
    """Forbids tokens: different ones for each sentence, or the same for all."""

    def __init__(self, tokens: Sequence[Collection[int]], device: torch.device) -> None:
        """tokens: ids of forbidden tokens, one collection per sentence."""
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
        """lengths: minimum number of tokens of each sentence, without EOS."""
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

    All tokens that were read count, including a prefix and the prompt of a language model. A step compares the last
    n − 1 tokens with those at each earlier position.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """sizes: n of each sentence; 0 for no restriction."""
        self._sizes = np.array(sizes, np.int64)
        self._distinct = sorted({size for size in sizes if size})

    def start(self, prompts: Prompts) -> TensorTree:
        """(B, 0): the tokens read so far."""
        return prompts.tokens[:, :0]

    def read(self, state: TensorTree, step: Step) -> TensorTree:
        """(R, T + 1): the tokens read so far, −1 for padding."""
        tokens = step.tokens if step.left_padding is None else step.tokens.masked_fill(~step.read, _PADDING)
        return torch.cat([state, tokens], 1)

    def restrict(self, logits: Tensor, step: Step, state: TensorTree) -> None:
        """Forbid tokens that would repeat an n-gram."""
        for size in self._distinct:
            wanted = np.flatnonzero((self._sizes[step.sentences] == size).repeat(step.beam_size))
            if len(wanted) and state.size(1) >= size:
                rows = torch.from_numpy(wanted).to(state.device)
                read = state if len(rows) == len(state) else state[rows]
                where, tokens = _completing(read, size)
                logits[rows[where], tokens] = -torch.inf


def _completing(read: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the rows and ids of tokens that follow an earlier copy of the last size − 1 tokens of a row of (R, T)."""
    positions = read.size(1) - size + 1
    matches = read[:, size - 1 :] != _PADDING  # (R, positions)
    for offset in range(size - 1):
        matches &= read[:, offset : offset + positions] == read[:, positions + offset, None]
    rows, found = matches.nonzero(as_tuple=True)
    return rows, read[rows, found + size - 1]


def restrictions(configs: Sequence[OutputConfig], prompts: Prompts) -> list[Restriction]:
    """The restrictions that the config of at least one sentence sets.

    Raises ConfigError if a minimum length is relative to the source but there is no source.
    """
    found: list[Restriction] = []
    if any(config.forbid for config in configs):
        found.append(ForbiddenTokens([config.forbid for config in configs], prompts.tokens.device))
    if any(config.minimum_length or config.minimum_factor for config in configs):
        found.append(MinimumLength(_shortest(configs, prompts)))
    if any(config.no_repeat_ngram for config in configs):
        found.append(NoRepeatNgram([config.no_repeat_ngram for config in configs]))
    return found


def _shortest(configs: Sequence[OutputConfig], prompts: Prompts) -> list[int]:
    if prompts.source is not None:
        sources = prompts.source.sum(1).tolist()
    elif any(config.minimum_factor for config in configs):
        raise ConfigError("search.minimum_factor is relative to the source, but there is no source: use minimum_length")
    else:
        sources = [1] * len(configs)
    return [config.min_length(source) for config, source in zip(configs, sources, strict=True)]
