"""Tokenisation of a cleaned corpus, chunk by chunk and on all cores, into the files of a `Dataset`."""

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.progress import Progress
from dragoman.data.cleaning.chunks import chunk_file, is_whole_chunk, read_chunk, read_texts, write_chunk
from dragoman.data.cleaning.cleaned_corpus import CleanedCorpus
from dragoman.data.cleaning.report import MARKED, CleaningReport
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.items import text_size
from dragoman.data.dataset import DatasetWriter, Sentences, id_dtypes
from dragoman.data.workers import parallel_map
from dragoman.text.symbols import EOS, InlineText
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.feature_vectors import VectorError


class MarkedPair(NamedTuple):
    """A training pair with inline symbols. spans: number of placeholders. terms: number of marked source terms."""

    source: InlineText
    target: InlineText
    spans: int = 0
    terms: int = 0


class PairMarker(Protocol):
    """Inserts inline symbols into pairs. Must be picklable."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The inline symbols that the vocabularies must contain."""
        ...

    @property
    def fingerprint(self) -> str:
        """A digest of everything that determines the marked pairs, except the pairs themselves."""
        ...

    def __call__(self, source: str, target: str, line: int) -> MarkedPair:
        """Mark a pair. line: line of the pair in the corpus. The result depends only on the arguments."""
        ...


class Rows(NamedTuple):
    """N rows of a dataset.

    lines: (N,), the line of each row in the corpus. sides: the sides of the rows. too_long: lines of the rows that are
    dropped because they have too many tokens.
    """

    lines: NDArray[np.int64]
    sides: tuple[Sentences, ...]
    too_long: NDArray[np.int64]


