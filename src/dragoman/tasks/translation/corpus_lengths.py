"""Lengths of the training pairs, for the model folder."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.dataset import Dataset
from dragoman.data.lengths import CorpusLengths
from dragoman.data.preparation.pipeline import PreparedCorpora
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers

_SAMPLE = 10_000
"""Maximum number of pairs per corpus whose lengths in characters are measured. They are evenly spaced."""


def measure_lengths(corpora: Sequence[CorpusConfig], prepared: PreparedCorpora) -> dict[str, CorpusLengths]:
    """Return the lengths of the pairs by target language; the key is empty for corpora without a language.

    The texts are decoded from the token ids, so that reused corpora need not be read again. Empty for a source of
    feature vectors.
    """
    if prepared.tokenizers.reads_vectors:
        return {}
    tokens: dict[str, list[NDArray[np.int32]]] = {}
    texts: dict[str, list[tuple[str, str]]] = {}
    for corpus, part in zip(corpora, prepared.dataset.parts, strict=True):
        language, tags = corpus.target_language or "", len(corpus.all_tags)
        tokens.setdefault(language, []).append(part.lengths - np.array([tags, 0], np.int32))
        texts.setdefault(language, []).extend(_sample(part, tags, prepared.tokenizers))
    measured = {language: CorpusLengths.of(np.concatenate(tokens[language]), texts[language]) for language in tokens}
    return {language: lengths for language, lengths in measured.items() if lengths is not None}


def _sample(dataset: Dataset, tags: int, tokenizers: Tokenizers) -> list[tuple[str, str]]:
    """Return the texts of some pairs, without those that have unknown words or inline symbols.

    If most pairs have some, they are included without these words.
    """
    rows = np.unique(np.linspace(0, len(dataset) - 1, min(_SAMPLE, len(dataset))).astype(np.int64))
    sources, targets = (side_ids(dataset, rows, side) for side in (0, 1))
    sources = [ids[tags:] for ids in sources]
    complete = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if _is_text(source, tokenizers.source) and _is_text(target, tokenizers.target)
    ]
    if 2 * len(complete) < len(rows):
        complete = list(zip(sources, targets, strict=True))
    return [(tokenizers.source.decode(source), tokenizers.target.decode(target)) for source, target in complete]


def side_ids(dataset: Dataset, rows: NDArray[np.int64], side: int) -> list[list[int]]:
    """Return the ids of one side of each row."""
    sentences = dataset.take(rows)[side]
    ends = np.cumsum(sentences.lengths).tolist()
    ids = sentences.ids.tolist()
    return [ids[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def _is_text(ids: Sequence[int], tokenizer: Tokenizer) -> bool:
    """Return whether ids consist of known text."""
    return UNK not in ids and max(ids, default=0) < tokenizer.size - len(tokenizer.tags)
