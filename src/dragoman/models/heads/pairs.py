"""Pairs of texts that are encoded separately: the division of their rows, and the comparison of their vectors."""

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.text.symbols import BOS, EOS, PAD


def divide_pairs(tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Divide rows with two texts into rows with one text.

    tokens: (B, S) int64, BOS a EOS BOS b EOS. mask: (B, S) bool, False at padding. Returns tokens and mask (2B, W),
    padded on the right. Rows 2b and 2b + 1 are the texts of row b.
    """
    # a BOS within a text, such as [CLS] in a text that BERT's tokenizer reads, does not follow EOS
    begins = (tokens[:, 1:] == BOS) & (tokens[:, :-1] == EOS)
    is_second = functional.pad(begins, (1, 0)).cumsum(1) > 0
    texts = torch.stack([mask & ~is_second, mask & is_second], 1)  # (B, 2, S)
    lengths, starts = texts.sum(2), texts.int().argmax(2)
    size = tokens.size(1)
    # shapes on the meta device, on which operations are counted, cannot depend on values
    width = (size + 1) // 2 if tokens.is_meta else max(1, int(lengths.max()))
    offsets = torch.arange(width, device=tokens.device)
    positions = (starts.unsqueeze(2) + offsets).clamp_max(size - 1)
    divided = tokens.unsqueeze(1).expand(-1, 2, -1).gather(2, positions)
    present = offsets < lengths.unsqueeze(2)
    return divided.masked_fill(~present, PAD).flatten(0, 1), present.flatten(0, 1)


def pair_features(vectors: Tensor) -> Tensor:
    """Return [u; v; |u − v|; u · v] (B, 4d), with the product of each component (Conneau et al. 2017, section 3.1).

    vectors: (2B, d), where rows 2b and 2b + 1 are the vectors u and v of pair b.
    """
    first, second = vectors[::2], vectors[1::2]
    return torch.cat([first, second, (first - second).abs(), first * second], 1)


def pair_cosines(vectors: Tensor) -> Tensor:
    """Return the cosines (B,) of the vectors of each pair. vectors: as in `pair_features`."""
    return functional.cosine_similarity(vectors[::2], vectors[1::2])
