"""Which words of a source a translation's words come from, by what the decoder attends."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.base.errors import ConfigError
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.words import word_places
from dragoman.translation.engine import AttentionEngine, Engine, Pair

Alignment = tuple[tuple[int, int], ...]
"""Links (i, j) in order: word i of the source, word j of the target, from 0; words are what whitespace separates."""


@dataclass(frozen=True)
class AttentionChoice:
    """Which of a decoder's attentions tells the alignment, both counted from 1.

    layer: None is the last but one, of a single one that; head: None is the mean of all.
    """

    layer: int | None = None
    head: int | None = None


def pharaoh(alignment: Alignment) -> str:
    """As the line `0-0 1-2` of a file of alignments."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def attending(engine: Engine) -> AttentionEngine:
    """The engine, as one that shows attention. Raises ConfigError if it does not."""
    if not isinstance(engine, AttentionEngine):
        raise ConfigError(
            "this engine does not show attention: load a single model folder with --engine torch or auto, since "
            "ensembles and exported models have no attention to show"
        )
    return engine


def aligned(
    engine: Engine,
    tokenizers: Tokenizers,
    sources: Sequence[str],
    targets: Sequence[str],
    pairs: Sequence[Pair],
    tags: int,
    batch_size: int,
    choice: AttentionChoice | None = None,
) -> list[Alignment]:
    """The alignment of each source and target text, whose ids `pairs` holds, `tags` of them before the source.

    Each target piece is linked to the source piece that got most weight while it was predicted; tags, the source's end
    and blanks do not count. Words are linked where any of their pieces are (Garg et al. 2019, section 3). Raises
    ConfigError where the engine or the model does not show attention, or the source is no text.
    """
    if tokenizers.reads_vectors:
        raise ConfigError("a source of vectors has no words to align")
    layer, head = (None, None) if choice is None else (choice.layer, choice.head)
    weights = attending(engine).source_attention(pairs, batch_size, layer, head) if pairs else []
    return [
        _linked(each[:, tags:], word_places(tokenizers.source, source), word_places(tokenizers.target, target))
        for each, source, target in zip(weights, sources, targets, strict=True)
    ]


def _linked(weights: np.ndarray, source: Sequence[int | None], target: Sequence[int | None]) -> Alignment:
    """weights: (T, S); source, target: the word of each piece."""
    inked = [place for place, word in enumerate(source) if word is not None]
    if not inked:
        return ()
    best = weights[:, inked].argmax(1)
    links = {(source[inked[piece]], word) for piece, word in zip(best, target, strict=True) if word is not None}
    return tuple(sorted(links))
