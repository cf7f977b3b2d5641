"""The best sequences of tags and their probabilities, given the outputs of a tagger with transitions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.models.heads.tagging import ChainOutput
from dragoman.nn.linear_chain import ChainScores

_SENTENCES = 256
"""Number of sentences of similar length that are decoded together."""


@dataclass(frozen=True)
class TagSequence:
    """The best sequence of tags for the words of an input.

    emissions: (S, C), the score of each tag at each token of the input. chain: the scores of successive tags. numbers:
    (T,) int64, the tag of each word. probabilities: (T, C), the probability of each tag of each word, summed over all
    sequences.
    """

    emissions: NDArray[np.float32]
    chain: ChainScores
    numbers: NDArray[np.int64]
    probabilities: NDArray[np.float64]


def decode_inputs(output: ChainOutput, inputs: Sequence[ModelInput]) -> list[TagSequence]:
    """Return the best sequence of each input of a batch. output: the model's output for the inputs."""
    emissions, chain = output.emissions.detach().cpu().float(), output.chain.on_cpu()
    words = [row[list(each.places)] for row, each in zip(emissions, inputs, strict=True)]
    decoded = _decode(chain, words)
    rows = [row[: len(each.ids)].numpy() for row, each in zip(emissions, inputs, strict=True)]
    return [TagSequence(row, chain, *found) for row, found in zip(rows, decoded, strict=True)]


def join_inputs(sequences: Sequence[TagSequence], inputs: Sequence[ModelInput]) -> TagSequence:
    """Return the best sequence of a sentence that is divided into several inputs.

    Each word has the emissions of the input that predicts it, and the sequence is that of the whole sentence.
    """
    words = [torch.from_numpy(one.emissions[list(each.places)]) for one, each in zip(sequences, inputs, strict=True)]
    emissions, chain = torch.cat(words), sequences[0].chain
    return TagSequence(emissions.numpy(), chain, *_decode(chain, [emissions])[0])


def lower_tag(
    sequences: Sequence[TagSequence], inputs: Sequence[ModelInput], tag: int, amount: float
) -> list[TagSequence]:
    """Return the best sequences if the score of one tag is lower at every token."""
    change = np.zeros(sequences[0].emissions.shape[1], np.float32)
    change[tag] = amount
    lowered = [one.emissions - change for one in sequences]
    words = [torch.from_numpy(row[list(each.places)]) for row, each in zip(lowered, inputs, strict=True)]
    found: list[TagSequence | None] = [None] * len(sequences)
    order = sorted(range(len(words)), key=lambda number: len(words[number]))
    for start in range(0, len(order), _SENTENCES):
        chosen = order[start : start + _SENTENCES]
        chain = sequences[0].chain
        for number, decoded in zip(chosen, _decode(chain, [words[number] for number in chosen]), strict=True):
            found[number] = TagSequence(lowered[number], chain, *decoded)
    return [each for each in found if each is not None]


def _decode(chain: ChainScores, words: Sequence[torch.Tensor]) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return the best tags (T,) and the probabilities (T, C) for the emissions (T, C) of each sentence."""
    lengths = torch.tensor([len(each) for each in words])
    longest = max(1, int(lengths.max()))
    emissions = torch.zeros(len(words), longest, len(chain.start), dtype=torch.float64)
    for row, each in zip(emissions, words, strict=True):
        row[: len(each)] = each
    mask = torch.arange(longest) < lengths.unsqueeze(1)
    tags, probabilities = chain.best(emissions, mask).numpy(), chain.marginals(emissions, mask).numpy()
    return [(tags[row, :length], probabilities[row, :length]) for row, length in enumerate(lengths.tolist())]
