"""`SentenceKeys`: the sentences of held-out pairs, which must not be in the training corpora."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Self

import regex

from dragoman.data.cleaning.repair import repair_control_characters, unescape

_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_NUMBER = regex.compile(r"\p{N}+")


def normalise(text: str) -> str:
    """Return a text without differences in case, spaces, normalisation forms, escapes and control characters."""
    text = unescape(repair_control_characters(text, newlines=False))
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return " ".join(text.casefold().split())


def sentence_key(text: str) -> int:
    """Return a 64-bit key that is the same for near-duplicates.

    Near-duplicates differ only in what `normalise` removes, in punctuation, spaces, numbers and compatibility
    characters. Texts without letters and numbers are compared after `normalise`. By the birthday bound, two of 1e8
    different sentences and 20,000 candidates have the same key with a probability of 1e-7.
    """
    normalised = normalise(text)
    compatible = normalised if normalised.isascii() else unicodedata.normalize("NFKC", normalised).casefold()
    letters = _NUMBER.sub("0", _NO_LETTERS.sub("", compatible)) or normalised
    return int.from_bytes(blake2b(letters.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class SentenceKeys:
    """The keys of both sides of held-out pairs. A side is compared only with the same side of other pairs.

    Those of held-out texts are `sources`.
    """

    sources: frozenset[int]
    targets: frozenset[int]

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return the keys of the sources and targets of pairs."""
        keys = [(sentence_key(source), sentence_key(target)) for source, target in pairs]
        return cls(frozenset(source for source, _ in keys), frozenset(target for _, target in keys))

    def contain_text(self, text: str) -> bool:
        """Return whether a text is a near-duplicate of one of the texts."""
        return sentence_key(text) in self.sources

    def contain(self, source: str, target: str) -> bool:
        """Return whether the source or the target of a pair is a near-duplicate of one of the sentences."""
        return sentence_key(source) in self.sources or sentence_key(target) in self.targets

    @property
    def fingerprint(self) -> str:
        """A digest of all keys."""
        return sha256(repr((sorted(self.sources), sorted(self.targets))).encode()).hexdigest()
