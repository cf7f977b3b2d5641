"""Word alignments: links between the words of a source and the words of its translation.

`Aligner` is the protocol; `AttentionAligner` implements it with the decoder's attention.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from dragoman.base.errors import ConfigError, LineError
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import word_indices
from dragoman.translation.codec import Codec
from dragoman.translation.engine import Engine, attention_engine

Alignment = tuple[tuple[int, int], ...]
"""Sorted links (i, j): word i of the source and word j of the target, from 0. Words are separated by whitespace."""


class Aligner(Protocol):
    """Aligns the words of sentences with the words of their translations.

    `Translator.align`, `dragoman translate --alignments`, markup in documents and the server's word links all use it.
    """

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        """Return the alignment of each source with the target at the same position; a blank text has no links.

        There are as many sources as targets. batch_size: maximum number of pairs computed together; it doesn't change
        the result. Raises LineError with the position of a pair that cannot be aligned, such as one that is too long,
        and ConfigError if nothing can be aligned at all.
        """
        ...

    def settings(self) -> Mapping[str, Any]:
        """Return everything that the alignments depend on, apart from the texts, as JSON values.

        A file of alignments is resumed only if these are unchanged.
        """
        ...


@dataclass(frozen=True)
class AttentionChoice:
    """Selects the decoder attention that alignments are read from. Layers and heads are counted from 1.

    layer: None selects the penultimate layer, or the only one. head: None averages all heads.
    """

    layer: int | None = None
    head: int | None = None


class AttentionAligner:
    """Reads alignments from the decoder's attention to the source while it predicts the target by forced decoding.

    Each target piece is linked to the source piece with the largest weight; tags, the source's end of sentence and
    whitespace do not count. Words are linked if any of their pieces are (Garg et al. 2019, section 3).
    """

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        tags: Sequence[str] = (),
        choice: AttentionChoice | None = None,
    ) -> None:
        """tags: the tags that precede each source, as in `Request.tags`."""
        self._engine, self._tokenizers, self._tags = engine, tokenizers, tags
        self._codec = Codec(tokenizers, engine.limits)
        self._choice = choice or AttentionChoice()

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        """See `Aligner.align`.

        Raises TooLongError for a pair that exceeds the model's positions, and ConfigError if the engine or the model
        has no such attention, or if sources are vectors.
        """
        if self._tokenizers.reads_vectors:
            raise ConfigError("cannot align words: this model reads vectors, and vectors have no words")
        pairs = self._codec.pairs(sources, targets, self._tags)
        engine, layer, head = attention_engine(self._engine), self._choice.layer, self._choice.head
        weights = engine.source_attention(pairs, batch_size, layer, head) if pairs else []
        return [
            _linked_words(
                each[:, len(self._tags) :],
                word_indices(self._tokenizers.source, source),
                word_indices(self._tokenizers.target, target),
            )
            for each, source, target in zip(weights, sources, targets, strict=True)
        ]

    def settings(self) -> Mapping[str, Any]:
        """Return the selected layer and head."""
        return asdict(self._choice)


def align_each(
    aligner: Aligner, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> list[Alignment | None]:
    """Return the alignment of each pair, or None for a pair that the aligner rejects with a LineError.

    Raises ConfigError if the aligner does.
    """
    found: list[Alignment | None] = [None] * len(sources)
    positions = list(range(len(sources)))
    while positions:
        try:
            aligned = aligner.align(
                [sources[each] for each in positions], [targets[each] for each in positions], batch_size
            )
        except LineError as error:
            del positions[error.index]
            continue
        for position, alignment in zip(positions, aligned, strict=True):
            found[position] = alignment
        break
    return found


def pharaoh(alignment: Alignment) -> str:
    """Format an alignment as a line of a Pharaoh file, such as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def _linked_words(weights: np.ndarray, source: Sequence[int | None], target: Sequence[int | None]) -> Alignment:
    """Return the links. weights: (T, S); source, target: the word that each piece belongs to, None for whitespace."""
    visible = [position for position, word in enumerate(source) if word is not None]
    if not visible:
        return ()
    best = weights[:, visible].argmax(1)  # (T,)
    links = {(source[visible[piece]], word) for piece, word in zip(best, target, strict=True) if word is not None}
    return tuple(sorted(links))
