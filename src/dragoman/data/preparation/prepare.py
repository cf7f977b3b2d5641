"""From raw corpora to token ids: cleaned, subwords learned, tokenised once, and kept for the next run."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.base.errors import ConfigError, DataError, DragomanError, ModelError, ResourceError
from dragoman.base.files import atomic_folder, remove_folder, remove_stale_temporaries, unwritable
from dragoman.base.log import info, warn
from dragoman.data.batches.epoch import Part
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.preparation.cleaned import Cleaned, clean
from dragoman.data.preparation.cleaning import CleaningConfig
from dragoman.data.preparation.fingerprint import Contents
from dragoman.data.preparation.report import LENGTH_LIMITS, CleaningReport
from dragoman.data.preparation.tokenised import TokeniseBlock, tokenise
from dragoman.data.preparation.vocabulary import SAMPLE, learn_vocabulary
from dragoman.data.shards import DatasetWriter, PairDataset, id_types
from dragoman.data.union import PairUnion, epoch_weights
from dragoman.text.tokenizers import TextConfig, Tokenizers

REPORT = "cleaning.json"
TOKENS = "tokens"

SUSPICIOUS_SHARE = 0.2
"""Cleaning that drops more of a corpus than this is worth a warning."""


@dataclass(frozen=True)
class Prepared:
    """dataset: the token ids of all corpora; tokenizers: what made them; reports: what cleaning dropped of each.

    parts: the rows of each corpus, one after another in the dataset, and how often an epoch reads it.
    """

    dataset: PairDataset | PairUnion
    tokenizers: Tokenizers
    reports: tuple[CleaningReport, ...]
    parts: tuple[Part, ...]

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Of each corpus."""
        return tuple(part.fingerprint for part in self.dataset.parts)


def prepare(
    corpora: CorpusConfig | Sequence[CorpusConfig],
    cleaning: CleaningConfig,
    text: TextConfig | Tokenizers,
    folder: Path,
    temperature: float | None = None,
    sample: int = SAMPLE,
    workers: int | None = None,
) -> Prepared:
    """Clean and tokenise corpora, or reuse what an earlier call left in `folder`, and say which of the two.

    text: how to learn subwords from the corpora, or tokenizers that exist (of a model to start from). temperature: see
    `epoch_weights`; sample: see `learn_vocabulary`; workers: processes, None for one a core.

    Each corpus is reused when the contents of its files, the cleaning rules, its tags, and the subword settings (or
    tokenizers) are the same; it is verified when opened and made again when damaged. What a killed call has done is not
    done again. Of several processes that call with the same folder, one works and the others wait for it. Raises
    DataError when a corpus cannot be read or no pair stays, ConfigError for tags that the tokenizers do not have.
    """
    corpora = (corpora,) if isinstance(corpora, CorpusConfig) else tuple(corpora)
    epoch_weights(corpora, [1] * len(corpora), temperature)  # a contradiction is better found before the work
    return _Preparation(corpora, cleaning, text, Path(folder), temperature, sample, workers).run()


