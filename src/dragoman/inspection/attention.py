"""`attention_of`: the attention weights while the output of a subject is computed, for a model of any kind."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError
from dragoman.inference.subject import Subject
from dragoman.models.attention_weights import KINDS, START, AttentionMap, record_calls, without_weights
from dragoman.models.kinds.ensemble import Ensemble

_HEAD = "head."
"""The path of a head, whose layers are those of the model in a picture."""


def attention_of(subject: Subject) -> list[AttentionMap]:
    """Return the weights of all attention layers while the output of a subject is computed.

    A decoder query is labelled with the token that it predicts, and a key of decoder self-attention with its input
    token. Raises ConfigError for an ensemble.
    """
    if isinstance(subject.model, Ensemble):
        raise ConfigError("an ensemble has no attention weights of its own: inspect one of its models")

    def run() -> None:
        subject.model(*subject.arguments) if subject.decoding is None else subject.compute()

    lengths = () if subject.words is None else subject.words.lengths
    maps = []
    for path, rows in record_calls(subject.model, run).items():
        name = path.removeprefix(_HEAD)
        is_encoder = name.startswith("encoder.")
        queries = subject.tokens if is_encoder else subject.terms
        reads_source = is_encoder or name.endswith("cross_attention")
        keys = subject.tokens if reads_source else (START, *subject.terms[:-1])
        maps.append(AttentionMap(name, _joined(rows, lengths) if lengths else rows[0], queries, keys))
    return maps


def absent_attention(subject: Subject) -> list[str]:
    """List the kinds of attention without weights, each with the reason."""
    if subject.decoding is None:
        return without_weights(subject.model, KINDS[:1])
    if subject.decoding.owner is subject.model:
        return without_weights(subject.model)
    return without_weights(subject.model, KINDS[:1]) + without_weights(subject.decoding.owner, KINDS[1:])


def _joined(weights: NDArray[np.float32], lengths: Sequence[int]) -> NDArray[np.float32]:
    """Return the weights (heads, S, S) of an input. Texts that are encoded separately do not attend to each other.

    weights: (N, heads, W, W) of the rows that the model encodes. lengths: number of tokens of each row.
    """
    joined = np.zeros((weights.shape[1], sum(lengths), sum(lengths)), np.float32)
    start = 0
    for row, length in zip(weights, lengths, strict=True):
        part = slice(start, start + length)
        joined[:, part, part] = row[:, :length, :length]
        start += length
    return joined
