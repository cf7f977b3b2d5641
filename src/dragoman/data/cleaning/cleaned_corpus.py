"""`CleanedCorpus`: the checked chunks of a corpus, and the verdicts that decide which items are kept."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dragoman.data.cleaning.chunks import chunk_file, has_array, new_array, new_verdicts, open_verdicts, read_chunk
from dragoman.data.cleaning.config import CleaningConfig, TextCleaningConfig
from dragoman.data.cleaning.duplicates import mark_duplicates
from dragoman.data.cleaning.length_ratio import UsualRatio
from dragoman.data.cleaning.mismatches import MismatchSearch, PairScoring
from dragoman.data.cleaning.report import RULES, CleaningReport, FindingCount
from dragoman.data.cleaning.rules import PairRules, TextRules
from dragoman.text.scripts import main_script, scripts_of

_LENGTHS = "lengths.bin"


WRONG_SCRIPT, DUPLICATES = 1 + RULES.index("wrong_script"), 1 + RULES.index("duplicates")
DUPLICATES_BETWEEN, MAX_RATIO = 1 + RULES.index("duplicates_between"), 1 + RULES.index("max_ratio")
MISMATCHED = 1 + RULES.index("mismatched")


def text_bytes(folder: Path, starts: NDArray[np.int64], side: str) -> int:
    """Return the size in UTF-8 bytes of all kept texts on one side. folder, starts: as in `CleanedCorpus`."""
    verdicts, total = open_verdicts(folder), 0
    for number in range(len(starts) - 1):
        chunk_verdicts, ends = read_chunk(chunk_file(folder, number), "verdicts", f"{side}_ends")
        kept = verdicts[starts[number] : starts[number + 1]][chunk_verdicts == 0] == 0
        total += int(np.diff(ends, prepend=0)[kept].sum())
    return total


class CleanedCorpus:
    """The chunks of a corpus, and the verdicts on all its items.

    starts: (K + 1,) int64, the index of the first item of each of the K chunks, and the number of items. before:
    earlier corpora, whose kept items are dropped from this corpus. side_names: names of the sides in the report.
    report: the dropped items, by rule; empty until `apply_rules`.
    """

    sides: ClassVar[tuple[str, ...]] = PairRules.sides
    items: ClassVar[str] = PairRules.items
    unit: ClassVar[str] = "pairs"

    def __init__(
        self,
        folder: Path,
        starts: NDArray[np.int64],
        before: Sequence["CleanedCorpus"] = (),
        side_names: Sequence[str] = (),
    ) -> None:
        """Open the chunks, whose verdicts `apply_rules` completes."""
        self.folder, self.starts, self.before = folder, starts, before
        self._side_names = tuple(side_names) or self.sides
        self._details: dict[str, str] = {}
        self._verdicts = new_verdicts(folder, int(starts[-1]))
        for number in range(len(self)):
            (verdicts,) = read_chunk(chunk_file(folder, number), "verdicts")
            self._verdicts[starts[number] : starts[number + 1]] = verdicts
        self.report = CleaningReport(int(starts[-1]), {}, self.unit)

    def apply_rules(
        self,
        config: CleaningConfig | TextCleaningConfig,
        scoring: PairScoring | None = None,
        workers: int | None = None,
    ) -> None:
        """Apply the rules that need the whole corpus: duplicates, scripts, length ratios and mismatches.

        scoring: required if `config.mismatched`. workers: number of processes that score pairs; None: one per core.
        """
        self._apply_corpus_rules(config)
        if isinstance(config, CleaningConfig) and config.checks_mismatches:
            assert scoring is not None
            search = MismatchSearch(scoring, self.folder, self.starts)
            size = sum(text_bytes(self.folder, self.starts, side) for side in self.sides)
            self._details["mismatched"] = search.mark(self._verdicts, MISMATCHED, size, workers)
        self.report = self._report()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """Number of kept pairs, which determines the vocabulary size and temperature sampling."""
        return self.report.kept

    def verdicts(self, number: int) -> NDArray[np.uint8]:
        """Return the verdicts on the items of a chunk. Kept items have verdict 0."""
        return self._verdicts[self.starts[number] : self.starts[number + 1]]

    def _apply_corpus_rules(self, config: CleaningConfig | TextCleaningConfig) -> None:
        if self.before:
            before = (digests for corpus in self.before for digests in corpus._kept_digests())
            count = sum(corpus.pairs for corpus in self.before)
            mark_duplicates(
                self._digests(), self._verdicts, DUPLICATES_BETWEEN, self.folder, before=before, count_before=count
            )
        if config.enabled and config.duplicates:  # also marks repetitions of items that were marked above
            mark_duplicates(self._digests(), self._verdicts, DUPLICATES, self.folder)
        if config.enabled and config.wrong_script:
            self._mark_wrong_scripts(config)
        if isinstance(config, CleaningConfig) and config.checks_ratio:
            self._mark_length_ratios(config.max_ratio or math.inf)

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Yield the indices and digests of the items that break no rule by themselves, chunk by chunk."""
        for number in range(len(self)):
            verdicts, digests = read_chunk(chunk_file(self.folder, number), "verdicts", "digests")
            yield self.starts[number] + np.flatnonzero(verdicts == 0), digests

    def _kept_digests(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the digests of the kept items, chunk by chunk."""
        for number in range(len(self)):
            verdicts, digests = read_chunk(chunk_file(self.folder, number), "verdicts", "digests")
            yield digests[self.verdicts(number)[verdicts == 0] == 0]

    def _mark_wrong_scripts(self, config: CleaningConfig | TextCleaningConfig) -> None:
        """Mark items in a wrong script. This verdict overrides that on duplicates, whose scripts are identical."""
        counts = [Counter[str]() for _ in self.sides]
        for number in range(len(self)):
            scripts, names = read_chunk(chunk_file(self.folder, number), "scripts", "names")
            for count, side in zip(counts, scripts, strict=True):
                frequencies = np.bincount(side, minlength=len(names))
                count.update({str(name): int(times) for name, times in zip(names, frequencies, strict=False) if name})
        allowed = []
        for configured, count in zip(config.scripts_of_sides, counts, strict=True):
            threshold = min(config.script_fraction * count.total(), max(count.values(), default=0))
            detected = [script for script, times in count.items() if times and times >= threshold]
            allowed.append(configured or _union(detected))
        expected = zip(self._side_names, allowed, strict=True)
        self._details["wrong_script"] = "expected " + "; ".join(
            f"{name}: {', '.join(sorted(each)) or 'any'}" for name, each in expected
        )
        for number in range(len(self)):
            verdicts, scripts, names = read_chunk(chunk_file(self.folder, number), "verdicts", "scripts", "names")
            fits = np.ones(scripts.shape[1], dtype=bool)
            for side, each in zip(scripts, allowed, strict=True):
                fits &= np.array([_fits(str(name), each) for name in names])[np.minimum(side, len(names) - 1)]
            chunk = self.verdicts(number)
            chunk[np.flatnonzero(verdicts == 0)[~fits]] = WRONG_SCRIPT

    def _mark_length_ratios(self, max_ratio: float) -> None:
        """Mark pairs whose length ratio is unusual. This verdict overrides that on duplicates, whose ratios are equal.

        The usual ratio is that of the pairs that break no other rule.
        """

        if len(self) == 0 or not has_array(chunk_file(self.folder, 0), "lengths"):
            return
        lengths = new_array(self.folder / _LENGTHS, (2, int(self.starts[-1])), np.uint32)
        for number in range(len(self)):
            verdicts, chunk = read_chunk(chunk_file(self.folder, number), "verdicts", "lengths")
            lengths[:, self.starts[number] : self.starts[number + 1]][:, verdicts == 0] = chunk

        def kept_lengths() -> Iterator[NDArray[np.integer]]:
            for number in range(len(self)):
                yield lengths[:, self.starts[number] : self.starts[number + 1]][:, self.verdicts(number) == 0]

        ratio = UsualRatio.estimate(kept_lengths)
        limit = ratio.limit(max_ratio)
        for number in range(len(self)):
            unusual = ratio.deviations(lengths[:, self.starts[number] : self.starts[number + 1]]) > limit
            chunk = self.verdicts(number)
            chunk[unusual & (chunk != WRONG_SCRIPT)] = MAX_RATIO
        self._details["max_ratio"] = (
            f"usual ratio {ratio.usual:.2f} target characters per source character, limit {limit:g} times more or less"
        )

    def _report(self) -> CleaningReport:
        """Return the report, whose line numbers are stored in one file per rule instead of in memory."""
        counts: Counter[str] = Counter()
        for number in range(len(self)):
            verdicts = self._reported_verdicts(number)
            if not verdicts.any():
                continue
            (lines,) = read_chunk(chunk_file(self.folder, number), "lines")
            for verdict in np.unique(verdicts[verdicts > 0]).tolist():
                rule = RULES[verdict - 1]
                dropped = lines[verdicts == verdict]
                with CleaningReport.file(self.folder, rule).open("ab" if counts[rule] else "wb") as file:
                    file.write(dropped.tobytes())
                counts[rule] += len(dropped)
        details = {rule: detail for rule, detail in self._details.items() if rule in counts}
        found = self._store_findings()
        return CleaningReport.from_files(
            self.folder, self._count_items(), counts, unit=self.unit, found=found, details=details
        )

    def _store_findings(self) -> list[FindingCount]:
        """Store the lines of the findings, one file per kind, and return the kinds with their numbers of lines."""
        counts: dict[tuple[str, str, str], int] = {}
        for number in range(len(self)):
            path = chunk_file(self.folder, number)
            if not has_array(path, "findings"):
                continue
            kinds, findings = read_chunk(path, "finding_kinds", "findings")
            for index, kind in enumerate(map(tuple, kinds.tolist())):
                lines = findings[findings[:, 0] == index, 1]
                position = list(counts).index(kind) if kind in counts else len(counts)
                with CleaningReport.found_file(self.folder, position).open("ab" if kind in counts else "wb") as file:
                    file.write(np.ascontiguousarray(lines).tobytes())
                counts[kind] = counts.get(kind, 0) + len(lines)
        return [
            FindingCount(setting, self._side_names[int(side)], name, count)
            for (setting, side, name), count in counts.items()
        ]

    def _reported_verdicts(self, number: int) -> NDArray[np.uint8]:
        """Return the verdicts on the items of a chunk that the report counts, and 0 for all other items."""
        return self.verdicts(number)

    def _count_items(self) -> int:
        return int(self.starts[-1])


def _union(systems: Iterable[str]) -> frozenset[str]:
    """Return all scripts of writing systems. Ideographs alone, without kana and Hangul, are Chinese."""
    names = frozenset(systems)
    if "Hani" in names and names.isdisjoint(("Jpan", "Kore")):
        names |= {"Hanb"}
    return frozenset[str]().union(*map(scripts_of, names))


def _fits(name: str, allowed: frozenset[str]) -> bool:
    """Return whether texts in a writing system are expected if these scripts are allowed."""
    return not name or main_script(name) in allowed


BYTES_PER_PAIR = 133
"""Number of UTF-8 bytes of both sides of an average sentence pair. 40 MB of text are about 300,000 pairs."""


class CleanedTextCorpus(CleanedCorpus):
    """A `CleanedCorpus` of passages. Each document is kept or dropped as a whole and counted once."""

    sides = TextRules.sides
    items = TextRules.items
    unit = "documents"

    def _apply_corpus_rules(self, config: CleaningConfig | TextCleaningConfig) -> None:
        self._extend_verdicts()
        super()._apply_corpus_rules(config)
        self._extend_verdicts()

    def _extend_verdicts(self) -> None:
        """Extend the verdict on a passage to its whole document."""
        first, worst = 0, 0  # start of the last document of the preceding chunk, and the verdict on this document
        for number in range(len(self)):
            begins, verdicts = self._begins(number), self.verdicts(number)
            starts = np.flatnonzero(begins)
            rest = int(starts[0]) if len(starts) else len(begins)
            verdict = int(verdicts[:rest].max(initial=worst))
            if verdict:
                self._verdicts[first : self.starts[number] + rest] = verdict
            if len(starts):
                each = np.maximum.reduceat(verdicts, starts)
                verdicts[rest:] = np.repeat(each, np.diff(starts, append=len(begins)))
                first, verdict = int(self.starts[number] + starts[-1]), int(each[-1])
            worst = verdict

    def _digests(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Yield the starts of the kept documents, chunk by chunk, and digests of the digests of their passages."""
        first, document = 0, blake2b()
        for number in range(len(self)):
            chunk_verdicts, begins, ends, chunk_digests = read_chunk(
                chunk_file(self.folder, number), "verdicts", "begins", "ends", "digests"
            )
            kept = self.verdicts(number) == 0
            digests = np.zeros((len(chunk_verdicts), 2), np.uint64)
            digests[chunk_verdicts == 0] = chunk_digests
            single = begins & ends
            starts, document_digests = [], []
            for index in np.flatnonzero(kept & ~single).tolist():
                if begins[index]:
                    first, document = int(self.starts[number]) + index, blake2b(digest_size=16)
                document.update(digests[index].tobytes())
                if ends[index]:
                    starts.append(first)
                    document_digests.append(np.frombuffer(document.digest(), np.uint64))
            chosen = np.flatnonzero(kept & single)
            yield (
                np.concatenate([np.array(starts, np.int64), self.starts[number] + chosen]),
                np.concatenate([np.array(document_digests, np.uint64).reshape(-1, 2), digests[chosen]]),
            )

    @property
    def pairs(self) -> int:
        """Number of sentence pairs, at least 1, that have the same amount of text on average."""
        return max(1, text_bytes(self.folder, self.starts, "text") // BYTES_PER_PAIR)

    def _reported_verdicts(self, number: int) -> NDArray[np.uint8]:
        return np.where(self._begins(number), self.verdicts(number), 0).astype(np.uint8)

    def _count_items(self) -> int:
        return sum(int(self._begins(number).sum()) for number in range(len(self)))

    def _begins(self, number: int) -> NDArray[np.bool_]:
        (begins,) = read_chunk(chunk_file(self.folder, number), "begins")
        return begins
