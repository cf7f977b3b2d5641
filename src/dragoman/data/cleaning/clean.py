"""Cleaning: checks a corpus against rules and stores it chunk by chunk, on all cores. A killed run can be resumed."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from dragoman.base.files import atomic_write
from dragoman.base.progress import Progress
from dragoman.data.cleaning.chunks import chunk_file, divide_into_chunks, is_whole_chunk, pack_texts, write_chunk
from dragoman.data.cleaning.cleaned_corpus import CleanedCorpus, CleanedTextCorpus
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.data.cleaning.report import RULES, CleaningReport
from dragoman.data.cleaning.rules import Checked, Rules, TextRules
from dragoman.data.corpora.items import Item
from dragoman.data.workers import parallel_map
from dragoman.text.normalization import Normalization

_READ = "read.json"


@dataclass(frozen=True)
class ChunkCleaner:
    """Normalises and checks the items of a chunk, and stores the chunk.

    texts: whether to store the texts of the kept items. normalizations: the Unicode normalisation of each side.

    For its n items, a chunk file contains `verdicts` (n,) uint8, where 0 means kept and 1 + i that the item breaks rule
    i, `lines` (n,) int64, and the arrays of `Rules.chunk_arrays`. For the m items that break no rule by themselves, it
    contains `digests` (m, 2) uint64, `scripts` (sides, m) uint8, which are indices into `names`, the arrays of
    `Rules.kept_arrays`, and for each side the concatenated UTF-8 and the ends of the texts, under the name of the side.
    If there are f findings of k kinds, it contains `finding_kinds` (k, 3), which are settings, sides and names, and
    `findings` (f, 2) int64, which are kinds and lines.
    """

    rules: Rules
    folder: Path
    texts: bool
    normalizations: tuple[Normalization, ...]

    def __call__(self, task: tuple[int, Sequence[Item]]) -> None:
        """Process a chunk. task: number and items of the chunk."""
        number, items = task
        if set(self.normalizations) != {"none"}:
            items = [item.normalised(self.normalizations) for item in items]
        rules, config = self.rules, self.rules.config
        checked = [rules.check(item) for item in items]
        kept = [each.item for each in checked if each.rule is None]
        verdicts = np.array([0 if each.rule is None else 1 + RULES.index(each.rule) for each in checked], np.uint8)
        arrays: dict[str, NDArray[np.generic]] = {
            "verdicts": verdicts,
            "lines": np.array([item.line for item in items], np.int64),
            **rules.chunk_arrays(items),
            **rules.kept_arrays(kept),
            **_finding_arrays(checked),
        }
        if config.enabled and config.wrong_script:
            names: dict[str | None, int] = {None: 0}
            script_texts = [rules.script_texts(item) for item in kept]
            scripts = [
                [min(names.setdefault(rules.script(texts[side]), len(names)), 255) for texts in script_texts]
                for side in range(len(rules.sides))
            ]
            arrays["scripts"] = np.array(scripts, np.uint8)
            arrays["names"] = np.array([name or "" for name in names])
        if config.enabled and config.duplicates:
            digests = b"".join(map(rules.digest, kept))
            arrays["digests"] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        if self.texts:
            for index, side in enumerate(rules.sides):
                arrays[side], arrays[f"{side}_ends"] = pack_texts([item.texts[index] for item in kept])
        write_chunk(chunk_file(self.folder, number), arrays)


def _finding_arrays(checked: Sequence[Checked]) -> dict[str, NDArray[np.generic]]:
    kinds: dict[tuple[str, str, str], int] = {}
    findings = [
        (kinds.setdefault((finding.setting, str(finding.side), finding.name), len(kinds)), finding.line)
        for each in checked
        for finding in each.findings
    ]
    return {"finding_kinds": np.array(list(kinds), np.str_), "findings": np.array(findings, np.int64)} if kinds else {}


def clean(
    items: Iterable[Item],
    rules: Rules,
    folder: Path,
    texts: bool = True,
    workers: int | None = None,
    *,
    before: Sequence[CleanedCorpus] = (),
    normalizations: Sequence[Normalization] | None = None,
    scoring: PairScoring | None = None,
) -> CleanedCorpus:
    """Check all items and store them in `folder`. Chunks from an earlier call are reused.

    normalizations: the Unicode normalisation of each side; None: no normalisation. before: see `CleanedCorpus`.
    scoring: scores pairs for the rule `mismatched`, which requires `texts`. workers: number of processes; None: one per
    core. The number does not affect the result.

    Raises DataError for invalid UTF-8 if the rules treat it as an error.
    """
    forms = tuple(normalizations or _unchanged(rules))
    try:
        sizes = json.loads((folder / _READ).read_text())
    except (OSError, ValueError):
        sizes = []
        tasks = _missing_chunks(items, folder, sizes)
        with Progress("Cleaning", rules.items) as progress:
            for _ in parallel_map(ChunkCleaner(rules, folder, texts, forms), tasks, workers):
                progress.update(sum(sizes))
        atomic_write(folder / _READ, json.dumps(sizes))
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    kind = CleanedTextCorpus if isinstance(rules, TextRules) else CleanedCorpus
    cleaned = kind(folder, starts, before, rules.side_names)
    cleaned.apply_rules(rules.config, scoring, workers)
    return cleaned


def _unchanged(rules: Rules) -> list[Normalization]:
    """Return `none` for each side."""
    return ["none" for _ in rules.sides]


def _missing_chunks(items: Iterable[Item], folder: Path, sizes: list[int]) -> Iterator[tuple[int, Sequence[Item]]]:
    """Yield the chunks that are not stored yet, and append the number of items of every chunk to `sizes`."""
    for number, chunk in enumerate(divide_into_chunks(iter(items))):
        sizes.append(len(chunk))
        if not is_whole_chunk(chunk_file(folder, number)):
            yield number, chunk


def report_cleaning(
    items: Iterable[Item],
    rules: Rules,
    workers: int | None = None,
    normalization: Normalization = "none",
    scoring: PairScoring | None = None,
) -> CleaningReport:
    """Return a report of the items that cleaning would drop, without storing the corpus.

    normalization: the Unicode normalisation of all texts. scoring: as in `clean`. Memory does not grow with the corpus,
    but a temporary folder does.

    Raises DataError for invalid UTF-8 if the rules treat it as an error.
    """
    with TemporaryDirectory(prefix="dragoman-") as folder:
        forms = [normalization] * len(rules.sides)
        stores_texts = scoring is not None
        report = clean(items, rules, Path(folder), stores_texts, workers, normalizations=forms, scoring=scoring).report
        dropped = {rule: np.array(lines) for rule, lines in report.dropped.items()}
        found = {kind: np.array(lines) for kind, lines in report.found.items()}
        return replace(report, dropped=dropped, found=found)
