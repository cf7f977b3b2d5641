"""`Cleaned`: a corpus of pairs that was judged block by block, and what stays of it."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.data.preparation.blocks import block_file, read_block
from dragoman.data.preparation.cleaning import CleaningConfig, PairRules
from dragoman.data.preparation.duplicates import mark_duplicates
from dragoman.data.preparation.report import RULES, CleaningReport
from dragoman.data.preparation.text_cleaning import TextCleaningConfig

_VERDICTS = "verdicts.bin"


WRONG_SCRIPT, DUPLICATES = 1 + RULES.index("wrong_script"), 1 + RULES.index("duplicates")
BETWEEN = 1 + RULES.index("duplicates_between")


def open_verdicts(folder: Path) -> NDArray[np.uint8]:
    """What became of each pair of the corpus whose blocks lie in a folder, memory-mapped."""
    return np.memmap(folder / _VERDICTS, dtype=np.uint8, mode="r")


def text_bytes(folder: Path, starts: NDArray[np.int64], side: str) -> int:
    """UTF-8 of all that stays of a side. folder, starts: as of `Cleaned`."""
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


class Cleaned:
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
        before: Sequence["Cleaned"] = (),
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
