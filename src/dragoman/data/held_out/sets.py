"""`HeldOutSets`: the validation and test sets that were held out from corpora, in line-aligned files or of records."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from dragoman.base.errors import DataError
from dragoman.base.files import atomic_folder, run_of
from dragoman.data.cleaning.mismatches import PairScoring
from dragoman.data.cleaning.sentence_keys import SentenceKeys
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import read_sides
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.records import hold_out_records, stored_record_corpus, write_records
from dragoman.data.held_out.split import Cleaning, select_pairs
from dragoman.data.preparation.fingerprint import file_digest

FOLDER = "held_out"
"""The folder of the sets in a run folder."""

HeldOutUnit = Literal["sentences", "texts", "labels"]
"""What pairs consist of. sentences: no sentence of a set is in another one, on either side. texts: whole records, none
of whose texts and targets is in another set. labels: as texts, but targets may be in all sets."""

_CONTENTS = "sets.json"
_VERSION = "1"
"""Version of the selection, which changes with the pairs that are selected. Sets of other versions are not reused."""


@dataclass(frozen=True)
class HeldOutSets:
    """Stored sets. Pairs of different tags or languages are in different sets.

    folder: folder with the files. valid, test: the sets. sizes: number of pairs of all validation and all test sets.
    """

    folder: Path
    valid: tuple[CorpusConfig, ...]
    test: tuple[CorpusConfig, ...]
    sizes: Sizes

    @classmethod
    def load(cls, folder: Path) -> "HeldOutSets | None":
        """Open the sets in a folder; None if there are none. Raises DataError if the files are damaged."""
        path = Path(folder) / _CONTENTS
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            valid, test = ([_corpus(folder, each) for each in content[part]] for part in ("valid", "test"))
            sizes = Sizes(*(sum(each["pairs"] for each in content[part]) for part in ("valid", "test")))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged ({error}). Restore it, or train in another --out.") from None
        return cls(Path(folder), tuple(valid), tuple(test), sizes)

    @classmethod
    def of_model(cls, folder: str | Path) -> "HeldOutSets | None":
        """Open the sets of the run that wrote a model folder, which may be one of its checkpoints; None without sets.

        Raises DataError if the files are damaged.
        """
        return cls.load(run_of(Path(folder)) / FOLDER)

    def keys(self) -> SentenceKeys:
        """Return the sentences of all sets."""
        return sentence_keys((*self.valid, *self.test))

    def copy(self, folder: Path) -> "HeldOutSets":
        """Copy the files to another folder, which is replaced, and return the sets there."""
        if folder == self.folder:
            return self
        with atomic_folder(folder, replace=True) as temporary:
            for path in self.folder.iterdir():
                shutil.copyfile(path, temporary / path.name)
        found = HeldOutSets.load(folder)
        assert found is not None
        return found

    def __str__(self) -> str:
        valid, test = self.sizes
        parts = [f"{count:,} pairs for {name}" for count, name in ((valid, "validation"), (test, "testing")) if count]
        return f"{', '.join(parts)}, in {self.folder}"


def sentence_keys(corpora: Sequence[CorpusConfig]) -> SentenceKeys:
    """Return the sentences of corpora, which must fit in memory. Raises DataError as `read_sides` does."""
    return SentenceKeys.of(pair for corpus in corpora for pair in zip(*read_sides(corpus), strict=True))


def left_out_keys(corpora: Sequence[CorpusConfig], unit: HeldOutUnit) -> SentenceKeys:
    """Return the texts of held-out corpora that must not be in training. unit: of what their pairs consist."""
    keys = sentence_keys(corpora)
    return SentenceKeys(keys.sources, frozenset()) if unit == "labels" else keys


def hold_out(
    corpora: Sequence[CorpusConfig],
    config: HeldOutConfig,
    cleaning: Cleaning,
    folder: Path,
    *,
    named: tuple[Sequence[CorpusConfig], Sequence[CorpusConfig]] = ((), ()),
    scoring: PairScoring | None = None,
    unit: HeldOutUnit = "sentences",
) -> HeldOutSets:
    """Hold out a validation and a test set from corpora, or open the sets that an earlier call stored.

    cleaning: the rules of each corpus. folder: folder of prepared data, in which the sets are stored under a
    fingerprint of the corpora and settings. named: validation and test sets that the recipe names, which replace those
    that would be held out. scoring: as in `clean`. unit: of what pairs consist. Raises the errors of `select_pairs`.
    """
    parts = [_VERSION, config.model_dump_json(), "" if scoring is None else scoring.fingerprint]
    parts += [] if unit == "sentences" else [unit]
    parts += [repr([str(each) for each in group]) for group in named]
    for corpus in (*corpora, *named[0], *named[1]):
        parts += [corpus.model_dump_json(exclude={"weight"}), cleaning(corpus).fingerprint()]
        parts += [file_digest(path, folder) for path in corpus.files]
    path = folder / f"held-out-{sha256(repr(parts).encode()).hexdigest()[:16]}"
    found = HeldOutSets.load(path)
    if found is not None:
        return found
    needed = Sizes(int(not named[0]), int(not named[1]))
    known = sentence_keys((*named[0], *named[1]))
    with atomic_folder(path, replace=True) as temporary:
        if unit == "sentences":
            selection = select_pairs(corpora, config, cleaning, scoring=scoring, named=needed, known=known)
            pairs = {"valid": selection.valid, "test": selection.test}
            content = {part: _write(temporary, part, corpora, each) for part, each in pairs.items()}
        else:
            chosen = hold_out_records(
                corpora, config, cleaning, compares_targets=unit == "texts", named=needed, known=known
            )
            rows = dict(zip(("valid", "test"), chosen, strict=True))
            content = {part: write_records(temporary, part, corpora, each) for part, each in rows.items()}
        (temporary / _CONTENTS).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    found = HeldOutSets.load(path)
    assert found is not None
    return found


def _write(
    folder: Path, part: str, corpora: Sequence[CorpusConfig], selected: Sequence[Sequence[Pair]]
) -> list[dict[str, Any]]:
    """Write the pairs of a set, in one pair of files for all corpora with the same tags and languages."""
    groups: dict[str, tuple[CorpusConfig, list[str], list[Pair]]] = {}
    for corpus, pairs in zip(corpora, selected, strict=True):
        if pairs:
            settings = corpus.model_dump_json(include={"tags", "target_language", "source_code", "target_code"})
            _, names, all_pairs = groups.setdefault(settings, (corpus, [], []))
            names.append(str(corpus))
            all_pairs += pairs
    entries = []
    for number, (corpus, names, pairs) in enumerate(groups.values(), start=1):
        stem = part if len(groups) == 1 else f"{part}-{number}"
        for side in ("source", "target"):
            lines = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
            (folder / f"{stem}.{side}").write_text(lines, encoding="utf-8", newline="")
        entries.append(
            {
                "source": f"{stem}.source",
                "target": f"{stem}.target",
                "pairs": len(pairs),
                "corpora": names,
                **corpus.model_dump(mode="json", include={"tags", "target_language", "source_code", "target_code"}),
            }
        )
    return entries


def _corpus(folder: Path, entry: dict[str, Any]) -> CorpusConfig:
    """Return a stored set. Its name tells its origin, because the names of its files do not."""
    if "file" in entry:
        corpus = stored_record_corpus(folder, entry)
        return corpus.model_copy(update={"name": _name(entry, corpus.all_tags)})
    settings = {key: value for key, value in entry.items() if key not in ("pairs", "corpora", "source", "target")}
    tags = tuple(filter(None, (settings["target_language"], *settings["tags"])))
    return CorpusConfig(
        source=folder / entry["source"], target=folder / entry["target"], name=_name(entry, tags), **settings
    )


def _name(entry: dict[str, Any], tags: Sequence[str]) -> str:
    names = ", ".join(entry["corpora"][:2]) + (", …" if len(entry["corpora"]) > 2 else "")
    return f"{entry['pairs']:,} pairs held out from {names}{''.join(f' ({tag})' for tag in tags)}"
