"""Extraction of the phrase pairs that are consistent with word alignments (Och and Ney 2004; Koehn et al. 2003)."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.base.cancellation import until_cancelled
from dragoman.base.errors import ResourceError
from dragoman.statistical.phrases import library
from dragoman.statistical.phrases.aligned_corpus import AlignedCorpus, Ids, LinkProbabilities

_BLOCK = 2000
"""Number of sentence pairs per call of the library."""


class Occurrences(NamedTuple):
    """Phrase pairs as they occur in a corpus (n,), in the order of its sentences.

    source, target: position of the first word of each side in the corpus. source_length, target_length: number of
    words. previous, next: orientation of the previous and of the next phrase: 0 monotone, 1 swap, 2 discontinuous
    (Koehn et al. 2005). source_given_target, target_given_source: logarithms of the lexical weights (Koehn et al.
    2003).
    """

    source: NDArray[np.uint32]
    target: NDArray[np.uint32]
    source_length: NDArray[np.int8]
    target_length: NDArray[np.int8]
    previous: NDArray[np.int8]
    next: NDArray[np.int8]
    source_given_target: NDArray[np.float32]
    target_given_source: NDArray[np.float32]


_TYPES = (np.int64, np.int64, np.int8, np.int8, np.int8, np.int8, np.float32, np.float32)
"""The types of the library."""


def extract_phrases(
    corpus: AlignedCorpus, probabilities: LinkProbabilities, max_length: int = 7, threads: int = 1
) -> Occurrences:
    """Return all phrase pairs of at most `max_length` words per side that are consistent with the alignment.

    A pair is consistent if it has a link and no word of one side is linked to a word outside the other side. Words
    without links are included in all possible ways at the edges. Raises ResourceError if memory is exhausted.
    """
    native = library.AlignedCorpus.of(
        {
            "source_starts": corpus.source_starts,
            "target_starts": corpus.target_starts,
            "link_starts": corpus.link_starts,
            "links": corpus.links,
            **probabilities.__dict__,
        },
        sentences=len(corpus.source_starts) - 1,
        max_length=max_length,
    )
    compiled = library.phrase_library()

    def extract(first: int) -> Occurrences:
        last = min(first + _BLOCK, native.sentences)
        count = compiled.phrases_extract(ctypes.byref(native), first, last, None)
        if count >= 0:
            arrays: dict[str, NDArray[Any]] = {
                name: np.empty(count, kind) for name, kind in zip(Occurrences._fields, _TYPES, strict=True)
            }
            out = library.PhraseOccurrences.of(arrays)
            count = compiled.phrases_extract(ctypes.byref(native), first, last, ctypes.byref(out))
        if count < 0:
            raise ResourceError("phrase extraction ran out of memory: free memory, or lower model.max_phrase_length")
        arrays |= {side: arrays[side].astype(np.uint32) for side in ("source", "target")}
        return Occurrences(**arrays)

    with ThreadPoolExecutor(threads) as pool:
        blocks = list(until_cancelled(pool.map(extract, range(0, native.sentences, _BLOCK))))
    if not blocks:
        empty: list[NDArray[Any]] = [np.zeros(0, kind) for kind in (np.uint32, np.uint32, *_TYPES[2:])]
        return Occurrences(*empty)
    return Occurrences(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


class Trie(NamedTuple):
    """Word sequences as a trie in breadth-first order. Node 0 is the empty sequence.

    words: (nodes) last word of each sequence; −1 for node 0. parents: (nodes). child_starts: (nodes + 1);
    the children of node n are child_starts[n] to child_starts[n + 1] − 1, sorted by word.
    """

    words: Ids
    parents: Ids
    child_starts: Ids

    def sequences(self) -> tuple[Ids, Ids]:
        """Return the words of all sequences, and the start of each sequence followed by the total number of words."""
        lengths = np.zeros(len(self.words), np.int32)
        ancestors = np.arange(len(self.words), dtype=np.int32)
        while (active := ancestors > 0).any():
            lengths += active
            ancestors = self.parents[ancestors]  # the parent of node 0 is node 0
        starts = np.zeros(len(self.words) + 1, np.int32)
        np.cumsum(lengths, out=starts[1:])
        words = np.empty(int(starts[-1]), np.int32)
        nodes = np.arange(len(self.words), dtype=np.int32)
        position = starts[1:] - 1
        while (active := nodes > 0).any():
            words[position[active]] = self.words[nodes[active]]
            position = np.where(active, position - 1, position)
            nodes = self.parents[nodes]
        return words, starts


def build_trie(words: Ids, starts: NDArray[np.integer], lengths: NDArray[np.int8]) -> tuple[Trie, Ids]:
    """Return a trie of word sequences, including their prefixes, and the node (n,) of each sequence.

    words: ids of a corpus. starts, lengths: (n,) position and number of words of each sequence.
    """
    nodes = np.zeros(len(starts), np.int32)
    levels: list[tuple[Ids, Ids]] = []  # the parents and words of each level
    total = 1
    for depth in range(int(lengths.max(initial=0))):
        active = np.flatnonzero(lengths > depth).astype(np.uint32)
        parents, ids = nodes[active], words[starts[active] + depth]
        order = np.lexsort((ids, parents)).astype(np.uint32)
        parents, ids, active = parents[order], ids[order], active[order]
        del order
        is_new = np.ones(len(active), bool)
        is_new[1:] = (parents[1:] != parents[:-1]) | (ids[1:] != ids[:-1])
        levels.append((parents[is_new], ids[is_new]))
        nodes[active] = total - 1 + np.cumsum(is_new, dtype=np.int32)
        total += len(levels[-1][0])
    all_parents = np.concatenate([np.zeros(1, np.int32), *(level[0] for level in levels)])
    all_ids = np.concatenate([np.full(1, -1, np.int32), *(level[1] for level in levels)])
    child_starts = np.searchsorted(all_parents[1:], np.arange(total + 1)).astype(np.int32) + 1
    return Trie(all_ids, all_parents, child_starts), nodes
