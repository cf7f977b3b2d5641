"""What is there before the first token is written: a decoder, and rules, that have read the prompts."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.forced import log_probabilities
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.carried import Carried
from dragoman.decode.rules.rule import Rule, Step
from dragoman.models.interface import Decoder, Output, State


class Beginning(NamedTuple):
    """One hypothesis for each of B prompts.

    state: of a decoder that has read all of the prompts but the last token of each, tokens (B, 1), which is read with
    the first step. prefixes: (B, T) float32, the log-probability of each token of the prefixes that outputs begin with,
    which stand on the right; 0 before them.
    """

    state: State
    tokens: Tensor
    prefixes: Tensor
    carried: Carried

    @property
    def totals(self) -> Tensor:
        """(B,) float32, log-probabilities of the prefixes."""
        return self.prefixes.sum(1)


@torch.no_grad()
def begin(decoder: Decoder, prompts: Prompts, rules: Iterable[Rule]) -> Beginning:
    """Read prompts at once. Raises ConfigError for one with a token that the decoder does not know."""
    carried, tokens = Carried.start(rules, prompts), prompts.tokens
    before, last = tokens[:, :-1], tokens[:, -1:]
    if not before.size(1):
        return Beginning(prompts.state, last, torch.zeros(before.shape, device=tokens.device), carried)
    try:
        output, state = decoder.step(before, prompts.state)
    except IndexError as error:
        raise ConfigError(f"prompts hold token {int(tokens.max())}, which the decoder does not have") from error
    carried = carried.read(
        Step(np.arange(len(tokens)), prompts.prefix_lengths, before, output, prompts.state.left_padding)
    )
    return Beginning(state, last, _of_prefixes(output, prompts), carried)


def _of_prefixes(output: Output, prompts: Prompts) -> Tensor:
    """(B, T): the log-probability of each token of a prefix; output: after all tokens but the last of each row."""
    labels = prompts.tokens[:, 1:]
    if not prompts.prefix_lengths.any():
        return torch.zeros(labels.shape, device=labels.device)
    first = labels.size(1) - torch.from_numpy(prompts.prefix_lengths).to(labels.device)
    mask = torch.arange(labels.size(1), device=labels.device) >= first.unsqueeze(1)
    size = output.logits(torch.zeros(1, dtype=torch.int64, device=labels.device)).size(1)
    if (largest := int(labels.max())) >= size:
        raise ConfigError(f"a prefix holds token {largest}, but the vocabulary has only {size}")
    return log_probabilities(output, labels, mask)
