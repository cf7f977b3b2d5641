"""`split_data` divides a corpus into a training, a validation and a test set, as a training run without them does."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_folder, check_new_folder
from dragoman.base.log import quietly
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import Overrides, all_overrides
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.files.lines import has_broken_utf8
from dragoman.data.held_out.config import HeldOutConfig
from dragoman.data.held_out.example_files import save_examples, save_part
from dragoman.data.held_out.examples import as_stored
from dragoman.data.held_out.sets import hold_out
from dragoman.data.held_out.texts import NO_KEYS
from dragoman.statistical.alignment.pair_scoring import pair_scoring
from dragoman.tasks.corpora.check import config_of
from dragoman.tasks.labelled.job import LabelledJob
from dragoman.tasks.registry import open_job
from dragoman.tasks.train import load_recipe


class SplitData(Config):
    """The settings of `data` of a training run that determine which pairs are held out."""

    train: CorpusConfig = Field(description="Corpus to divide.")
    cleaning: CleaningConfig = Field(CleaningConfig(), description="Rules; pairs that break them are not held out.")
    held_out: HeldOutConfig = Field(HeldOutConfig(), description="Numbers of pairs to hold out.")
    source_language: str | None = Field(None, description="Language of the source, such as ja.")
    target_language: str | None = Field(None, description="Language of the target, such as zh.")


class SplitSettings(Config):
    """Settings of `dragoman data split`, with the keys of a training run."""

    data: SplitData = Field(description="Corpus, numbers of pairs, cleaning and languages.")


@dataclass(frozen=True)
class SplitResult:
    """The number of pairs of each set, of pairs with a sentence of a held-out pair, and of incomplete pairs.

    folder: contains train.source, train.target, and the same files of valid and test; or of examples, a file of each
    set. unit: name of what is counted.
    """

    folder: Path
    train: int
    valid: int
    test: int
    alike: int = 0
    incomplete: int = 0
    unit: str = "pairs"

    def __str__(self) -> str:
        lines = [
            f"{self.folder}: {self.train:,} {self.unit} for training, {self.valid:,} for validation, {self.test:,} for "
            "testing"
        ]
        if self.alike:
            lines.append(f"{self.alike:,} pairs are left out, because a held-out pair has the same source or target")
        if self.incomplete:
            lines.append(f"{self.incomplete:,} pairs are left out: a side is missing, not UTF-8, or of several lines")
        return "\n".join(lines)


def split_data(
    corpus: CorpusConfig | Mapping[str, Any],
    out: str | Path,
    held_out: HeldOutConfig | Mapping[str, Any] | None = None,
    cleaning: CleaningConfig | Mapping[str, Any] | None = None,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    task: str | None = None,
    quiet: bool = False,
) -> SplitResult:
    """Divide a corpus into line-aligned files in a new folder: train.source, train.target, valid.source and so on.

    No sentence of a set is in another one, also apart from case, punctuation, spaces and numbers. Each pair is in one
    set or counted as left out. corpus: as in `data.train`. held_out, cleaning: as in `data`; pairs that cleaning would
    drop are not held out, but remain in the training files. source_language, target_language: as in `data`. task: the
    kind of a task with labels, such as classification, whose `data.train` is the corpus; its examples are divided into
    one file per set. Raises ConfigError if the folder exists or the settings are invalid, and DataError for a corpus
    that cannot be read or is too small.

    >>> from dragoman import split_data
    >>> corpus = {"source": "train.en", "target": "train.de"}
    >>> result = split_data(corpus, "split", {"valid": 10, "test": 20}, quiet=True)
    >>> result.valid, result.test
    (10, 20)
    """
    folder = Path(out)
    check_new_folder(folder)
    if task is not None:
        data = {"train": _as_values(corpus), "held_out": _as_values(held_out or {})}
        return split_examples({"task": {"kind": task}, "data": data}, folder, quiet=quiet)
    pairs, config = config_of(corpus, CorpusConfig), config_of(held_out or {}, HeldOutConfig)
    rules = config_of(cleaning or {}, CleaningConfig)
    rules = rules.with_languages(*pairs.languages(source_language, target_language))
    scoring = pair_scoring(rules)
    with quietly(quiet), TemporaryDirectory(prefix="dragoman-") as temporary, atomic_folder(folder) as written:
        sets = hold_out((pairs,), config, lambda _: rules, Path(temporary), scoring=scoring)
        for path in (file for each in (*sets.valid, *sets.test) for file in each.files):
            (written / path.name).write_bytes(path.read_bytes())
        counts = _write_training_pairs(pairs, sets.keys(), written)
    counts["alike"] -= sum(sets.sizes)
    return SplitResult(folder, counts["train"], *sets.sizes, counts["alike"], counts["incomplete"])


def split_examples(settings: Overrides, out: Path, *, quiet: bool = False) -> SplitResult:
    """Divide the examples of a task with labels as its training run does, into one file per set in a new folder.

    settings: of the run. Raises ConfigError for another task and if the folder exists, and the errors of the run.
    """
    check_new_folder(out)
    with quietly(quiet):
        job = open_job(load_recipe(None, [f"out={json.dumps(str(out))}", *all_overrides(settings)]))
        if not isinstance(job, LabelledJob):
            kind = job.run.task.kind
            raise ConfigError(f"task.kind={kind}: only sentence pairs and labelled examples are divided without a run")
        job.leave_out(job.hold_out(NO_KEYS))
        stored = job.sets.stored
        if stored is None or not stored.valid:
            raise ConfigError("data.valid names a validation set: remove it, so that the examples are divided")
        with atomic_folder(out) as written:
            save_part(written, "train", as_stored(list(job.train)))
            save_examples(written, stored)
    return SplitResult(out, len(job.train), *stored.sizes, unit="examples")


def _as_values(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, Config) else value


def _write_training_pairs(corpus: CorpusConfig, keys: SentenceKeys, folder: Path) -> Counter[str]:
    """Write the pairs without held-out sentences. Returns the numbers of written, similar and incomplete pairs."""
    counts = Counter[str]()
    with ExitStack() as stack:
        paths = (folder / f"train.{side}" for side in ("source", "target"))
        files = [stack.enter_context(path.open("w", encoding="utf-8", newline="")) for path in paths]
        for pair in read_pairs(corpus):
            if not pair.complete or any("\n" in text or has_broken_utf8(text) for text in pair.texts):
                counts["incomplete"] += 1
            elif keys.contain(*pair.texts):
                counts["alike"] += 1
            else:
                counts["train"] += 1
                for file, text in zip(files, pair.texts, strict=True):
                    file.write(f"{text}\n")
    return counts
