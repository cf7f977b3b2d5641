"""`Preparation`: the steps from raw corpora to token ids. Every step can be resumed, and its result is reused."""

import contextlib
import fcntl
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from dragoman.base.errors import DataError, DragomanError, ModelError, ResourceError
from dragoman.base.files import atomic_folder, remove_folder, remove_stale_temporaries, unwritable
from dragoman.base.log import info, warn
from dragoman.base.progress import Progress
from dragoman.data.batches.epoch import Part, epoch_weights
from dragoman.data.cleaning.clean import clean
from dragoman.data.cleaning.cleaned_corpus import CleanedCorpus
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.data.cleaning.report import SETTING, CleaningReport, FindingCount
from dragoman.data.cleaning.rules import Rules
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.items import Item
from dragoman.data.dataset import Dataset, DatasetUnion, DatasetWriter
from dragoman.data.preparation.fingerprint import CorpusContents
from dragoman.data.preparation.tokenising import ChunkTokeniser, tokenise
from dragoman.data.preparation.vocabulary import learn_vocabulary
from dragoman.text.normalization import Normalization
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.unknown_tokens import has_unknown_tokens

REPORT = "cleaning.json"
TOKENS = "tokens"

_DIVISION = 2
"""Version of the division into chunks, which changes with the boundaries of chunks. Chunks of other versions are not
reused."""

SUSPICIOUS_FRACTION = 0.2
"""Fraction of a corpus above which a warning is logged if cleaning drops more."""


ESCAPED_FRACTION = 0.01
"""Fraction of a corpus above which a warning is logged if more lines contain the same escape, such as `&quot;`."""


