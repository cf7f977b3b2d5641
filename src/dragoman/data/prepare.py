"""From raw corpora to token ids: cleaned, subwords learned, tokenised once, and kept for the next run."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path

import numpy as np
import tokenizers as library

from dragoman.base.errors import DataError, ModelError, ResourceError
from dragoman.base.files import atomic_folder, remove_folder, remove_stale_temporaries
from dragoman.base.log import info, warn
from dragoman.data.cleaning import Cleaner, CleaningConfig
from dragoman.data.corpus import CorpusConfig
from dragoman.data.lines import open_lines
from dragoman.data.pair import Pair
from dragoman.data.readers import read_pairs
from dragoman.data.report import LENGTH_LIMITS, CleaningReport
from dragoman.data.shards import FORMAT, DatasetWriter, PairDataset
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.text.vectors import VectorError

REPORT = "cleaning.json"
AT_ONCE = 4096
"""Pairs that are tokenised together."""

SUSPICIOUS_SHARE = 0.2
"""Cleaning that drops more of a corpus than this is worth a warning."""


@dataclass(frozen=True)
class Prepared:
    """dataset: the token ids; tokenizers: what made them; report: what cleaning dropped."""

    dataset: PairDataset
    tokenizers: Tokenizers
    report: CleaningReport


def prepare(corpus: CorpusConfig, cleaning: CleaningConfig, text: TextConfig | Tokenizers, folder: Path) -> Prepared:
    """Clean and tokenise a corpus, or reuse what an earlier call left in `folder`, and say which of the two.

    text: how to learn subwords from the corpus, or tokenizers that exist (for a validation set). The result is reused
    when the contents of the files, the cleaning rules, and the subword settings (or tokenizers) are the same; it is
    verified when opened and made again when damaged. Raises DataError when the corpus cannot be read or no pair stays.
    """
    folder = Path(folder)
    fingerprint = _fingerprint(corpus, cleaning, text)
    place = folder / fingerprint[:16]
    if place.exists():
        try:
            prepared = _open(place, fingerprint, text)
        except (DataError, ModelError) as error:
            warn(f"{error} Preparing {corpus} again.")
            remove_folder(place)
        else:
            info(f"Data: reused {len(prepared.dataset):,} tokenised pairs of {corpus} from {place}")
            _tell(prepared.report, cleaning)
            return prepared
    info(f"Data: preparing {corpus} into {place}")
    remove_stale_temporaries(folder)
    try:
        with atomic_folder(place) as temporary:
            _build(corpus, cleaning, text, temporary, fingerprint)
    except ResourceError:
        if not place.exists():  # or another process has made the same at the same time
            raise
    prepared = _open(place, fingerprint, text)
    _tell(prepared.report, cleaning)
    if prepared.report.kept < (1 - SUSPICIOUS_SHARE) * prepared.report.pairs:
        warn("Cleaning dropped much of the corpus; `dragoman data check` lists every dropped line.")
    return prepared


def _tell(report: CleaningReport, cleaning: CleaningConfig) -> None:
    """The report, and where long pairs were dropped, which settings would keep them."""
    info(report.table())
    if any(limit in report.counts for limit in LENGTH_LIMITS):
        limits = ", ".join(f"{limit}={getattr(cleaning, limit)}".replace("None", "null") for limit in LENGTH_LIMITS)
        info(f"Longer pairs are dropped by data.cleaning ({limits}): raise a limit, or set it to null, to keep them.")


def _open(place: Path, fingerprint: str, text: TextConfig | Tokenizers) -> Prepared:
    dataset = PairDataset(place)
    if dataset.fingerprint != fingerprint:
        raise DataError(f"The tokenised corpus in {place} belongs to other data.")
    tokenizers = text if isinstance(text, Tokenizers) else Tokenizers.load(place).with_dropout(text.subword.resampling)
    try:
        report = CleaningReport.from_json(json.loads((place / REPORT).read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place / REPORT} is damaged ({error}).") from error
    return Prepared(dataset, tokenizers, report)


def _build(
    corpus: CorpusConfig, cleaning: CleaningConfig, text: TextConfig | Tokenizers, place: Path, fingerprint: str
) -> None:
    vectors = text.reads_vectors if isinstance(text, Tokenizers) else text.vectors is not None
    report = Cleaner(cleaning, str(corpus), vectors).run(read_pairs(corpus))
    _demand_pairs(report, corpus)
    keep = report.keep.tobytes()  # a byte a pair

    def kept() -> Iterator[Pair]:
        return compress(read_pairs(corpus), keep)

    if isinstance(text, Tokenizers):
        tokenizers = text
    else:
        sources, targets = (pair.source for pair in kept()), (pair.target for pair in kept())
        sized = text.model_copy(update={"subword": text.subword.sized(report.kept)})
        tokenizers = train_tokenizers(sized, sources, targets)
        tokenizers.save(place)
    writer = DatasetWriter(place, (tokenizers.source.size, tokenizers.target.size), vectors)
    limit = cleaning.max_tokens if cleaning.enabled else None
    too_long: list[int] = []
    try:
        stream = kept()
        while pairs := list(islice(stream, AT_ONCE)):
            try:
                sources_ids = tokenizers.source.encode_batch([pair.source for pair in pairs])
            except VectorError as error:
                raise error.at(corpus.source or corpus.tsv, pairs[error.place].line) from None
            targets_ids = tokenizers.target.encode_batch([pair.target for pair in pairs])
            for pair, source, target in zip(pairs, sources_ids, targets_ids, strict=True):
                if limit and max(len(source), len(target)) > limit:
                    too_long.append(pair.line)
                else:
                    writer.add(pair.line, source, target)
        report = report.adding("max_tokens", np.array(too_long, dtype=np.int64))
        _demand_pairs(report, corpus)
        writer.finish(fingerprint)
    finally:
        writer.close()
    (place / REPORT).write_text(json.dumps(report.to_json()), encoding="utf-8")


def _demand_pairs(report: CleaningReport, corpus: CorpusConfig) -> None:
    if report.kept == 0:
        raise DataError(f"Cleaning left nothing of {corpus}; mend the corpus or relax the rules.\n{report.table()}")


def _fingerprint(corpus: CorpusConfig, cleaning: CleaningConfig, text: TextConfig | Tokenizers) -> str:
    """A digest of all that the ids depend on; the files count by their contents, not by their names."""
    if isinstance(text, Tokenizers):
        subwords = text.fingerprint
    else:
        # what is not used leaves the fingerprint as it was before there were vectors and tags
        settings = text.model_dump(mode="json", exclude={"subword": {"dropout"}})
        for name in ("vectors", "tags"):
            if not settings[name]:
                del settings[name]
        subwords = json.dumps(settings, separators=(",", ":"), ensure_ascii=False) + library.__version__
    columns = (corpus.source_column, corpus.target_column) if corpus.tsv is not None else None
    parts = [str(FORMAT), repr(columns), cleaning.model_dump_json(), subwords]
    for path in corpus.files if isinstance(text, Tokenizers) else (*corpus.files, *text.subword.files):
        if path.exists() and not path.is_file():
            raise DataError(f"{path} is no regular file; a corpus is read several times, so store it in a file first.")
        try:
            with path.open("rb") as file:
                parts.append(hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:
            next(open_lines(path), None)  # raises the error that tells the user what is wrong with the file
            raise
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
