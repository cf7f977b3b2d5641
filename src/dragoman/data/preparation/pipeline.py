"""`Preparation`: the steps from raw corpora to token ids, each of which is resumable and reused."""

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
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.rules import CleaningConfig, Rules, TextCleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.items import Item
from dragoman.data.dataset import Dataset, DatasetUnion, DatasetWriter
from dragoman.data.preparation.fingerprint import CorpusContents
from dragoman.data.preparation.tokenising import BlockTokeniser, tokenise
from dragoman.data.preparation.vocabulary import learn_vocabulary
from dragoman.text.tokenizers import TextConfig, Tokenizers

REPORT = "cleaning.json"
TOKENS = "tokens"

SUSPICIOUS_SHARE = 0.2
"""A warning is logged if cleaning drops a larger share of a corpus than this."""


@dataclass(frozen=True)
class PreparedCorpora:
    """Tokenised corpora.

    dataset: the token ids of all corpora; tokenizers: the tokenizers used; reports: the cleaning report of each corpus;
    parts: the number of rows of each corpus, in the order of the dataset, and how many times an epoch reads it.
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
Found = tuple[Dataset, Tokenizers, CleaningReport]


@dataclass
class Preparation(ABC, Generic[Corpus, Cleaning]):
    """Prepares corpora of any kind. The fields are the arguments of `prepare`.

    unit: name of the items that are counted, such as pairs; dataset: class that opens prepared folders; check: a hint
    for messages on how to list dropped lines; vectors: whether the source consists of feature vectors.
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
    check: ClassVar[str] = ""
    vectors: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Fingerprint all corpora. Raises ConfigError for contradictory settings before any work is done."""
        epoch_weights(self.corpora, [1] * len(self.corpora), self.temperature)
        self.contents: list[CorpusContents] = []
        for index, corpus in enumerate(self.corpora):
            before = [self.contents[other] for other in self.before(index)]
            self.contents.append(CorpusContents(corpus, self.folder, before))
        self.cleaned: dict[int, CleanedCorpus] = {}
        self.reused: dict[str, Found] = {}

    @abstractmethod
    def read(self, corpus: Corpus) -> Iterator[Item]:
        """Yield the items of a corpus."""

    @abstractmethod
    def rules(self, corpus: Corpus) -> Rules:
        """Return the cleaning rules of a corpus."""

    @abstractmethod
    def function(self, corpus: Corpus, source: Path, work: Path, tokenizers: Tokenizers) -> BlockTokeniser:
        """Return a function that tokenises the blocks in the folder `source` into the folder `work`."""

    def before(self, index: int) -> Sequence[int]:
        """Return the indices of the earlier corpora whose pairs are dropped from this one."""
        return ()

    def more(self, corpus: Corpus) -> str:
        """Return a string for the fingerprint that describes data other than text, cleaning and tokenizers."""
        return ""

    def marked(self, function: BlockTokeniser, blocks: int) -> dict[str, dict[str, int]]:
        """Return the counts of inserted symbols, for the report."""
        return {}

    def run(self) -> PreparedCorpora:
        prepared = self._made(make=False)
        if prepared is None:
            with _locked(self.folder):
                remove_stale_temporaries(self.folder)
                try:
                    prepared = self._made(make=True)
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

    def _made(self, make: bool) -> tuple[list[Dataset], Tokenizers, list[CleaningReport]] | None:
        """Open all parts. make: prepare those that are missing; otherwise return None if one is missing."""
        text: TextConfig | Tokenizers | None = self.text
        if isinstance(text, TextConfig) and len(self.corpora) > 1:
            text = self._vocabulary(text, make)
        if text is None:
            return None
        found = []
        for index in range(len(self.corpora)):
            part = self._part(index, text, make)
            if part is None:
                return None
            found.append(part)
        return [part[0] for part in found], found[0][1], [part[2] for part in found]

    def _vocabulary(self, text: TextConfig, make: bool) -> Tokenizers | None:
        """Return the vocabulary of several corpora, stored in a folder of its own."""
        settings = text, self.sample, self.temperature
        path = self.folder / CorpusContents.vocabulary(self.contents, self.cleaning, *settings)[:16]
        if path.exists():
            try:
                return Tokenizers.load(path).with_dropout(text.subword.resampling)
            except ModelError as error:
                if make:
                    warn(f"{error} Learning the vocabulary again.")
                    remove_folder(path)
        if not make:
            return None
        tokenizers = self._learned(text, range(len(self.corpora)))
        with atomic_folder(path) as temporary:
            tokenizers.save(temporary)
        return tokenizers

    def _learned(self, text: TextConfig, indices: Sequence[int]) -> Tokenizers:
        cleaned = [self._cleaned(index) for index in indices]
        sizes = [each.pairs for each in cleaned]
        weights = epoch_weights([self.corpora[index] for index in indices], sizes, self.temperature)
        with Progress("Learning the vocabulary"):
            return learn_vocabulary(cleaned, weights, text, self.sample)

    def _part(self, index: int, text: TextConfig | Tokenizers, make: bool) -> Found | None:
        corpus = self.corpora[index]
        fingerprint = self.contents[index].tokenised(self.cleaning, text, self.sample, self.more(corpus))
        path = self.folder / fingerprint[:16]
        if fingerprint in self.reused:
            return self.reused[fingerprint]
        if path.exists():
            try:
                found = self._open(path, fingerprint, text)
            except (DataError, ModelError) as error:
                if not make:
                    return None
                warn(f"{error} Preparing {corpus} again.")
                remove_folder(path)
            else:
                info(f"Data: reused {found[0]} of {corpus} from {path}")
                self._report(found[2])
                self.reused[fingerprint] = found
                return found
        if not make:
            return None
        info(f"Data: preparing {corpus} into {path}")
        with Progress("Preparing"), atomic_folder(path) as temporary:
            self._build(index, text, temporary, fingerprint)
        found = self._open(path, fingerprint, text)
        self._report(found[2])
        if found[2].kept < (1 - SUSPICIOUS_SHARE) * found[2].total:
            warn(f"Cleaning dropped much of {corpus}{self.check}.")
        return found

    def _build(self, index: int, text: TextConfig | Tokenizers, path: Path, fingerprint: str) -> None:
        corpus, cleaned = self.corpora[index], self._cleaned(index)
        work = cleaned.folder / f"{TOKENS}-{fingerprint[:16]}"
        work.mkdir(exist_ok=True)
        if isinstance(text, Tokenizers):
            tokenizers = text
        else:
            try:
                tokenizers = Tokenizers.load(work / "vocabulary")
            except ModelError:
                tokenizers = self._learned(text, [index])
                with atomic_folder(work / "vocabulary", replace=True) as temporary:
                    tokenizers.save(temporary)
            tokenizers.save(path)
        function = self.function(corpus, cleaned.folder, work, tokenizers)
        writer = DatasetWriter(path, function.types, tokenizers.source.size if self.vectors else None)
        try:
            report = tokenise(function, cleaned, writer, path, self.workers)
            _require_some(report, corpus)
            values = {self.unit: report.total, "counts": report.counts, **self.marked(function, len(cleaned))}
            (path / REPORT).write_text(json.dumps(values), encoding="utf-8")
            dropped = [CleaningReport.file(path, rule).name for rule in report.counts]
            writer.finish(fingerprint, (REPORT, *dropped))
        finally:
            writer.close()

    def _cleaned(self, index: int) -> CleanedCorpus:
        if index not in self.cleaned:
            corpus, path = self.corpora[index], self._unfinished(index)
            before = [self._cleaned(other) for other in self.before(index)]
            try:
                path.mkdir(exist_ok=True)
                items, rules = self.read(corpus), self.rules(corpus)
                self.cleaned[index] = clean(items, rules, path, workers=self.workers, before=before)
            except OSError as error:  # errors in the corpus's own files are DataErrors
                raise unwritable(path, error) from error
            _require_some(self.cleaned[index].report, corpus)
        return self.cleaned[index]

    def _unfinished(self, index: int) -> Path:
        """Return the folder of a corpus's blocks during preparation. After a kill, the next preparation reuses them."""
        fingerprint = self.contents[index].cleaned(self.cleaning, self.vectors)
        return self.folder / f".{fingerprint[:16]}.unfinished"

    def _remove_unfinished(self) -> None:
        self.cleaned.clear()
        for index in range(len(self.corpora)):
            shutil.rmtree(self._unfinished(index), ignore_errors=True)

    def _report(self, report: CleaningReport) -> None:
        info(report.table())

    def _open(self, path: Path, fingerprint: str, text: TextConfig | Tokenizers) -> Found:
        dataset = self.dataset(path)
        if dataset.fingerprint != fingerprint:
            raise DataError(f"The tokenised corpus in {path} was made from other data.")
        if isinstance(text, TextConfig):
            text = Tokenizers.load(path).with_dropout(text.subword.resampling)
        try:
            values = json.loads((path / REPORT).read_text(encoding="utf-8"))
            counts, marked = values["counts"], values.get("marked", {})
            report = replace(CleaningReport.of_files(path, int(values[self.unit]), counts, self.unit), marked=marked)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path / REPORT} is damaged ({error}).") from error
        return dataset, text, report


def _require_some(report: CleaningReport, corpus: CorpusConfig | TextCorpusConfig) -> None:
    if report.kept == 0:
        raise DataError(
            f"Cleaning dropped everything in {corpus}; fix the corpus or relax the rules.\n{report.table()}"
        )


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on the folder, released at the latest when the process ends; waits for other holders."""
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
