"""Digests of files, remembered where they are large: a run of eight processes must not read a corpus eight times."""

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
"""Bytes. Smaller files are read each time."""

SETTLED = 2.0
"""Seconds. A file that was changed so shortly before may change again without its times telling so."""

_FILE = "digests.json"


def file_digest(path: Path, folder: Path) -> str:
    """SHA-256 of a file's contents. folder: where those of large files are remembered.

    Remembered with size, place, and the times of the last change of contents and of the file's entry; the latter is the
    kernel's own and cannot be set, so contents that change are noticed. Raises DataError where the file cannot be read.
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
        next(open_lines(path), None)  # raises the error that tells the user what is wrong with the file
        raise
    if stat.st_size >= LARGE and settled:
        with contextlib.suppress(OSError, ResourceError):  # then it is read again the next time
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
"""Of what the ids are, not of how they are stored. Large corpora may have a vocabulary that is learned from a part of
them since format 2; runs of earlier versions on others go on."""

AnyCleaning = CleaningConfig | TextCleaningConfig

_SMALL = 8_000_000
"""Bytes of files, compressed or not."""


class CorpusContents:
    """A corpus and the digests of its files, which count by their contents and not by their names.

    before: the corpora whose pairs are dropped of this one.
    """

    def __init__(
        self, corpus: CorpusConfig | TextCorpusConfig, folder: Path, before: Sequence["CorpusContents"] = ()
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
        contents: Sequence["CorpusContents"],
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
