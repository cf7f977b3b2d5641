"""Reading given tokens: forced decoding of targets and of the prompts of a search."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Rule, RuleStates, Step
from dragoman.models.interface import Decoder, Output, State, TensorTree

CHUNK = 1024
"""Number of target tokens that are projected onto the vocabulary at a time, which bounds the memory for logits."""


@torch.no_grad()
def force(decoder: Decoder, memory: TensorTree, inputs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Natural log-probabilities (B, T) float32 of `labels` given the source and preceding tokens; 0 outside `mask`.

    memory: the encoded sources; None for a model without a source. inputs: (B, T) int64, BOS and the target; labels:
    (B, T) int64, the target and EOS; mask: (B, T) bool, True at labels to score. The decoder should be in evaluation
    mode.
    """
    found, _ = read_labels(decoder, decoder.start(memory), inputs, labels, mask)
    return found


@torch.no_grad()
def read_labels(decoder: Decoder, state: State, inputs: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, State]:
    """Like `force`, continuing from `state`; also returns the state after `inputs`."""
    output, after = decoder.step(inputs, state)
    return log_probabilities(output, labels, mask), after


def log_probabilities(output: Output, labels: Tensor, mask: Tensor) -> Tensor:
    """Natural log-probabilities (B, T) float32 of labels (B, T) int64 under a decoder's output; 0 outside `mask`."""
    positions, targets = mask.flatten().nonzero().squeeze(1), labels[mask]  # (N,) each
    parts = []
    for some, tokens in zip(torch.split(positions, CHUNK), torch.split(targets, CHUNK), strict=True):
        logits = output.logits(some).float()  # (CHUNK, V)
        parts.append(logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1))
    result = torch.zeros(labels.shape, device=labels.device)
    if parts:
        result[mask] = torch.cat(parts)
    return result


class PromptStart(NamedTuple):
    """One hypothesis for each of B prompts.

    state: the state of a decoder that has read each prompt up to its last token. tokens: (B, 1), these last tokens,
    which the first step reads. prefixes: (B, T) float32, log-probabilities of the tokens of the prefixes with which
    outputs begin, aligned to the right; 0 before them.
    """

    state: State
    tokens: Tensor
    prefixes: Tensor
    rule_states: RuleStates

    @property
    def totals(self) -> Tensor:
        """(B,) float32: the log-probabilities of the prefixes."""
        return self.prefixes.sum(1)


@torch.no_grad()
def read_prompts(decoder: Decoder, prompts: Prompts, rules: Iterable[Rule]) -> PromptStart:
    """Read all prompts at once. Raises ConfigError for a token that the decoder does not have."""
    rule_states, tokens = RuleStates.start(rules, prompts), prompts.tokens
    before, last = tokens[:, :-1], tokens[:, -1:]
    if not before.size(1):
        return PromptStart(prompts.state, last, torch.zeros(before.shape, device=tokens.device), rule_states)
    try:
        output, state = decoder.step(before, prompts.state)
    except IndexError as error:
        raise ConfigError(f"prompts contain token {int(tokens.max())}, which the decoder does not have") from error
    rule_states = rule_states.read(
        Step(np.arange(len(tokens)), prompts.prefix_lengths, before, output, prompts.state.left_padding)
    )
    return PromptStart(state, last, _of_prefixes(output, prompts), rule_states)


def _of_prefixes(output: Output, prompts: Prompts) -> Tensor:
    """(B, T): log-probabilities of the tokens of the prefixes. output: for all tokens of the prompts but the last."""
    labels = prompts.tokens[:, 1:]
    if not prompts.prefix_lengths.any():
        return torch.zeros(labels.shape, device=labels.device)
    first = labels.size(1) - torch.from_numpy(prompts.prefix_lengths).to(labels.device)
    mask = torch.arange(labels.size(1), device=labels.device) >= first.unsqueeze(1)
    size = output.logits(torch.zeros(1, dtype=torch.int64, device=labels.device)).size(1)
    if (largest := int(labels.max())) >= size:
        raise ConfigError(f"a prefix contains token {largest}, but the vocabulary has only {size} tokens")
    return log_probabilities(output, labels, mask)
