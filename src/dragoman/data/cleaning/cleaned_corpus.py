"""`CleanedCorpus`: the blocks of a corpus whose items were judged, and what remains of it."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.data.cleaning.blocks import block_file, read_block
from dragoman.data.cleaning.duplicates import mark_duplicates
from dragoman.data.cleaning.report import RULES, CleaningReport
from dragoman.data.cleaning.rules import CleaningConfig, PairRules, TextCleaningConfig, TextRules

_VERDICTS = "verdicts.bin"


WRONG_SCRIPT, DUPLICATES = 1 + RULES.index("wrong_script"), 1 + RULES.index("duplicates")
BETWEEN = 1 + RULES.index("duplicates_between")


def open_verdicts(folder: Path) -> NDArray[np.uint8]:
    """What became of each pair of the corpus whose blocks lie in a folder, memory-mapped."""
    return np.memmap(folder / _VERDICTS, dtype=np.uint8, mode="r")


def text_bytes(folder: Path, starts: NDArray[np.int64], side: str) -> int:
    """UTF-8 of all that stays of a side. folder, starts: as of `CleanedCorpus`."""
    verdicts, total = open_verdicts(folder), 0
    for number in range(len(starts) - 1):
        before, ends = read_block(block_file(folder, number), "verdicts", f"{side}_ends")
        kept = verdicts[starts[number] : starts[number + 1]][before == 0] == 0
        total += int(np.diff(ends, prepend=0)[kept].sum())
    return total


def _empty_verdicts(path: Path, count: int) -> NDArray[np.uint8]:
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # a disk that fills up later would end the process with SIGBUS
            os.posix_fallocate(file.fileno(), 0, count)
        else:
            file.truncate(count)
    return np.memmap(path, dtype=np.uint8, mode="r+")


class CleanedCorpus:
    """The blocks of a corpus and, once all are judged, what stays.

    starts: (K + 1,) int64, the first pair of each of the K blocks, counted over all. report: what was dropped where.
    before: corpora whose pairs, as far as they stay there, are dropped here.
    """

    sides: ClassVar[tuple[str, ...]] = PairRules.sides
    items: ClassVar[str] = PairRules.items
    unit: ClassVar[str] = "pairs"

    def __init__(
        self,
        folder: Path,
        starts: NDArray[np.int64],
        config: CleaningConfig | TextCleaningConfig,
        before: Sequence["CleanedCorpus"] = (),
    ) -> None:
        """Judges by what only the whole corpus tells: duplicates, and before them scripts."""
        self.folder, self.starts, self.before = folder, starts, before
        self._verdicts = _empty_verdicts(folder / _VERDICTS, max(1, int(starts[-1])))
        for number in range(len(self)):
            (verdicts,) = read_block(block_file(folder, number), "verdicts")
            self._verdicts[starts[number] : starts[number + 1]] = verdicts
        self._judge(config)
        self.report = self._report()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """How many stay; the size of a vocabulary and temperatures go by this."""
        return self.report.kept

    def verdicts(self, number: int) -> NDArray[np.uint8]:
        """What became of each pair of a block: 0 where it stays."""
        return self._verdicts[self.starts[number] : self.starts[number + 1]]

    def _judge(self, config: CleaningConfig | TextCleaningConfig) -> None:
        if self.before:
            found = (digests for corpus in self.before for digests in corpus._kept_digests())
            count = sum(corpus.pairs for corpus in self.before)
            mark_duplicates(self._digests(), self._verdicts, BETWEEN, self.folder, before=found, count_before=count)
        if config.enabled and config.duplicates:  # also what is repeated here, and was marked with the others above
            mark_duplicates(self._digests(), self._verdicts, DUPLICATES, self.folder)
        if config.enabled and config.wrong_script:
            self._judge_scripts(config)

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """The places of the pairs that stay as far as a pair alone can tell, and their digests, block by block."""
        for number in range(len(self)):
            verdicts, digests = read_block(block_file(self.folder, number), "verdicts", "digests")
            yield self.starts[number] + np.flatnonzero(verdicts == 0), digests

    def _kept_digests(self) -> Iterator[NDArray[np.uint64]]:
        """Of the pairs that stay."""
        for number in range(len(self)):
            verdicts, digests = read_block(block_file(self.folder, number), "verdicts", "digests")
            yield digests[self.verdicts(number)[verdicts == 0] == 0]

    def _judge_scripts(self, config: CleaningConfig | TextCleaningConfig) -> None:
        """Equal pairs have equal scripts, so a pair of the wrong script is no duplicate first."""
        counts = [Counter[str]() for _ in self.sides]
        for number in range(len(self)):
            scripts, names = read_block(block_file(self.folder, number), "scripts", "names")
            for count, side in zip(counts, scripts, strict=True):
                found = np.bincount(side, minlength=len(names))
                count.update({str(name): int(times) for name, times in zip(names, found, strict=False) if name})
        allowed = []
        for given, count in zip(config.scripts_of_sides, counts, strict=True):
            enough = min(config.script_share * count.total(), max(count.values(), default=0))
            usual = [name for name, times in count.items() if times and times >= enough]
            allowed.append({"", *([name.upper() for name in given] or usual)})
        for number in range(len(self)):
            verdicts, scripts, names = read_block(block_file(self.folder, number), "verdicts", "scripts", "names")
            fits = np.ones(scripts.shape[1], dtype=bool)
            for side, each in zip(scripts, allowed, strict=True):
                fits &= np.array([str(name) in each for name in names])[np.minimum(side, len(names) - 1)]
            block = self.verdicts(number)
            block[np.flatnonzero(verdicts == 0)[~fits]] = WRONG_SCRIPT

    def _report(self) -> CleaningReport:
        """Files of line numbers in the folder, a rule each, so that they need no memory."""
        counts: Counter[str] = Counter()
        for number in range(len(self)):
            verdicts = self._counted(number)
            if not verdicts.any():
                continue
            (lines,) = read_block(block_file(self.folder, number), "lines")
            for place in np.unique(verdicts[verdicts > 0]).tolist():
                rule = RULES[place - 1]
                found = lines[verdicts == place]
                with CleaningReport.file(self.folder, rule).open("ab" if counts[rule] else "wb") as file:
                    file.write(found.tobytes())
                counts[rule] += len(found)
        return CleaningReport.of_files(self.folder, self._total(), counts, self.unit)

    def _counted(self, number: int) -> NDArray[np.uint8]:
        """The verdicts on a block as they count in the report."""
        return self.verdicts(number)

    def _total(self) -> int:
        return int(self.starts[-1])


BYTES_A_PAIR = 133
"""UTF-8 of both sides of a sentence pair: 40 MB are some 300,000."""


class CleanedTextCorpus(CleanedCorpus):
    """Like `CleanedCorpus` with passages for pairs. A document stays as a whole or not at all, and is counted once."""

    sides = TextRules.sides
    items = TextRules.items
    unit = "documents"

    def _judge(self, config: CleaningConfig | TextCleaningConfig) -> None:
        self._spread()
        super()._judge(config)
        self._spread()

    def _spread(self) -> None:
        """What became of one passage becomes of its whole document."""
        first, worst = 0, 0  # of the document that has begun in an earlier block
        for number in range(len(self)):
            begins, verdicts = self._begins(number), self.verdicts(number)
            starts = np.flatnonzero(begins)
            rest = int(starts[0]) if len(starts) else len(begins)
            found = int(verdicts[:rest].max(initial=worst))
            if found:
                self._verdicts[first : self.starts[number] + rest] = found
            if len(starts):
                each = np.maximum.reduceat(verdicts, starts)
                verdicts[rest:] = np.repeat(each, np.diff(starts, append=len(begins)))
                first, found = int(self.starts[number] + starts[-1]), int(each[-1])
            worst = found

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Of each document that stays, where it begins, and a digest of those of its passages."""
        first, whole = 0, blake2b()
        for number in range(len(self)):
            before, begins, ends, found = read_block(
                block_file(self.folder, number), "verdicts", "begins", "ends", "digests"
            )
            staying = self.verdicts(number) == 0
            digests = np.zeros((len(before), 2), np.uint64)
            digests[before == 0] = found
            single = begins & ends
            places, of_documents = [], []
            for place in np.flatnonzero(staying & ~single).tolist():
                if begins[place]:
                    first, whole = int(self.starts[number]) + place, blake2b(digest_size=16)
                whole.update(digests[place].tobytes())
                if ends[place]:
                    places.append(first)
                    of_documents.append(np.frombuffer(whole.digest(), np.uint64))
            chosen = np.flatnonzero(staying & single)
            yield (
                np.concatenate([np.array(places, np.int64), self.starts[number] + chosen]),
                np.concatenate([np.array(of_documents, np.uint64).reshape(-1, 2), digests[chosen]]),
            )

    @property
    def pairs(self) -> int:
        """As many as have so much text, at least one."""
        return max(1, text_bytes(self.folder, self.starts, "text") // BYTES_A_PAIR)

    def _counted(self, number: int) -> NDArray[np.uint8]:
        return np.where(self._begins(number), self.verdicts(number), 0).astype(np.uint8)

    def _total(self) -> int:
        return sum(int(self._begins(number).sum()) for number in range(len(self)))

    def _begins(self, number: int) -> NDArray[np.bool_]:
        (begins,) = read_block(block_file(self.folder, number), "begins")
        return begins
