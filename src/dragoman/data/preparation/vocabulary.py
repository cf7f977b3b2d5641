"""Vocabulary learning, from the whole text of small corpora or a fixed sample of large corpora."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from dragoman.base.log import info
from dragoman.data.batches.permutation import hash_numbers
from dragoman.data.cleaning.chunks import chunk_file, open_verdicts, read_texts
from dragoman.data.cleaning.cleaned_corpus import CleanedCorpus, text_bytes
from dragoman.data.workers import Workers
from dragoman.text.pieces import LONGEST_RUN
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

SAMPLE = 40_000_000
"""Default sample size in bytes of text, about 300,000 sentence pairs."""

DISTINCT_DIVISOR = 20
"""Minimum ratio of the sample's size to the total size of its distinct words, because memory use grows with the bytes
of the distinct words: about 118 bytes per byte of a byte-level BPE."""

_SMALL = 4_000_000
_SLOTS = 1 << 22
_LONG_WORD = 32
_PARTS = regex.compile(rf"[\p{{L}}\p{{M}}]{{1,{LONGEST_RUN}}}+|[^\p{{L}}\p{{M}}]+")
_NEVER = np.uint32(2**32 - 1)


class WordSlots(NamedTuple):
    """The distinct words of a sample by their hashes.

    draws: (slots,) uint32, the smallest draw as a fraction of the rate, where 2^32 represents 1. sizes: (slots,)
    uint32, the size of the word in UTF-8 bytes.
    """

    draws: NDArray[np.uint32]
    sizes: NDArray[np.uint32]

    @staticmethod
    def empty() -> "WordSlots":
        """Return slots without words."""
        return WordSlots(np.full(_SLOTS, _NEVER, np.uint32), np.zeros(_SLOTS, np.uint32))


@dataclass(frozen=True)
class Sample:
    """A sample of a cleaned corpus. Each item is included with probability `rate`, depending only on its index.

    folder, starts: as in `CleanedCorpus`.
    """

    folder: Path
    starts: NDArray[np.int64]
    rate: float = 1.0

    def texts(self, side: str) -> Iterator[str]:
        """Yield the sampled texts of a side in corpus order."""
        for _, texts in self._chunks(side):
            yield from texts

    def corpus_bytes(self, side: str) -> int:
        """Return the number of UTF-8 bytes of all kept texts of a side of the corpus, independently of the rate."""
        return text_bytes(self.folder, self.starts, side)

    def lower_draws(self, side: str, slots: "WordSlots") -> None:
        """Lower the slot of each word of the sample to the smallest draw of the sentences that contain the word.

        If the rate is multiplied by less than this draw, the sample no longer contains the word.
        """
        for draws, texts in self._chunks(side):
            parts = ((draws >> np.uint64(32)) / self.rate).astype(np.int64).tolist()
            for part, text in zip(parts, texts, strict=True):
                for word in _distinct_units(text):
                    encoded = word.encode()
                    slot = zlib.crc32(encoded) % _SLOTS
                    if part < slots.draws[slot]:
                        slots.draws[slot] = part
                        slots.sizes[slot] = len(encoded)

    def _chunks(self, side: str) -> Iterator[tuple[NDArray[np.uint64], list[str]]]:
        """Yield the draws of the sampled texts, which are below rate · 2^64, and the texts, chunk by chunk."""
        verdicts = open_verdicts(self.folder)
        for number, (first, last) in enumerate(pairwise(self.starts.tolist())):
            draws = hash_numbers(np.arange(first, last, dtype=np.uint64), 0)
            chosen = verdicts[first:last] == 0
            if self.rate < 1:
                chosen &= draws < np.uint64(self.rate * 2**64)
            yield draws[chosen], read_texts(chunk_file(self.folder, number), side, chosen)


@dataclass(frozen=True)
class VocabularyLearner:
    """Learns a vocabulary from samples. max_bytes: as in `learn_vocabulary`. sides: names of the corpora's sides."""

    text: TextConfig
    max_bytes: int
    sides: tuple[str, ...] = CleanedCorpus.sides

    def __call__(self, task: tuple[list[Sample], list[float]]) -> tuple[Tokenizers, float]:
        """Learn a vocabulary. Returns the tokenizers and the fraction of the text that was used.

        task: samples with rate 1, and the epoch weights of their corpora.
        """
        samples, weights = task
        sides = self.sides if self.text.vectors is None else self.sides[1:]
        sizes = [sum(map(sample.corpus_bytes, sides)) for sample in samples]
        if sum(sizes) > self.max_bytes:
            epoch_size = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
            samples = [
                replace(sample, rate=min(1.0, self.max_bytes * weight / epoch_size))
                for sample, weight in zip(samples, weights, strict=True)
            ]
        distinct_bytes = max(1, self.max_bytes // DISTINCT_DIVISOR)
        if sum(sizes) > min(_SMALL, max(distinct_bytes, SAMPLE // DISTINCT_DIVISOR)):
            factor = _rate_factor(samples, sides, distinct_bytes)
            samples = [replace(sample, rate=sample.rate * factor) for sample in samples]
        *sources, targets = (chain.from_iterable([sample.texts(side) for sample in samples]) for side in self.sides)
        sampled = sum(size * sample.rate for size, sample in zip(sizes, samples, strict=True))
        return train_tokenizers(self.text, chain(*sources), targets), sampled / max(1, sum(sizes))


def learn_vocabulary(
    corpora: Sequence[CleanedCorpus], weights: Sequence[float], text: TextConfig, max_bytes: int = SAMPLE
) -> Tokenizers:
    """Learn subwords from corpora that an epoch reads `weights` times each.

    max_bytes: maximum number of bytes of text, summed over all sides. Larger corpora are sampled at random, in the
    proportions of an epoch. Corpora whose distinct words have more than `max_bytes` / DISTINCT_DIVISOR bytes in total,
    such as large corpora in scripts without spaces, are sampled as well. Unless the corpora are small, learning runs in
    a separate process, whose memory is freed afterwards.
    """
    pairs, sides = sum(cleaned.pairs for cleaned in corpora), corpora[0].sides
    learner = VocabularyLearner(text.model_copy(update={"subword": text.subword.with_size(pairs)}), max_bytes, sides)
    task = [Sample(cleaned.folder, cleaned.starts) for cleaned in corpora], list(weights)
    if sum(sample.corpus_bytes(sides[-1]) for sample in task[0]) < _SMALL // 4:
        return learner(task)[0]
    with Workers(learner, 1, threads=True) as workers:
        ((tokenizers, fraction),) = workers.map([task])
    if fraction < 1:
        info(f"Data: subwords were learned from {fraction:.1%} of the text (data.vocabulary_sample={max_bytes})")
    return tokenizers


def _rate_factor(samples: Sequence[Sample], sides: Sequence[str], distinct_bytes: int) -> float:
    """Return a factor of at most 1 for all rates, with which the distinct words of the samples have at most about
    `distinct_bytes` bytes.

    Distinct words are estimated by linear counting (Whang et al. 1990): if n words are hashed into m slots,
    m · exp(-n / m) slots remain empty. The n-th word of a sample that grows word by word is therefore estimated to
    represent m / (m - n) words.
    """
    slots = WordSlots.empty()
    for sample in samples:
        for side in sides:
            sample.lower_draws(side, slots)
    filled = np.flatnonzero(slots.draws != _NEVER)
    order = filled[np.argsort(slots.draws[filled], kind="stable")]
    represented = _SLOTS / (_SLOTS - np.arange(len(order)))
    exceeds = np.cumsum(slots.sizes[order] * represented) > distinct_bytes
    if not exceeds.any():
        return 1.0
    return float(slots.draws[order[np.argmax(exceeds)]]) / 2**32


def _distinct_units(text: str) -> list[str]:
    """Return the words of a text, roughly as a vocabulary counts them: between spaces, and parts of long words."""
    words = text.split()
    if max(map(len, words), default=0) < _LONG_WORD:
        return words
    return [part for word in words for part in (_PARTS.findall(word) if len(word) >= _LONG_WORD else (word,))]
