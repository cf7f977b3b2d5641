"""Cleaning: a corpus is judged and stored block by block, on all cores; what was done is not done again."""

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.base.files import atomic_write
from dragoman.base.progress import Work
from dragoman.data.preparation.blocks import Item, block_file, in_blocks, joined_texts, read_block, write_block
from dragoman.data.preparation.cleaned import Cleaned
from dragoman.data.preparation.cleaned_texts import CleanedTexts
from dragoman.data.preparation.report import RULES, CleaningReport
from dragoman.data.preparation.scripts import dominant_script
from dragoman.data.preparation.text_cleaning import TextRules
from dragoman.data.workers import apply

_READ = "read.json"


class Rules(Protocol):
    """What is judged of an item, which is a `Pair` or a `Passage`, on its own.

    items: what messages call them; origin: the corpus's name in messages; config: the settings of the rules.
    """

    @property
    def sides(self) -> tuple[str, ...]: ...

    @property
    def items(self) -> str: ...

    @property
    def origin(self) -> str: ...

    @property
    def config(self) -> Any: ...

    def broken_by(self, item: Any) -> str | None:
        """The first rule that an item breaks."""
        ...

    def marks(self, items: Any) -> dict[str, NDArray[Any]]:
        """What a block keeps of all its items beside their lines."""
        ...

    def scripted(self, item: Any) -> tuple[str, ...]:
        """What of each side has a script."""
        ...

    def digest(self, item: Any) -> bytes:
        """16 bytes that only equal items share."""
        ...


@dataclass(frozen=True)
class CleanBlock:
    """Judges a block and stores it; texts: with the texts of the items that stay as far as an item alone can tell.

    A block file holds, for its n items, `verdicts` (n,) uint8 (0: stays, else one more than the rule's place), `lines`
    (n,) int64, and the rules' marks; for the m that stay `digests` (m, 2) uint64, `scripts` (sides, m) uint8 and the
    `names` of these numbers, and of each side, which names them, the UTF-8 and its ends.
    """

    rules: Rules
    folder: Path
    texts: bool

    def __call__(self, task: tuple[int, Sequence[Item]]) -> None:
        """task: the block's number and its items."""
        number, items = task
        rules, config = self.rules, self.rules.config
        broken = [rules.broken_by(item) for item in items]
        staying = [item for item, rule in zip(items, broken, strict=True) if rule is None]
        verdicts = np.array([0 if rule is None else 1 + RULES.index(rule) for rule in broken], np.uint8)
        arrays: dict[str, NDArray[np.generic]] = {
            "verdicts": verdicts,
            "lines": np.array([item.line for item in items], np.int64),
            **rules.marks(items),
        }
        if config.enabled and config.wrong_script:
            names: dict[str | None, int] = {None: 0}
            scripted = [rules.scripted(item) for item in staying]
            scripts = [
                [min(names.setdefault(dominant_script(texts[side]), len(names)), 255) for texts in scripted]
                for side in range(len(rules.sides))
            ]
            arrays["scripts"] = np.array(scripts, np.uint8)
            arrays["names"] = np.array([name or "" for name in names])
        if config.enabled and config.duplicates:
            digests = b"".join(map(rules.digest, staying))
            arrays["digests"] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
        if self.texts:
            for place, side in enumerate(rules.sides):
                arrays[side], arrays[f"{side}_ends"] = joined_texts([item.texts[place] for item in staying])
        write_block(block_file(self.folder, number), arrays)


def clean(
    items: Iterable[Item],
    rules: Rules,
    folder: Path,
    texts: bool = True,
    workers: int | None = None,
    *,
    before: Sequence[Cleaned] = (),
) -> Cleaned:
    """Judge all items, and store them in `folder`; blocks that lie there from an earlier call are not made again.

    before: see `Cleaned`. workers: processes, None for one a core; the result does not depend on it.

    Raises DataError at broken UTF-8 when that is to be an error.
    """
    cleaned = CleanedTexts if isinstance(rules, TextRules) else Cleaned
    try:
        sizes = json.loads((folder / _READ).read_text())
    except (OSError, ValueError):
        sizes = []
        tasks = _missing(items, folder, sizes)
        with Work("Cleaning", rules.items) as work:
            for _ in apply(CleanBlock(rules, folder, texts), tasks, workers):
                work.tell(sum(sizes))
        atomic_write(folder / _READ, json.dumps(sizes))
    return cleaned(
        folder, np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64), rules.config, before
    )


def _missing(items: Iterable[Item], folder: Path, sizes: list[int]) -> Iterator[tuple[int, Sequence[Item]]]:
    """The blocks that are not there yet; sizes: gets the items of every block."""
    for number, block in enumerate(in_blocks(iter(items))):
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

    def __init__(self, rules: Rules) -> None:
        """See `PairRules` and `TextRules`."""
        self._rules = rules

    def run(self, items: Iterable[Item], workers: int | None = None) -> CleaningReport:
        """Read all items once. Raises DataError at broken UTF-8 when that is to be an error."""
        with TemporaryDirectory(prefix="dragoman-") as folder:
            report = clean(items, self._rules, Path(folder), False, workers).report
            dropped = {rule: np.array(lines) for rule, lines in report.dropped.items()}
            return CleaningReport(report.total, dropped, report.unit)
