"""Forced decoding: the log-probability of every token of given targets."""

import torch
from torch import Tensor

from dragoman.models.interface import Decoder, Output, State, Tree

CHUNK = 1024
"""Target tokens projected onto the vocabulary at a time, so that the memory needed does not grow with the batch."""


@torch.no_grad()
def force(decoder: Decoder, memory: Tree, inputs: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Natural log-probabilities (B, T) float32 of `labels` given the source and the tokens before; 0 at padding.

    memory: of the sources, None without. inputs: (B, T) int64, BOS and the target; labels: (B, T) int64, the target and
    EOS; mask: (B, T) bool, True where `labels` holds a token that is asked for. The decoder should be in evaluation
    mode.
    """
    found, _ = read_on(decoder, decoder.start(memory), inputs, labels, mask)
    return found


@torch.no_grad()
def read_on(decoder: Decoder, state: State, inputs: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, State]:
    """The same after what `state` has read, and the state after `inputs`."""
    output, after = decoder.step(inputs, state)
    return log_probabilities(output, labels, mask), after


def log_probabilities(output: Output, labels: Tensor, mask: Tensor) -> Tensor:
    """The same of what a decoder gave for B rows of T tokens."""
    places, targets = mask.flatten().nonzero().squeeze(1), labels[mask]
    parts = []
    for some, tokens in zip(torch.split(places, CHUNK), torch.split(targets, CHUNK), strict=True):
        logits = output.logits(some).float()
        parts.append(logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1))
    result = torch.zeros(labels.shape, device=labels.device)
    if parts:
        result[mask] = torch.cat(parts)
    return result
