"""Fingerprints of prepared corpora: digests of all that decides what is in them, and of nothing else."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import tokenizers as library

from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.text_corpus import TextCorpusConfig
from dragoman.data.preparation.cleaning import CleaningConfig
from dragoman.data.preparation.digests import file_digest
from dragoman.data.preparation.text_cleaning import TextCleaningConfig
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.text.tokenizers import TextConfig, Tokenizers

_FORMAT = {False: "1", True: "2"}
"""Of what the ids are, not of how they are stored. Large corpora may have a vocabulary that is learned from a part of
them since format 2; runs of earlier versions on others go on."""

AnyCleaning = CleaningConfig | TextCleaningConfig

_SMALL = 8_000_000
"""Bytes of files, compressed or not."""


class Contents:
    """A corpus and the digests of its files, which count by their contents and not by their names.

    before: the corpora whose pairs are dropped of this one.
    """

    def __init__(
        self, corpus: CorpusConfig | TextCorpusConfig, folder: Path, before: Sequence["Contents"] = ()
    ) -> None:
        """Reads all files; folder: see `file_digest`. Raises DataError where one is missing or no regular file."""
        self.corpus, self._folder, self._before = corpus, folder, before
        self._digests = [file_digest(path, folder) for path in corpus.files]
        self._large = sum(path.stat().st_size for path in corpus.files) > _SMALL

    def cleaned(self, cleaning: AnyCleaning, vectors: bool) -> str:
        """Of the cleaned text."""
        return _joined(
            "cleaned",
            repr(self.corpus.selection),
            _rules(cleaning),
            repr(vectors),
            *self._digests,
            *self._of_those_before(),
        )

    def tokenised(self, cleaning: AnyCleaning, text: TextConfig | Tokenizers, sample: int, more: str = "") -> str:
        """Of the token ids. more: what else decides them."""
        parts = [
            _FORMAT[self._large and isinstance(text, TextConfig)],
            repr(self.corpus.selection),
            _rules(cleaning),
            _subwords(text, sample) + more,
        ]
        parts += self._digests
        parts += self._of_those_before()
        if isinstance(text, TextConfig):
            parts += [file_digest(path, self._folder) for path in text.subword.files]
        return _joined(*parts)

    def _of_those_before(self) -> list[str]:
        return [part for each in self._before for part in ("before", repr(each.corpus.selection), *each._digests)]

    @staticmethod
    def vocabulary(
        contents: Sequence["Contents"],
        cleaning: AnyCleaning,
        text: TextConfig,
        sample: int,
        temperature: float | None,
    ) -> str:
        """Of a vocabulary that is learned from several corpora."""
        parts = [f"{each.cleaned(cleaning, text.vectors is not None)} {each.corpus.weight}" for each in contents]
        parts += [file_digest(path, contents[0]._folder) for path in text.subword.files]
        return _joined("vocabulary", _subwords(text, sample), repr(temperature), *parts)


def _rules(cleaning: AnyCleaning) -> str:
    """Without what counts by the corpora before, which are named where it is on."""
    return cleaning.model_dump_json(exclude={"duplicates_between"})


def _subwords(text: TextConfig | Tokenizers, sample: int) -> str:
    if isinstance(text, Tokenizers):
        return text.fingerprint
    # what is not used leaves the fingerprint as it was before there were vectors and tags
    settings = text.model_dump(mode="json", exclude={"subword": {"dropout"}})
    for name in ("vectors", "tags"):
        if not settings[name]:
            del settings[name]
    described = json.dumps(settings, separators=(",", ":"), ensure_ascii=False) + library.__version__
    return described if sample == SAMPLE else f"{described} {sample}"


def _joined(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
