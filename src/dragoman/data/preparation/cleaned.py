"""`Cleaned`: a corpus judged and stored block by block in a folder, on all cores; what was done is not done again."""

import json
import os
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dragoman.base.files import atomic_write
from dragoman.base.log import info
from dragoman.data.corpora.pair import Pair
from dragoman.data.preparation.blocks import block_file, in_blocks, joined_texts, read_block, write_block
from dragoman.data.preparation.cleaning import CleaningConfig, PairRules, digest
from dragoman.data.preparation.duplicates import mark_duplicates
from dragoman.data.preparation.report import RULES, CleaningReport
from dragoman.data.preparation.scripts import dominant_script
from dragoman.data.workers import apply

_READ = "read.json"
_VERDICTS = "verdicts.bin"
_TELL_EVERY = 30.0


WRONG_SCRIPT, DUPLICATES = 1 + RULES.index("wrong_script"), 1 + RULES.index("duplicates")


def open_verdicts(folder: Path) -> NDArray[np.uint8]:
    """What became of each pair of the corpus whose blocks lie in a folder, memory-mapped."""
    return np.memmap(folder / _VERDICTS, dtype=np.uint8, mode="r")


def _empty_verdicts(path: Path, count: int) -> NDArray[np.uint8]:
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):  # a disk that fills up later would end the process with SIGBUS
            os.posix_fallocate(file.fileno(), 0, count)
        else:
            file.truncate(count)
    return np.memmap(path, dtype=np.uint8, mode="r+")


@dataclass(frozen=True)
class CleanBlock:
    """Judges a block and stores it; texts: with the texts of the pairs that stay as far as a pair alone can tell.

    A block file holds, for its n pairs, `verdicts` (n,) uint8 (0: stays, else one more than the rule's place) and
    `lines` (n,) int64; for the m that stay `digests` (m, 2) uint64, `scripts` (2, m) uint8 and the `names` of these
    numbers, and the UTF-8 and ends of `source` and `target`.
    """

    rules: PairRules
    folder: Path
    texts: bool

    def __call__(self, task: tuple[int, list[Pair]]) -> None:
        """task: the block's number and its pairs."""
        number, pairs = task
        broken = [self.rules.broken_by(pair) for pair in pairs]
        staying = [pair for pair, rule in zip(pairs, broken, strict=True) if rule is None]
        verdicts = np.array([0 if rule is None else 1 + RULES.index(rule) for rule in broken], np.uint8)
        arrays: dict[str, NDArray[np.generic]] = {
            "verdicts": verdicts,
            "lines": np.array([pair.line for pair in pairs], np.int64),
        }
        config = self.rules.config
        if config.enabled and config.wrong_script:
            names: dict[str | None, int] = {None: 0}
            scripts = [
                [min(names.setdefault(dominant_script(text), len(names)), 255) for text in texts]
                for texts in (
                    [""] * len(staying) if self.rules.vectors else [pair.source for pair in staying],
                    [pair.target for pair in staying],
                )
            ]
            arrays["scripts"] = np.array(scripts, np.uint8)
            arrays["names"] = np.array([name or "" for name in names])
        if config.enabled and config.duplicates:
            digests = b"".join(map(digest, staying))
            arrays["digests"] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        if self.texts:
            arrays["source"], arrays["source_ends"] = joined_texts([pair.source for pair in staying])
            arrays["target"], arrays["target_ends"] = joined_texts([pair.target for pair in staying])
        write_block(block_file(self.folder, number), arrays)