@dataclass(frozen=True)
class PreparedCorpora:
    """Tokenised corpora.

    dataset: the token ids of all corpora. tokenizers: the tokenizers that were used. reports: the cleaning report of
    each corpus. parts: the number of rows of each corpus and the number of times that an epoch reads it, in the order
    of the dataset.
    """

    dataset: Dataset | DatasetUnion
    tokenizers: Tokenizers
    reports: tuple[CleaningReport, ...]
    parts: tuple[Part, ...]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The fingerprint of each corpus."""
        return tuple(part.fingerprint for part in self.dataset.parts)


Corpus = TypeVar("Corpus", bound=CorpusConfig | TextCorpusConfig)
Cleaning = TypeVar("Cleaning", bound=CleaningConfig | TextCleaningConfig)
Opened = tuple[Dataset, Tokenizers, CleaningReport]


@dataclass
class Preparation(ABC, Generic[Corpus, Cleaning]):
    """Prepares corpora of any kind. The fields are the arguments of `prepare`.

    unit: name of the items that are counted, such as pairs. dataset: class that opens prepared folders. hint: end of
    the warning about dropped items, on how to list them. scoring: as in `clean`. held_out: sentences that are left out
    of training. vectors: whether the source consists of feature vectors.
    """

    corpora: tuple[Corpus, ...]
    cleaning: Cleaning
    text: TextConfig | Tokenizers
    folder: Path
    temperature: float | None
    sample: int
    workers: int | None

    unit: ClassVar[str]
    dataset: ClassVar[type[Dataset]]
    hint: ClassVar[str] = ""
    scoring: PairScoring | None = field(default=None, init=False)
    held_out: SentenceKeys | None = field(default=None, init=False)
    vectors: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Compute the digests of all corpora. Raises ConfigError for contradictory settings."""
        epoch_weights(self.corpora, [1] * len(self.corpora), self.temperature)
        self.contents: list[CorpusContents] = []
        others = "".join(each.fingerprint for each in (self.scoring, self.held_out) if each is not None)
        for index, corpus in enumerate(self.corpora):
            before = [self.contents[other] for other in self.earlier_corpora(index)]
            self.contents.append(CorpusContents(corpus, self.cleaning_of(corpus), self.folder, before, others))
        self.cleaned: dict[int, CleanedCorpus] = {}
        self.reused: dict[str, Opened] = {}

    @abstractmethod
    def read(self, corpus: Corpus) -> Iterator[Item]:
        """Yield the items of a corpus."""

    @abstractmethod
    def cleaning_of(self, corpus: Corpus) -> Cleaning:
        """Return the cleaning rules with the scripts of the languages of a corpus."""

    @abstractmethod
    def rules(self, corpus: Corpus) -> Rules:
        """Return the cleaning rules of a corpus."""

    @abstractmethod
    def chunk_tokeniser(self, corpus: Corpus, source: Path, work: Path, tokenizers: Tokenizers) -> ChunkTokeniser:
        """Return a function that tokenises the chunks of the folder `source` into the folder `work`."""

    @property
    def normalizations(self) -> tuple[Normalization, ...]:
        """The Unicode normalisation of each side of the corpora. Feature vectors are not normalised."""
        text = self.text
        if isinstance(text, Tokenizers):
            return text.normalizations
        form = text.effective_normalization
        return ("none" if self.vectors else form), form

    def earlier_corpora(self, index: int) -> Sequence[int]:
        """Return the indices of the earlier corpora whose pairs are dropped from corpus `index`."""
        return ()

    def describe_extra(self, corpus: Corpus) -> str:
        """Return a string for the fingerprint that describes data other than text, cleaning and tokenizers."""
        return ""

    def count_marked(self, tokeniser: ChunkTokeniser, chunks: int) -> dict[str, dict[str, int]]:
        """Return the counts of inserted symbols, for the report."""
        return {}

    def run(self) -> PreparedCorpora:
        """Prepare the corpora, or open them if they are already prepared."""
        prepared = self._open_all(build=False)
        if prepared is None:
            with _locked(self.folder):
                remove_stale_temporaries(self.folder)
                try:
                    prepared = self._open_all(build=True)
                except ResourceError:
                    info(f"Data: completed work is kept in {self.folder}; run the same command again to resume.")
                    raise
                except DragomanError:
                    self._remove_unfinished()
                    raise
                self._remove_unfinished()
        assert prepared is not None
        datasets, tokenizers, reports = prepared
        weights = epoch_weights(self.corpora, [dataset.amount for dataset in datasets], self.temperature)
        dataset = datasets[0] if len(datasets) == 1 else DatasetUnion(datasets, weights, self.folder)
        return PreparedCorpora(dataset, tokenizers, tuple(reports), tuple(map(Part, map(len, datasets), weights)))

    def _open_all(self, build: bool) -> tuple[list[Dataset], Tokenizers, list[CleaningReport]] | None:
        """Open all corpora. build: whether to prepare missing corpora; if False, return None if a corpus is missing."""
        text: TextConfig | Tokenizers | None = self.text
        if isinstance(text, TextConfig) and len(self.corpora) > 1:
            text = self._open_vocabulary(text, build)
        if text is None:
            return None
        opened = []
        for index in range(len(self.corpora)):
            part = self._open_corpus(index, text, build)
            if part is None:
                return None
            opened.append(part)
        return [part[0] for part in opened], opened[0][1], [part[2] for part in opened]

    def _open_vocabulary(self, text: TextConfig, build: bool) -> Tokenizers | None:
        """Return the vocabulary of several corpora, which is stored in a separate folder. build: as in `_open_all`."""
        settings = text, self.sample, self.temperature
        path = self.folder / CorpusContents.vocabulary_fingerprint(self.contents, *settings)[:16]
        if path.exists():
            try:
                return Tokenizers.load(path).with_dropout(text.subword.resampling)
            except ModelError as error:
                if build:
                    warn(f"{error} Learning the vocabulary again.")
                    remove_folder(path)
        if not build:
            return None
        tokenizers = self._learn(text, range(len(self.corpora)))
        with atomic_folder(path) as temporary:
            tokenizers.save(temporary)
        return tokenizers

    def _learn(self, text: TextConfig, indices: Sequence[int]) -> Tokenizers:
        cleaned = [self._clean(index) for index in indices]
        sizes = [each.pairs for each in cleaned]
        weights = epoch_weights([self.corpora[index] for index in indices], sizes, self.temperature)
        with Progress("Learning the vocabulary"):
            return learn_vocabulary(cleaned, weights, text, self.sample)

    def _open_corpus(self, index: int, text: TextConfig | Tokenizers, build: bool) -> Opened | None:
        """Open a corpus. build: as in `_open_all`."""
        corpus = self.corpora[index]
        extra = self.describe_extra(corpus)
        fingerprint = self.contents[index].token_fingerprint(text, self.sample, extra)
        path = self.folder / fingerprint[:16]
        if fingerprint in self.reused:
            return self.reused[fingerprint]
        if path.exists():
            try:
                opened = self._open(path, fingerprint, text)
            except (DataError, ModelError) as error:
                if not build:
                    return None
                warn(f"{error} Preparing {corpus} again.")
                remove_folder(path)
            else:
                info(f"Data: reused {opened[0]} of {corpus} from {path}")
                self._report(opened[2])
                self.reused[fingerprint] = opened
                return opened
        if not build:
            return None
        info(f"Data: preparing {corpus} into {path}")
        with Progress("Preparing"), atomic_folder(path) as temporary:
            self._build(index, text, temporary, fingerprint)
        opened = self._open(path, fingerprint, text)
        self._report(opened[2])
        if opened[2].unsuitable > SUSPICIOUS_FRACTION * opened[2].total:
            warn(f"Cleaning dropped much of {corpus}{self.hint}.")
        self._warn_of_escapes(opened[2], corpus)
        return opened

    def _warn_of_escapes(self, report: CleaningReport, corpus: Corpus) -> None:
        escapes = [each for each in report.found if each.setting == "unescape"]
        most = max(escapes, key=lambda each: each.lines, default=None)
        if most is not None and not self.cleaning.unescape and most.lines > ESCAPED_FRACTION * report.total:
            warn(
                f"{most.lines:,} lines of {corpus} contain the escape {most.name}. The model learns to write it unless "
                "data.cleaning.unescape=true replaces it."
            )

    def _build(self, index: int, text: TextConfig | Tokenizers, path: Path, fingerprint: str) -> None:
        corpus, cleaned = self.corpora[index], self._clean(index)
        work = cleaned.folder / f"{TOKENS}-{fingerprint[:16]}"
        work.mkdir(exist_ok=True)
        if isinstance(text, Tokenizers):
            tokenizers = text
        else:
            try:
                tokenizers = Tokenizers.load(work / "vocabulary")
            except ModelError:
                tokenizers = self._learn(text, [index])
                with atomic_folder(work / "vocabulary", replace=True) as temporary:
                    tokenizers.save(temporary)
            tokenizers.save(path)
        tokeniser = self.chunk_tokeniser(corpus, cleaned.folder, work, tokenizers)
        writer = DatasetWriter(path, tokeniser.dtypes, tokenizers.source.size if self.vectors else None)
        try:
            report = tokenise(tokeniser, cleaned, writer, path, self.workers)
            _check_not_empty(report, corpus)
            values = {self.unit: report.total, "counts": report.counts, **self.count_marked(tokeniser, len(cleaned))}
            values |= {"found": list(report.found), "details": dict(report.details)}
            (path / REPORT).write_text(json.dumps(values), encoding="utf-8")
            writer.finish(fingerprint, (REPORT, *report.files))
        finally:
            writer.close()

    def _clean(self, index: int) -> CleanedCorpus:
        if index not in self.cleaned:
            corpus, path = self.corpora[index], self._work_folder(index)
            before = [self._clean(other) for other in self.earlier_corpora(index)]
            try:
                path.mkdir(exist_ok=True)
                items, rules = self.read(corpus), self.rules(corpus)
                self.cleaned[index] = clean(
                    items,
                    rules,
                    path,
                    workers=self.workers,
                    before=before,
                    normalizations=self.normalizations,
                    scoring=self.scoring,
                )
            except OSError as error:  # errors in the files of the corpus are DataErrors
                raise unwritable(path, error) from error
            _check_not_empty(self.cleaned[index].report, corpus)
        return self.cleaned[index]

    def _work_folder(self, index: int) -> Path:
        """Return the folder of a corpus's chunks during preparation. After a kill, the next preparation reuses them."""
        fingerprint = self.contents[index].cleaned_fingerprint(self.vectors, self.normalizations)
        return self.folder / f".{fingerprint[:16]}-{_DIVISION}.unfinished"

    def _remove_unfinished(self) -> None:
        self.cleaned.clear()
        for index in range(len(self.corpora)):
            shutil.rmtree(self._work_folder(index), ignore_errors=True)

    def _report(self, report: CleaningReport) -> None:
        info(report.table())

    def _open(self, path: Path, fingerprint: str, text: TextConfig | Tokenizers) -> Opened:
        dataset = self.dataset(path)
        if dataset.fingerprint != fingerprint:
            raise DataError(f"The tokenised corpus in {path} was prepared from other data.")
        if isinstance(text, TextConfig):
            text = Tokenizers.load(path).with_dropout(text.subword.resampling)
        try:
            values = json.loads((path / REPORT).read_text(encoding="utf-8"))
            counts, marked = values["counts"], values.get("marked", {})
            found = [FindingCount(*each) for each in values.get("found", ())]
            stored = CleaningReport.from_files(
                path, int(values[self.unit]), counts, unit=self.unit, found=found, details=values.get("details")
            )
            report = replace(stored, marked=marked)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path / REPORT} is damaged ({error}).") from error
        tokenizers = {"source": text.source, "target": text.target, "text": text.target}
        unknown = {
            side: dataset.count_unknown(index)
            for index, side in enumerate(dataset.sides)
            if has_unknown_tokens(tokenizers[side])
        }
        return dataset, text, replace(report, unknown=unknown)


def _check_not_empty(report: CleaningReport, corpus: CorpusConfig | TextCorpusConfig) -> None:
    if report.kept == 0:
        settings = ", ".join(map(SETTING.format, report.counts))
        raise DataError(
            f"Cleaning dropped everything in {corpus}. Fix the corpus, or relax {settings}.\n{report.table()}"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for an exclusive lock on the folder and hold it. It is released at the latest when the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            info(f"Data: waiting for another process that prepares corpora in {folder}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