class ChunkTokeniser(Protocol):
    """Tokenises the kept items of a chunk and writes the ids to a chunk file in `folder`. Must be picklable."""

    @property
    def folder(self) -> Path: ...

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The data type of the stored ids of each side."""
        ...

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """Tokenise a chunk. task: number of the chunk, and the verdicts on its items."""
        ...

    def rows(self, chunk_count: int) -> Iterator[Rows]:
        """Yield the rows of the first `chunk_count` chunk files, in order."""
        ...


def tokenise(
    tokeniser: ChunkTokeniser, cleaned: CleanedCorpus, writer: DatasetWriter, folder: Path, workers: int | None = None
) -> CleaningReport:
    """Tokenise a corpus and write its rows in order. Returns the report, including rows with too many tokens.

    Chunks from an earlier call are reused. folder: folder for the files of the report. workers: number of processes;
    None: one per core. The number does not affect the result.
    """
    missing = [number for number in range(len(cleaned)) if not is_whole_chunk(chunk_file(tokeniser.folder, number))]
    sizes, total = np.diff(cleaned.starts), int(cleaned.starts[-1])
    tasks = ((number, np.array(cleaned.verdicts(number))) for number in missing)
    with Progress("Tokenising", cleaned.items, total, done=total - int(sizes[missing].sum())) as progress:
        for number, _ in zip(missing, parallel_map(tokeniser, tasks, workers), strict=True):
            progress.update(progress.done + int(sizes[number]))
    counts = dict(cleaned.report.counts)
    for name in cleaned.report.files:
        shutil.copyfile(cleaned.folder / name, folder / name)
    for lines, sides, too_long in tokeniser.rows(len(cleaned)):
        writer.add(lines, *sides)
        if len(too_long):
            counts["max_tokens"] = counts.get("max_tokens", 0) + len(too_long)
            with CleaningReport.file(folder, "max_tokens").open("ab") as file:
                file.write(too_long.tobytes())
    found, details = tuple(cleaned.report.found), cleaned.report.details
    return CleaningReport.from_files(
        folder, cleaned.report.total, counts, unit=cleaned.unit, found=found, details=details
    )


PAIRS_PER_CALL = 2048
"""Number of pairs that are tokenised in one call."""

SIDES = PairRules.sides


@dataclass(frozen=True)
class PairTokeniser:
    """Tokenises the kept pairs of a chunk.

    A chunk file contains the `lines` of the pairs, the ids and lengths of each side, and the lines of pairs that are
    `too_long`. With a `marking`, it also contains the `marked` counts.
    """

    source: Path
    folder: Path
    tokenizers: Tokenizers
    tags: tuple[int, ...]
    limit: int | None
    file: Path
    marking: PairMarker | None = None

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """Tokenise a chunk. task: number of the chunk, and the verdicts on its pairs.

        Raises DataError for invalid vectors.
        """
        number, verdicts = task
        path, kept = chunk_file(self.source, number), verdicts == 0
        lines = read_chunk(path, "lines")[0][kept]
        sources, targets = (read_texts(path, side, kept) for side in SIDES)
        marked: Counter[str] = Counter()
        parts = range(0, len(lines), PAIRS_PER_CALL)
        pairs = [pair for start in parts for pair in self._ids(sources, targets, lines, start, marked)]
        short = np.array([not self.limit or max(map(len, pair)) <= self.limit for pair in pairs], dtype=bool)
        short_pairs = [pair for pair, is_short in zip(pairs, short, strict=True) if is_short]
        arrays: dict[str, NDArray[Any]] = {"lines": lines[short], "too_long": lines[~short]}
        columns = zip(*short_pairs, strict=True) if short_pairs else ((), ())
        for (side, dtype), ids in zip(self.dtypes.items(), columns, strict=True):
            joined = Sentences.of([[*self.tags, *each] for each in ids] if side == "source" and self.tags else ids)
            arrays[side], arrays[f"{side}_lengths"] = joined.ids.astype(dtype), joined.lengths
        if self.marking is not None:
            arrays["marked"] = np.array([marked[name] for name in MARKED], dtype=np.int64)
        write_chunk(chunk_file(self.folder, number), arrays)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The data type of the stored ids of each side."""
        sizes = {"source": self.tokenizers.source.size, "target": self.tokenizers.target.size}
        return id_dtypes(sizes, self.tokenizers.reads_vectors)

    def rows(self, chunk_count: int) -> Iterator[Rows]:
        """Yield the rows of all chunks, which must exist."""
        names = ("lines", "too_long", *(f"{side}{ending}" for side in SIDES for ending in ("", "_lengths")))
        for number in range(chunk_count):
            lines, too_long, *sides = read_chunk(chunk_file(self.folder, number), *names)
            yield Rows(lines, (Sentences(*sides[:2]), Sentences(*sides[2:])), too_long)

    def marked(self, chunk_count: int) -> dict[str, int]:
        """Return the counts named in `MARKED`, summed over chunks; empty without a `marking`."""
        if self.marking is None:
            return {}
        counts = (read_chunk(chunk_file(self.folder, number), "marked")[0] for number in range(chunk_count))
        total = sum(counts, start=0)
        return dict(zip(MARKED, np.asarray(total).tolist(), strict=True))

    def _ids(
        self,
        sources: list[str],
        targets: list[str],
        lines: NDArray[np.int64],
        start: int,
        marked: Counter[str],
    ) -> Iterator[tuple[Any, Any]]:
        """Return the ids of both sides of PAIRS_PER_CALL pairs from `start` on, and update the counts in `marked`."""
        part = slice(start, start + PAIRS_PER_CALL)
        if self.marking is not None:
            texts = zip(sources[part], targets[part], lines[part].tolist(), strict=True)
            marked_pairs = [self.marking(*each) for each in texts]
            for pair in marked_pairs:
                counts = pair.spans > 0, pair.spans, pair.terms > 0, pair.terms
                marked.update(dict(zip(MARKED, map(int, counts), strict=True)))
            source_ids = self.tokenizers.source.encode_inlined([pair.source for pair in marked_pairs])
            target_ids = self.tokenizers.target.encode_inlined([pair.target for pair in marked_pairs])
            return zip(source_ids, target_ids, strict=True)
        try:
            ids = self.tokenizers.source.encode_batch(sources[part])
        except VectorError as error:
            raise error.with_file_name(self.file, int(lines[start + error.index])) from None
        return zip(ids, self.tokenizers.target.encode_batch(targets[part]), strict=True)


