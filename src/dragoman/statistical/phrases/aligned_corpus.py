"""`Sentences` and `AlignedCorpus`: sentence pairs as ids, their word alignment, and the probabilities of its links."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.statistical.alignment.estimation.lexicon import Lexicon
from dragoman.statistical.alignment.estimation.method import MethodConfig, TrainingData
from dragoman.statistical.alignment.estimation.pairs import WordPairs
from dragoman.statistical.alignment.estimation.workers import Workers
from dragoman.statistical.alignment.methods.ibm1 import IBM1Config
from dragoman.statistical.alignment.symmetrization import symmetrize

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


WordIds = Sequence[int] | NDArray[np.int32]
"""The ids of the words of a sentence."""


def concatenate(sentences: Sequence[WordIds]) -> tuple[Ids, Offsets]:
    """Return the ids of all sentences and the start of each sentence, followed by the total number of ids."""
    starts = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum([len(ids) for ids in sentences], out=starts[1:])
    arrays = [np.asarray(ids, np.int32) for ids in sentences]
    return np.concatenate([np.zeros(0, np.int32), *arrays]), starts


class Sentences(NamedTuple):
    """N sentence pairs as ids. sources, targets: the ids of each sentence. sizes: those of the vocabularies."""

    sources: Sequence[WordIds]
    targets: Sequence[WordIds]
    sizes: tuple[int, int]

    def word_pairs(self) -> WordPairs:
        """Return the pairs for the aligner, which numbers source words from 1."""
        (source, source_starts), (target, target_starts) = concatenate(self.sources), concatenate(self.targets)
        return WordPairs(source + 1, target, source_starts, target_starts)

    def swapped(self) -> "Sentences":
        """Return the pairs with source and target exchanged."""
        return Sentences(self.targets, self.sources, self.sizes[::-1])


def align_words(
    sentences: Sentences, method: MethodConfig, symmetrization: str, workers: Workers
) -> list[list[tuple[int, int]]]:
    """Train an aligner in both directions, and return the symmetrised links (i, j) of each sentence pair."""
    pairs = sentences.word_pairs()
    _, forward = method.train(TrainingData(pairs, sentences.sizes, workers))
    _, reverse = method.train(TrainingData(pairs.swapped(), sentences.sizes[::-1], workers))
    links = []
    ahead_of = np.split(forward.positions, pairs.target_starts[1:-1])
    back_of = np.split(reverse.positions, pairs.source_starts[1:-1])
    for sources, targets in until_cancelled(zip(ahead_of, back_of, strict=True)):
        ahead = {(i, j) for j, i in enumerate(sources.tolist()) if i >= 0}
        back = {(i, j) for i, j in enumerate(targets.tolist()) if j >= 0}
        links.append(list(symmetrize(ahead, back, symmetrization)))
    return links


def train_lexicon(sentences: Sentences, iterations: int, workers: Workers) -> Lexicon:
    """Return t(target word | source word) of IBM model 1."""
    pairs = sentences.word_pairs()
    model, _ = IBM1Config(iterations=iterations).train(TrainingData(pairs, sentences.sizes, workers))
    return model.lexicon


@dataclass(frozen=True)
class AlignedCorpus:
    """N word-aligned sentence pairs.

    source, target: ids of all words. source_starts, target_starts: (N + 1) start of each sentence. links: (L, 2)
    positions within the sentences of linked words, from 0. link_starts: (N + 1) first link of each sentence.
    """

    source: Ids
    source_starts: Offsets
    target: Ids
    target_starts: Offsets
    links: Ids
    link_starts: Offsets

    @classmethod
    def of(
        cls,
        sources: Sequence[WordIds],
        targets: Sequence[WordIds],
        links: Sequence[Sequence[tuple[int, int]]],
    ) -> "AlignedCorpus":
        """Create a corpus from the word ids and the links (i, j) of each sentence pair."""
        source, source_starts = concatenate(sources)
        target, target_starts = concatenate(targets)
        link_starts = np.zeros(len(links) + 1, np.int64)
        np.cumsum([len(each) for each in links], out=link_starts[1:])
        pairs = np.array([link for each in links for link in each], np.int32).reshape(-1, 2)
        return cls(source, source_starts, target, target_starts, pairs, link_starts)

    @property
    def linked_words(self) -> tuple[Ids, Ids]:
        """The source word and the target word of each link (L,)."""
        counts = np.diff(self.link_starts)
        return (
            self.source[np.repeat(self.source_starts[:-1], counts) + self.links[:, 0]],
            self.target[np.repeat(self.target_starts[:-1], counts) + self.links[:, 1]],
        )


@dataclass(frozen=True)
class LinkProbabilities:
    """Relative frequencies of linked words (Koehn et al. 2003, section 4.3). A word without links is linked to null.

    source_given_target, target_given_source: (L,), for each link. source_given_null: (source words), target_given_null:
    (target words), for each word of the corpus.
    """

    source_given_target: NDArray[np.float32]
    target_given_source: NDArray[np.float32]
    source_given_null: NDArray[np.float32]
    target_given_null: NDArray[np.float32]

    @classmethod
    def of(cls, corpus: AlignedCorpus) -> "LinkProbabilities":
        """Count the links of a corpus."""
        sources, targets = corpus.linked_words
        keys = sources.astype(np.int64) << 32 | targets
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        joint = counts[inverse].astype(np.float64)
        per_source, per_target = np.bincount(sources), np.bincount(targets)
        counts_per_sentence = np.diff(corpus.link_starts)
        rows = [
            np.repeat(starts[:-1], counts_per_sentence) + corpus.links[:, side]
            for side, starts in enumerate((corpus.source_starts, corpus.target_starts))
        ]
        return cls(
            (joint / per_target[targets]).astype(np.float32) if len(joint) else np.zeros(0, np.float32),
            (joint / per_source[sources]).astype(np.float32) if len(joint) else np.zeros(0, np.float32),
            _null_probabilities(corpus.source, rows[0]),
            _null_probabilities(corpus.target, rows[1]),
        )


def _null_probabilities(words: Ids, linked: Offsets) -> NDArray[np.float32]:
    """Return the fraction of each word among all words without links. linked: positions of the linked words.

    A word that always has links is counted once, so that no probability is zero.
    """
    has_link = np.zeros(len(words), bool)
    has_link[linked] = True
    if not len(words):
        return np.zeros(0, np.float32)
    counts = np.maximum(np.bincount(words[~has_link], minlength=int(words.max()) + 1), 1)
    return np.asarray(counts[words] / max(1, int((~has_link).sum())), np.float32).clip(max=1)
