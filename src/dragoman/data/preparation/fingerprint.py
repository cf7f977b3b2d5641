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
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.readers import check_regular
from dragoman.data.files.archives import archive_of
from dragoman.data.files.lines import open_lines
from dragoman.text.normalization import Normalization
from dragoman.text.tokenizers import TextConfig, Tokenizers

LARGE = 1 << 26
"""Minimum size in bytes of files whose digests are cached. Smaller files are read every time."""

SETTLED = 2.0
"""Minimum age in seconds of files whose digests are cached. A file that changed more recently may change again without
a different time stamp."""

_FILE = "digests.json"


def file_digest(path: Path, folder: Path) -> str:
    """Return the SHA-256 digest of a file. folder: folder that caches the digests of large files.

    The digest of a member of an archive depends on the whole archive and on the name of the member.

    A cached digest is valid as long as the size, the inode, and the times of the last changes of contents and metadata
    are the same. The time of the last metadata change is set only by the kernel, so changed contents are detected.
    Raises DataError if the file cannot be read.
    """
    check_regular(path)
    archive = archive_of(path)
    if archive is not None:
        return _digest(file_digest(archive, folder), path.relative_to(archive).as_posix())
    try:
        stat = path.stat()
        cache = _read_cache(folder) if stat.st_size >= LARGE else {}
        key = str(path.resolve())
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev]
        if key in cache and cache[key][:-1] == stamp:
            return str(cache[key][-1])
        is_settled = time.time() - stat.st_ctime > SETTLED
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        next(open_lines(path), None)  # raises an error that explains why the file cannot be read
        raise
    if stat.st_size >= LARGE and is_settled:
        with contextlib.suppress(OSError, ResourceError):  # without the cache, the file is read again next time
            folder.mkdir(parents=True, exist_ok=True)
            atomic_write(folder / _FILE, json.dumps({**_read_cache(folder), key: [*stamp, digest]}))
    return digest


def _read_cache(folder: Path) -> dict[str, list[object]]:
    try:
        cache = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cache if isinstance(cache, dict) and all(isinstance(entry, list) for entry in cache.values()) else {}


_FORMAT = "2"
"""Version of cleaning and tokenisation. A change that gives other ids for the same settings increases it, so that
corpora that another version prepared are prepared again."""

AnyCleaning = CleaningConfig | TextCleaningConfig


class CorpusContents:
    """A corpus and the digests of its files, which depend on the contents of the files, not on their names.

    cleaning: the cleaning rules of the corpus, which depend on its languages. before: earlier corpora, whose pairs are
    dropped from this corpus.
    """

    def __init__(
        self,
        corpus: CorpusConfig | TextCorpusConfig,
        cleaning: AnyCleaning,
        folder: Path,
        before: Sequence["CorpusContents"] = (),
        others: str = "",
    ) -> None:
        """Compute the digests of all files. folder: as in `file_digest`. others: fingerprints of other data that the
        rules use: of the `PairScoring`, and of held-out sentences.

        Raises DataError if a file is missing or not a regular file.
        """
        self.corpus, self.cleaning, self._folder, self._before = corpus, cleaning, folder, before
        self._others = others
        self._digests = [file_digest(path, folder) for path in corpus.files]

    def cleaned_fingerprint(self, vectors: bool, normalizations: Sequence[Normalization] = ()) -> str:
        """Return the fingerprint of the cleaned text. normalizations: as in `clean`."""
        return _digest(
            "cleaned",
            _FORMAT,
            repr(self.corpus.selection),
            self._rules,
            repr(vectors),
            *self._digests,
            *self._earlier_parts(),
            *(() if set(normalizations) <= {"none"} else normalizations),
        )

    def token_fingerprint(self, text: TextConfig | Tokenizers, sample: int, extra: str = "") -> str:
        """Return the fingerprint of the token ids. extra: description of all other data that determine the ids."""
        parts = ["tokens", _FORMAT, repr(self.corpus.selection), self._rules, _subwords(text, sample) + extra]
        parts += self._digests
        parts += self._earlier_parts()
        if isinstance(text, TextConfig):
            parts += [file_digest(path, self._folder) for path in text.subword.files]
        return _digest(*parts)

    @property
    def _rules(self) -> str:
        """The settings without `duplicates_between`, because fingerprints contain the earlier corpora instead."""
        return self.cleaning.fingerprint("duplicates_between") + self._others

    def _earlier_parts(self) -> list[str]:
        return [part for each in self._before for part in ("before", repr(each.corpus.selection), *each._digests)]

    @staticmethod
    def vocabulary_fingerprint(
        contents: Sequence["CorpusContents"],
        text: TextConfig,
        sample: int,
        temperature: float | None,
    ) -> str:
        """Return the fingerprint of a vocabulary learned from several corpora."""
        vectors = text.vectors is not None
        parts = [f"{each.cleaned_fingerprint(vectors)} {each.corpus.weight}" for each in contents]
        parts += [file_digest(path, contents[0]._folder) for path in text.subword.files]
        return _digest("vocabulary", _subwords(text, sample), repr(temperature), *parts)


def _subwords(text: TextConfig | Tokenizers, sample: int) -> str:
    if isinstance(text, Tokenizers):
        return text.fingerprint
    settings = text.model_dump(mode="json", exclude={"subword": {"dropout"}})
    settings["normalization"] = text.effective_normalization
    return f"{json.dumps(settings, ensure_ascii=False)} {library.__version__} {sample}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