BYTES_PER_CALL = 1 << 18
"""Number of UTF-8 bytes that are tokenised in one call. The last passage of a call may exceed this number."""

_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class TextTokeniser:
    """Tokenises the kept passages of a chunk.

    A chunk file contains the `lines` of the passages, whether they end a document (`ends`), their ids (`text`) with EOS
    after each document, and their numbers of ids (`text_lengths`). block: maximum number of labels per block.
    """

    source: Path
    folder: Path
    tokenizer: Tokenizer
    block: int

    def __call__(self, task: tuple[int, NDArray[np.uint8]]) -> None:
        """Tokenise a chunk. task: number of the chunk, and the verdicts on its passages."""
        number, verdicts = task
        path, kept = chunk_file(self.source, number), verdicts == 0
        lines, begins, ends = (array[kept] for array in read_chunk(path, "lines", "begins", "ends"))
        texts = read_texts(path, "text", kept)
        ids = Sentences.of(
            [
                [*each, EOS] if last else each
                for part in _slices(texts)
                for each, last in zip(self._ids(texts[part], begins[part].tolist()), ends[part].tolist(), strict=True)
            ]
        )
        text = ids.ids.astype(self.dtypes["text"])
        arrays = {"lines": lines, "ends": ends, "text": text, "text_lengths": ids.lengths}
        write_chunk(chunk_file(self.folder, number), arrays)

    def _ids(self, texts: Sequence[str], begins: Sequence[bool]) -> Iterator[list[int]]:
        whole = iter(self.tokenizer.encode_batch([text for text, first in zip(texts, begins, strict=True) if first]))
        others = iter(
            self.tokenizer.encode_continuation([text for text, first in zip(texts, begins, strict=True) if not first])
        )
        return (next(whole if first else others) for first in begins)

    @property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """The data type of the stored ids."""
        return id_dtypes({"text": self.tokenizer.size})

    def rows(self, chunk_count: int) -> Iterator[Rows]:
        """Yield the labels of each document in blocks of `block` labels, the last of which may be shorter.

        See `TextDataset`.
        """
        rest, rest_line = np.zeros(0, self.dtypes["text"]), 0  # labels of a document that continues in the next chunk
        for number in range(chunk_count):
            lines, ends, ids, lengths = read_chunk(
                chunk_file(self.folder, number), "lines", "ends", "text", "text_lengths"
            )
            ids, lines = np.concatenate([rest, ids]), np.concatenate([[rest_line], lines])
            after = len(rest) + np.cumsum(lengths)
            starts = np.append(0, after - lengths)
            documents = np.append(0, after[ends])
            full = (len(ids) - documents[-1]) // self.block  # blocks of a document that continues in the next chunk
            widths = np.append(block_lengths(np.diff(documents), self.block), np.full(full, self.block))
            firsts = np.append(0, np.cumsum(widths))
            lines = lines[np.searchsorted(starts, firsts, side="right") - 1]
            yield Rows(lines[:-1], (Sentences(ids[: firsts[-1]], widths),), _NONE)
            rest, rest_line = ids[firsts[-1] :], int(lines[-1])


def _slices(texts: Sequence[str]) -> Iterator[slice]:
    """Yield the slices of a list of texts that are tokenised in one call."""
    start = size = 0
    for end, text in enumerate(texts, start=1):
        size += text_size(text)
        if size >= BYTES_PER_CALL or end == len(texts):
            yield slice(start, end)
            start, size = end, 0


def block_lengths(documents: NDArray[np.int64], block: int) -> NDArray[np.int64]:
    """Return the number of labels of each block.

    documents: number of labels of each document. block: maximum number of labels per block.
    """
    counts = -(-documents // block)
    lengths = np.full(counts.sum(), block)
    lengths[np.cumsum(counts) - 1] += documents - counts * block
    return lengths
