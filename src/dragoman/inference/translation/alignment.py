"""Word alignments: links between the words of a source and the words of its translation.

`Aligner` is the protocol, and `WeightedAligner` that of aligners whose links have weights. `AttentionAligner`
implements both with the decoder's attention, and `StoredAligner` with the word aligner in a model folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dragoman.base.errors import ConfigError, LineError
from dragoman.checkpoint.folder import ALIGNER
from dragoman.engines.engine import Engine, attention_engine
from dragoman.inference.translation.codec import Codec
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.links import Alignment
from dragoman.statistical.alignment.word_aligner import WordAligner
from dragoman.text.tokenizers import Tokenizers

WordMatrix = NDArray[np.float64]
"""Values of pairs of words, (target words, source words). Words are separated by whitespace."""


class Aligner(Protocol):
    """Aligns the words of sentences with the words of their translations.

    `Translator.align`, `dragoman translate --alignments`, document markup and the server's word links use an aligner.
    """

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        """Return the alignment of each source with the target at the same position. A blank text has no links.

        sources and targets have the same length. batch_size: maximum number of pairs computed together; it doesn't
        change the result. Raises LineError with the position of a pair that cannot be aligned, such as a pair that is
        too long, and ConfigError if the model does not support alignment.
        """
        ...

    def settings(self) -> Mapping[str, Any]:
        """Return all settings that affect the alignments, as JSON values.

        An alignment file is resumed only if these settings are unchanged.
        """
        ...


@runtime_checkable
class WeightedAligner(Aligner, Protocol):
    """An aligner that weighs all possible links of a sentence pair."""

    def link_weights(self, source: str, target: str) -> WordMatrix:
        """Return the weight of each link, from 0 to 1. Raises the errors of `align`."""
        ...


class AttentionAligner:
    """Derives alignments from the decoder's attention over the source during forced decoding of the target.

    Each target piece is linked to the source piece with the largest weight. Tags, the source's end of sentence and
    whitespace are ignored. Two words are linked if any of their pieces are linked (Garg et al. 2019, section 3).
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
        self._codec = Codec(tokenizers, engine.limits, warn_unknown=False)
        self._choice = choice or AttentionChoice()

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        """See `Aligner.align`.

        Raises TooLongError for a pair that exceeds the model's maximum length, and ConfigError if the engine or the
        model does not provide the selected attention, or if the sources are vectors.
        """
        return [
            _link_words(matrix, *self._codec.piece_words(source, target))
            for matrix, source, target in zip(
                self._piece_weights(sources, targets, batch_size), sources, targets, strict=True
            )
        ]

    def link_weights(self, source: str, target: str) -> WordMatrix:
        """Return the attention of each target word to each source word.

        The weights of the pieces of a source word are added, and those of the pieces of a target word averaged. The
        weights of the end of sentence are left out. Raises the errors of `align`.
        """
        (weights,) = self._piece_weights([source], [target], 1)
        sums, counts = sum_words(weights, self._codec, source, target)
        return sums / np.maximum(counts, 1)[:, None]

    def _piece_weights(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[np.ndarray]:
        """Return the weights of the pieces of each pair, (T, S), without those of the tags."""
        if self._tokenizers.reads_vectors:
            raise ConfigError("cannot align words: the sources of this model are vectors, which have no words")
        pairs = self._codec.encode_pairs(sources, targets, self._tags)
        weights = attention_engine(self._engine).source_attention(pairs, batch_size, self._choice) if pairs else []
        return [matrix[:, len(self._tags) :] for matrix in weights]

    def settings(self) -> Mapping[str, Any]:
        """Return the selected layer, head and step."""
        return asdict(self._choice)


class StoredAligner:
    """The word aligner in a model folder, which is loaded when it is first used."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, Lock()
        self._aligner: WordAligner | None = None

    def align(self, sources: Sequence[str], targets: Sequence[str], batch_size: int) -> list[Alignment]:
        """See `Aligner.align`. No pair is too long."""
        return self._loaded().align(sources, targets, batch_size)

    def link_weights(self, source: str, target: str) -> WordMatrix:
        """See `WordAligner.link_weights`."""
        return self._loaded().link_weights(source, target)

    def settings(self) -> Mapping[str, Any]:
        """Return a digest of the aligner."""
        return self._loaded().settings()

    def _loaded(self) -> WordAligner:
        """Return the aligner. Raises ModelError as `WordAligner.load` does."""
        with self._lock:
            if self._aligner is None:
                self._aligner = WordAligner.load(self._folder)
            return self._aligner


def find_aligner(folder: Path, config: Mapping[str, Any]) -> tuple[StoredAligner | None, AttentionChoice | None]:
    """Return the word aligner in the folder of a translation model, and the head that guided alignment has supervised.

    config: the settings of the training run. Both results are None if they do not exist.
    """
    stored = StoredAligner(folder / ALIGNER) if (folder / ALIGNER).is_dir() else None
    objective = (config.get("train") or {}).get("objective") or {}
    if objective.get("kind") != "guided_alignment":
        return stored, None
    return stored, AttentionChoice(objective["layer"], objective["head"], objective["step"])


def sum_words(pieces: np.ndarray, codec: Codec, source: str, target: str) -> tuple[WordMatrix, NDArray[np.int64]]:
    """Return the sums of values (T, S) over the pieces of words, and the number of pieces of each target word."""
    columns, rows = codec.piece_words(source, target)
    sums, counts = np.zeros((len(target.split()), len(source.split()))), np.zeros(len(target.split()), np.int64)
    for row, word in enumerate(rows):
        if word is None:
            continue
        counts[word] += 1
        for column, other in enumerate(columns):
            if other is not None:
                sums[word, other] += pieces[row, column]
    return sums, counts


def align_each(
    aligner: Aligner, sources: Sequence[str], targets: Sequence[str], batch_size: int
) -> list[Alignment | None]:
    """Return the alignment of each pair, or None for a pair that the aligner rejects with a LineError.

    Raises ConfigError if the aligner does.
    """
    alignments: list[Alignment | None] = [None] * len(sources)
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
            alignments[position] = alignment
        break
    return alignments


def _link_words(weights: np.ndarray, source: Sequence[int | None], target: Sequence[int | None]) -> Alignment:
    """Return the links between words. weights: attention, (T, S). source, target: the index of each piece's word, None
    for whitespace.
    """
    visible = [position for position, word in enumerate(source) if word is not None]
    if not visible:
        return ()
    best = weights[:, visible].argmax(1)  # (T,)
    links = {(source[visible[piece]], word) for piece, word in zip(best, target, strict=True) if word is not None}
    return tuple(sorted(links))