class Cleaned:
    """The blocks of a corpus and, once all are judged, what stays.

    starts: (K + 1,) int64, the first pair of each of the K blocks, counted over all. report: what was dropped where.
    """

    def __init__(self, folder: Path, starts: NDArray[np.int64], config: CleaningConfig) -> None:
        """Judges by what only the whole corpus tells: duplicates, and before them scripts."""
        self.folder, self.starts = folder, starts
        self._scripts = config.enabled and config.wrong_script
        self._verdicts = _empty_verdicts(folder / _VERDICTS, max(1, int(starts[-1])))
        for number in range(len(self)):
            (verdicts,) = read_block(block_file(folder, number), "verdicts")
            self._verdicts[starts[number] : starts[number + 1]] = verdicts
        if config.enabled and config.duplicates:
            mark_duplicates(self._digests(), self._verdicts, DUPLICATES, folder)
        if self._scripts:
            self._judge_scripts(config)
        self.report = self._report()

    def __len__(self) -> int:
        return len(self.starts) - 1

    def verdicts(self, number: int) -> NDArray[np.uint8]:
        """What became of each pair of a block: 0 where it stays."""
        return self._verdicts[self.starts[number] : self.starts[number + 1]]

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """The places of the pairs that stay as far as a pair alone can tell, and their digests, block by block."""
        for number in range(len(self)):
            verdicts, digests = read_block(block_file(self.folder, number), "verdicts", "digests")
            yield self.starts[number] + np.flatnonzero(verdicts == 0), digests

    def _judge_scripts(self, config: CleaningConfig) -> None:
        """Equal pairs have equal scripts, so a pair of the wrong script is no duplicate first."""
        counts = Counter[str](), Counter[str]()
        for number in range(len(self)):
            scripts, names = read_block(block_file(self.folder, number), "scripts", "names")
            for count, side in zip(counts, scripts, strict=True):
                found = np.bincount(side, minlength=len(names))
                count.update({str(name): int(times) for name, times in zip(names, found, strict=False) if name})
        allowed = []
        for given, count in zip((config.source_scripts, config.target_scripts), counts, strict=True):
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
            verdicts = self.verdicts(number)
            if not verdicts.any():
                continue
            (lines,) = read_block(block_file(self.folder, number), "lines")
            for place in np.unique(verdicts[verdicts > 0]).tolist():
                rule = RULES[place - 1]
                found = lines[verdicts == place]
                with CleaningReport.file(self.folder, rule).open("ab" if counts[rule] else "wb") as file:
                    file.write(found.tobytes())
                counts[rule] += len(found)
        return CleaningReport.of_files(self.folder, int(self.starts[-1]), counts)


def clean(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    folder: Path,
    origin: str = "the corpus",
    vectors: bool = False,
    texts: bool = True,
    workers: int | None = None,
) -> Cleaned:
    """Judge all pairs, and store them in `folder`; blocks that lie there from an earlier call are not made again.

    workers: processes, None for one a core; the result does not depend on it. Raises DataError at broken UTF-8 when
    that is to be an error.
    """
    try:
        sizes = json.loads((folder / _READ).read_text())
    except (OSError, ValueError):
        sizes = []
        tasks = _missing(pairs, folder, sizes)
        told = time.monotonic()
        for _ in apply(CleanBlock(PairRules(config, origin, vectors), folder, texts), tasks, workers):
            if time.monotonic() - told > _TELL_EVERY:
                told = time.monotonic()
                info(f"Data: {sum(sizes):,} pairs of {origin} read")
        atomic_write(folder / _READ, json.dumps(sizes))
    return Cleaned(folder, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64), config)


def _missing(pairs: Iterable[Pair], folder: Path, sizes: list[int]) -> Iterator[tuple[int, list[Pair]]]:
    """The blocks that are not there yet; sizes: gets the pairs of every block."""
    for number, block in enumerate(in_blocks(iter(pairs))):
        sizes.append(len(block))
        if not _is_whole(block_file(folder, number)):
            yield number, block


def _is_whole(path: Path) -> bool:
    try:
        read_block(path, "lines")
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return False
    return True


class Cleaner:
    """Judges a corpus that is not to be stored; only a temporary folder grows with it."""

    def __init__(self, config: CleaningConfig, origin: str = "the corpus", vectors: bool = False) -> None:
        """See `PairRules`."""
        self._config, self._origin, self._vectors = config, origin, vectors

    def run(self, pairs: Iterable[Pair], workers: int | None = None) -> CleaningReport:
        """Read all pairs once. Raises DataError at broken UTF-8 when that is to be an error."""
        with TemporaryDirectory(prefix="dragoman-") as folder:
            cleaned = clean(pairs, self._config, Path(folder), self._origin, self._vectors, False, workers)
            dropped = {rule: np.array(lines) for rule, lines in cleaned.report.dropped.items()}
            return CleaningReport(cleaned.report.pairs, dropped)
