"""Fingerprints of prepared corpora: digests of exactly the data and settings that determine their contents.

Digests of large files are cached, so that a run with eight processes does not read a corpus eight times.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import tokenizers as library

from dragoman.base.errors import ResourceError
from dragoman.base.files import atomic_write
from dragoman.data.cleaning.rules import CleaningConfig, TextCleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.lines import open_lines
from dragoman.data.corpora.readers import check_regular
from dragoman.data.preparation.vocabulary import SAMPLE
from dragoman.text.tokenizers import TextConfig, Tokenizers

LARGE = 1 << 26
"""Minimum number of bytes of files whose digests are cached; smaller files are read every time."""

SETTLED = 2.0
"""Minimum age in seconds of cached files: a file that changed more recently may change again within its time stamp."""

_FILE = "digests.json"


def file_digest(path: Path, folder: Path) -> str:
    """Return the SHA-256 digest of a file. folder: cache for the digests of large files.

    A cached digest is valid for the same size, inode, and times of the last change of contents and of metadata. Only
    the kernel sets the latter, so changed contents are detected. Raises DataError if the file cannot be read.
    """
    check_regular(path)
    try:
        stat = path.stat()
        known = _known(folder) if stat.st_size >= LARGE else {}
        key = str(path.resolve())
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]
        if key in known and known[key][:-1] == stamp:
            return str(known[key][-1])
        settled = time.time() - stat.st_ctime > SETTLED
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        next(open_lines(path), None)  # raises an error that explains why the file cannot be read
        raise
    if stat.st_size >= LARGE and settled:
        with contextlib.suppress(OSError, ResourceError):  # without the cache, the file is read again next time
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write(folder / _FILE, json.dumps({**_known(folder), key: [*stamp, digest]}))
    return digest


def _known(folder: Path) -> dict[str, list[object]]:
    try:
        known = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(entry, list) for entry in known.values()) else {}


_FORMAT = {False: "1", True: "2"}
"""Format of the ids (not of their storage), by whether a vocabulary is learned from a large corpus. Since format 2, it
may be learned from a sample; other corpora keep format 1, so that runs of earlier versions can resume."""

AnyCleaning = CleaningConfig | TextCleaningConfig

_SMALL = 8_000_000
"""Bytes of a corpus's files, as stored."""


class CorpusContents:
    """A corpus and the digests of its files, which depend on their contents, not on their names.

    before: earlier corpora, whose pairs are dropped from this one.
    """

    def __init__(
        self, corpus: CorpusConfig | TextCorpusConfig, folder: Path, before: Sequence["CorpusContents"] = ()
    ) -> None:
        """Read all files. folder: see `file_digest`. Raises DataError if a file is missing or not a regular file."""
        self.corpus, self._folder, self._before = corpus, folder, before
        self._digests = [file_digest(path, folder) for path in corpus.files]
        self._large = sum(path.stat().st_size for path in corpus.files) > _SMALL

    def cleaned(self, cleaning: AnyCleaning, vectors: bool) -> str:
        """Return the fingerprint of the cleaned text."""
        return _digest(
            "cleaned",
            repr(self.corpus.selection),
            _rules(cleaning),
            repr(vectors),
            *self._digests,
            *self._earlier_parts(),
        )

    def tokenised(self, cleaning: AnyCleaning, text: TextConfig | Tokenizers, sample: int, more: str = "") -> str:
        """Return the fingerprint of the token ids. more: description of all other data that determine them."""
        parts = [
            _FORMAT[self._large and isinstance(text, TextConfig)],
            repr(self.corpus.selection),
            _rules(cleaning),
            _subwords(text, sample) + more,
        ]
        parts += self._digests
        parts += self._earlier_parts()
        if isinstance(text, TextConfig):
            parts += [file_digest(path, self._folder) for path in text.subword.files]
        return _digest(*parts)

    def _earlier_parts(self) -> list[str]:
        return [part for each in self._before for part in ("before", repr(each.corpus.selection), *each._digests)]

    @staticmethod
    def vocabulary(
        contents: Sequence["CorpusContents"],
        cleaning: AnyCleaning,
        text: TextConfig,
        sample: int,
        temperature: float | None,
    ) -> str:
        """Return the fingerprint of a vocabulary learned from several corpora."""
        parts = [f"{each.cleaned(cleaning, text.vectors is not None)} {each.corpus.weight}" for each in contents]
        parts += [file_digest(path, contents[0]._folder) for path in text.subword.files]
        return _digest("vocabulary", _subwords(text, sample), repr(temperature), *parts)


def _rules(cleaning: AnyCleaning) -> str:
    """Return the settings without `duplicates_between`, which is represented by the earlier corpora."""
    return cleaning.model_dump_json(exclude={"duplicates_between"})


def _subwords(text: TextConfig | Tokenizers, sample: int) -> str:
    if isinstance(text, Tokenizers):
        return text.fingerprint
    # unused settings are left out, so that fingerprints are the same as before these settings existed
    settings = text.model_dump(mode="json", exclude={"subword": {"dropout"}})
    for name in ("vectors", "tags"):
        if not settings[name]:
            del settings[name]
    described = json.dumps(settings, separators=(",", ":"), ensure_ascii=False) + library.__version__
    return described if sample == SAMPLE else f"{described} {sample}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
