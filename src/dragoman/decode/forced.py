"""Forced decoding: log-probabilities of given targets, and decoder states after prompts."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Rule, RuleStates, Step
from dragoman.models.interface import Decoder, Output, State, TensorTree, scores_labels

CHUNK = 1024
"""Number of target tokens projected onto the vocabulary at a time, which bounds the memory for logits."""


@torch.no_grad()
def force(decoder: Decoder, memory: TensorTree, inputs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Score target tokens by forced decoding.

    memory: the encoded sources; None for a model without a source. inputs: (B, T) int64, BOS and the target; labels:
    (B, T) int64, the target and EOS; mask: (B, T) bool, True at labels to score. The decoder should be in evaluation
    mode. Returns (B, T) float32, the natural log-probability of each label given the source and the preceding tokens,
    and 0 outside `mask`.
    """
    scores, _ = read_labels(decoder, decoder.start(memory), inputs, labels, mask)
    return scores


@torch.no_grad()
def read_labels(decoder: Decoder, state: State, inputs: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, State]:
    """Score target tokens like `force`, but continue from `state`, and also return the state after `inputs`."""
    output, after = decoder.step(inputs, state)
    return log_probabilities(output, labels, mask), after


def log_probabilities(output: Output, labels: Tensor, mask: Tensor) -> Tensor:
    """Return the natural log-probabilities of labels under a decoder's output, and 0 outside `mask`.

    labels: (B, T) int64; mask: (B, T) bool. Returns (B, T) float32.
    """
    positions, targets = mask.flatten().nonzero().squeeze(1), labels[mask]  # (N,) each
    result = torch.zeros(labels.shape, device=labels.device)
    if scores_labels(output):
        result[mask] = output.label_log_probabilities(positions, targets)
        return result
    parts = []
    for chunk, tokens in zip(torch.split(positions, CHUNK), torch.split(targets, CHUNK), strict=True):
        logits = output.logits(chunk).float()  # (CHUNK, V)
        parts.append(logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1))
    if parts:
        result[mask] = torch.cat(parts)
    return result


class PromptStart(NamedTuple):
    """The initial hypotheses of B prompts, one each.

    state: the decoder state after each prompt up to its last token. tokens: (B, 1), these last tokens, which are the
    input of the first step. prefixes: (B, T) float32, log-probabilities of the prefix tokens, right-aligned and padded
    with 0. rule_states: the states of the rules after the same tokens.
    """

    state: State
    tokens: Tensor
    prefixes: Tensor
    rule_states: RuleStates

    @property
    def totals(self) -> Tensor:
        """The log-probability of each prefix, (B,) float32."""
        return self.prefixes.sum(1)


@torch.no_grad()
def read_prompts(decoder: Decoder, prompts: Prompts, rules: Iterable[Rule]) -> PromptStart:
    """Run the decoder over all prompts in one step. Raises ConfigError for a token outside the vocabulary."""
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
    return PromptStart(state, last, _prefix_log_probabilities(output, prompts), rule_states)


def _prefix_log_probabilities(output: Output, prompts: Prompts) -> Tensor:
    """Return (B, T), the log-probabilities of the prefix tokens.

    output: the decoder's output for all prompt tokens except the last.
    """
    labels = prompts.tokens[:, 1:]
    if not prompts.prefix_lengths.any():
        return torch.zeros(labels.shape, device=labels.device)
    first = labels.size(1) - torch.from_numpy(prompts.prefix_lengths).to(labels.device)
    mask = torch.arange(labels.size(1), device=labels.device) >= first.unsqueeze(1)
    size = output.logits(torch.zeros(1, dtype=torch.int64, device=labels.device)).size(1)
    if (largest := int(labels.max())) >= size:
        raise ConfigError(f"a prefix contains token {largest}, but the vocabulary has only {size} tokens")
    return log_probabilities(output, labels, mask)