class _Preparation:
    def __init__(
        self,
        corpora: tuple[CorpusConfig, ...],
        cleaning: CleaningConfig,
        text: TextConfig | Tokenizers,
        folder: Path,
        temperature: float | None,
        sample: int,
        workers: int | None,
    ) -> None:
        if isinstance(text, TextConfig):
            tags = dict.fromkeys([*text.tags, *(tag for corpus in corpora for tag in corpus.all_tags)])
            if tags and text.vectors is not None:
                raise ConfigError("a source of feature vectors takes no tags: leave out tags and target_language")
            text = text.model_copy(update={"tags": tuple(tags)})
        self.corpora, self.cleaning, self.text, self.folder = corpora, cleaning, text, folder
        self.temperature, self.sample, self.workers = temperature, sample, workers
        self.contents = [Contents(corpus, folder) for corpus in corpora]
        self.vectors = text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None
        self.cleaned: dict[int, Cleaned] = {}
        self.reused: dict[str, tuple[PairDataset, Tokenizers, CleaningReport]] = {}

    def run(self) -> Prepared:
        prepared = self._made(make=False)
        if prepared is None:
            with _alone(self.folder):
                remove_stale_temporaries(self.folder)
                try:
                    prepared = self._made(make=True)
                except ResourceError:
                    info(f"Data: what is done stays in {self.folder}, and the same command goes on from there.")
                    raise
                except DragomanError:
                    self._remove_unfinished()
                    raise
                self._remove_unfinished()
        assert prepared is not None
        datasets, tokenizers, reports = prepared
        sizes = [len(dataset) for dataset in datasets]
        weights = epoch_weights(self.corpora, sizes, self.temperature)
        dataset = datasets[0] if len(datasets) == 1 else PairUnion(datasets, weights, self.folder)
        return Prepared(dataset, tokenizers, tuple(reports), tuple(map(Part, sizes, weights)))

    def _made(self, make: bool) -> tuple[list[PairDataset], Tokenizers, list[CleaningReport]] | None:
        """All parts, opened, or made where they are missing and that is allowed."""
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
        """What all corpora together give, in a folder of its own."""
        settings = text, self.sample, self.temperature
        place = self.folder / Contents.vocabulary(self.contents, self.cleaning, *settings)[:16]
        if place.exists():
            try:
                return Tokenizers.load(place).with_dropout(text.subword.resampling)
            except ModelError as error:
                if make:
                    warn(f"{error} Learning the vocabulary again.")
                    remove_folder(place)
        if not make:
            return None
        tokenizers = self._learned(text, range(len(self.corpora)))
        with atomic_folder(place) as temporary:
            tokenizers.save(temporary)
        return tokenizers

    def _learned(self, text: TextConfig, indices: Sequence[int]) -> Tokenizers:
        cleaned = [self._cleaned(index) for index in indices]
        sizes = [each.report.kept for each in cleaned]
        weights = epoch_weights([self.corpora[index] for index in indices], sizes, self.temperature)
        return learn_vocabulary(cleaned, weights, text, self.sample)

    def _part(
        self, index: int, text: TextConfig | Tokenizers, make: bool
    ) -> tuple[PairDataset, Tokenizers, CleaningReport] | None:
        corpus = self.corpora[index]
        fingerprint = self.contents[index].tokenised(self.cleaning, text, self.sample)
        place = self.folder / fingerprint[:16]
        if fingerprint in self.reused:
            return self.reused[fingerprint]
        if place.exists():
            try:
                found = _open(place, fingerprint, text)
            except (DataError, ModelError) as error:
                if not make:
                    return None
                warn(f"{error} Preparing {corpus} again.")
                remove_folder(place)
            else:
                info(f"Data: reused {len(found[0]):,} tokenised pairs of {corpus} from {place}")
                self._tell(found[2])
                self.reused[fingerprint] = found
                return found
        if not make:
            return None
        info(f"Data: preparing {corpus} into {place}")
        with atomic_folder(place) as temporary:
            self._build(index, text, temporary, fingerprint)
        found = _open(place, fingerprint, text)
        self._tell(found[2])
        if found[2].kept < (1 - SUSPICIOUS_SHARE) * found[2].pairs:
            warn(f"Cleaning dropped much of {corpus}; `dragoman data check` lists every dropped line.")
        return found

    def _build(self, index: int, text: TextConfig | Tokenizers, place: Path, fingerprint: str) -> None:
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
            tokenizers.save(place)
        function = TokeniseBlock(
            cleaned.folder,
            work,
            tokenizers,
            tuple(tokenizers.source.tag_ids(corpus.all_tags)) if corpus.all_tags else (),
            self.cleaning.max_tokens if self.cleaning.enabled else None,
            corpus.files[0],
        )
        sizes = tokenizers.source.size, tokenizers.target.size
        writer = DatasetWriter(place, id_types(sizes, self.vectors), sizes[0] if self.vectors else None)
        try:
            report = tokenise(function, cleaned, writer, place, self.workers)
            _demand_pairs(report, corpus)
            (place / REPORT).write_text(json.dumps({"pairs": report.pairs, "counts": report.counts}), encoding="utf-8")
            dropped = [CleaningReport.file(place, rule).name for rule in report.counts]
            writer.finish(fingerprint, (REPORT, *dropped))
        finally:
            writer.close()

    def _cleaned(self, index: int) -> Cleaned:
        if index not in self.cleaned:
            corpus, place = self.corpora[index], self._unfinished(index)
            try:
                place.mkdir(exist_ok=True)
                self.cleaned[index] = clean(
                    read_pairs(corpus), self.cleaning, place, str(corpus), self.vectors, workers=self.workers
                )
            except OSError as error:  # those of the corpus' own files are DataErrors
                raise unwritable(place, error) from error
            _demand_pairs(self.cleaned[index].report, corpus)
        return self.cleaned[index]

    def _unfinished(self, index: int) -> Path:
        """Where the blocks lie until the corpus is prepared; a killed preparation leaves them for the next."""
        fingerprint = self.contents[index].cleaned(self.cleaning, self.vectors)
        return self.folder / f".{fingerprint[:16]}.unfinished"

    def _remove_unfinished(self) -> None:
        self.cleaned.clear()
        for index in range(len(self.corpora)):
            shutil.rmtree(self._unfinished(index), ignore_errors=True)

    def _tell(self, report: CleaningReport) -> None:
        """The report, and where long pairs were dropped, which settings would keep them."""
        info(report.table())
        if any(limit in report.counts for limit in LENGTH_LIMITS):
            values = {limit: getattr(self.cleaning, limit) for limit in LENGTH_LIMITS}
            limits = ", ".join(f"{limit}={'null' if most is None else most}" for limit, most in values.items())
            info(
                f"Longer pairs are dropped by data.cleaning ({limits}): raise a limit, or set it to null, to keep them."
            )


def _open(
    place: Path, fingerprint: str, text: TextConfig | Tokenizers
) -> tuple[PairDataset, Tokenizers, CleaningReport]:
    dataset = PairDataset(place)
    if dataset.fingerprint != fingerprint:
        raise DataError(f"The tokenised corpus in {place} belongs to other data.")
    tokenizers = text if isinstance(text, Tokenizers) else Tokenizers.load(place).with_dropout(text.subword.resampling)
    try:
        values = json.loads((place / REPORT).read_text(encoding="utf-8"))
        report = CleaningReport.of_files(place, int(values["pairs"]), values["counts"])
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place / REPORT} is damaged ({error}).") from error
    return dataset, tokenizers, report


def _demand_pairs(report: CleaningReport, corpus: CorpusConfig) -> None:
    if report.kept == 0:
        raise DataError(f"Cleaning left nothing of {corpus}; mend the corpus or relax the rules.\n{report.table()}")


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the kernel's lock on the folder, which dies with the process; waits while another process holds it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            info(f"Data: waiting for another process that prepares a corpus in {folder}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
