"""The test set of a run, which is scored if no other is given: of pairs, labelled examples, or documents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.base.errors import ConfigError
from dragoman.base.files import run_of
from dragoman.base.log import info
from dragoman.base.settings.load import Overrides, parse_settings
from dragoman.checkpoint.folder import CONFIG, read_config
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_references
from dragoman.data.held_out.documents import TEST, HeldOutDocuments
from dragoman.data.held_out.example_files import find_examples, stored_corpus
from dragoman.data.held_out.sets import FOLDER, HeldOutSets
from dragoman.tasks.seeds import seed_folders


@dataclass(frozen=True)
class StoredTestSet:
    """The test set of a run. name: in messages. request: the settings of its translations, `to` and `tags`."""

    name: str
    sources: list[str]
    references: list[list[str]]
    request: Mapping[str, Any]


def stored_test_set(folder: Path, to: str | None, tags: Collection[str]) -> StoredTestSet | None:
    """Read the test set that the recipe of a model folder names, or else the one that was held out in training.

    to, tags: select a set if there are several. Returns None if there is no test set. Raises ConfigError if the sets
    have different languages or tags and not exactly one is selected, and DataError if a file is missing.
    """
    corpora = _test_sets(folder)
    if not corpora:
        return None
    chosen = [
        each for each in corpora if to in (None, each.target_language) and (not tags or set(tags) == set(each.tags))
    ]
    if len({each.all_tags for each in chosen}) != 1:
        listed = "; ".join(f"{each} ({' '.join(_options(each)) or 'no options'})" for each in corpora)
        raise ConfigError(f"{folder} has several test sets, choose one by its options: {listed}")
    read = [read_references(each) for each in chosen]
    count = min(len(each.references) for each in read)
    return StoredTestSet(
        " + ".join(map(_describe, chosen)),
        [source for each in read for source in each.sources],
        [[line for each in read for line in each.references[number]] for number in range(count)],
        {"to": chosen[0].target_language, "tags": chosen[0].tags},
    )


class StoredExamples(NamedTuple):
    """The labelled examples in a file that a run held out for testing.

    path, settings: the file, and how it is read. task: name of the task if the run has several.
    """

    path: Path
    settings: Overrides
    task: str | None = None


def has_examples(folder: Path) -> bool:
    """Return whether the run of a model folder, or its runs with several seeds, held out labelled examples."""
    return bool(_example_files(folder))


def stored_examples(folder: Path, task: str | None = None) -> list[StoredExamples]:
    """Return the labelled test examples that the run of a model folder held out: a file per task and tag of a treebank.

    folder: also a folder of a run with several seeds, all of which held out the same. task: select those of one task.
    Raises ConfigError if there are none, and ModelError if `folder` is not a model folder.
    """
    found = [each for each in _example_files(folder) if task in (None, each[1])]
    if not found:
        read_config(folder)
        of_task = "" if task is None else f" for the task {task}"
        raise ConfigError(f"{folder} has no test set of its own{of_task}: give labelled examples with --test FILE")
    info(f"Test set: the examples that training held out, {', '.join(str(path) for path, _ in found)}")
    return [
        StoredExamples(path, stored_corpus(path).model_dump(mode="json", exclude_defaults=True, exclude={"path"}), name)
        for path, name in found
    ]


def _example_files(folder: Path) -> list[tuple[Path, str | None]]:
    """Return the files with the names of their tasks, which are None for a run with one task."""
    sets = run_of((seed_folders(folder) or [folder])[0]) / FOLDER
    own = [(path, None) for path in find_examples(sets, "test")]
    inner = sorted(each for each in sets.glob("*") if each.is_dir())
    return [*own, *((path, each.name) for each in inner for path in find_examples(each, "test"))]


def stored_records(folder: Path) -> list[CorpusConfig]:
    """Return the test sets of a model that writes texts of records: those of its recipe, or what training held out.

    Raises ConfigError if there are none, and ModelError if `folder` is not a model folder.
    """
    corpora = _test_sets(folder)
    if not corpora:
        raise ConfigError(f"{folder} has no test set of its own: give one with --test FILE")
    info(f"Test set: {', '.join(map(_describe, corpora))}")
    return list(corpora)


def has_documents(folder: Path) -> bool:
    """Return whether the run of a model folder held out documents."""
    return (run_of(folder) / FOLDER / TEST).is_file()


def stored_documents(folder: Path) -> tuple[Path, list[str]]:
    """Return the test documents that the run of a language model held out, with their file.

    Raises ConfigError if there are none, and ModelError if `folder` is not a model folder.
    """
    path = run_of(folder) / FOLDER / TEST
    found = HeldOutDocuments.load(path.parent)
    if found is None:
        read_config(folder)
        raise ConfigError(f"{folder} has no test set of its own: give a text with --text FILE")
    info(f"Test set: the documents that training held out, {path}")
    return path, list(found.test)


def _test_sets(folder: Path) -> Sequence[CorpusConfig]:
    data = read_config(folder).get("data")
    found = data.get("test") if isinstance(data, Mapping) else None
    entries = [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, Mapping)]
    if entries:
        return [parse_settings(dict(each), CorpusConfig, f"data.test in {folder / CONFIG}") for each in entries]
    held_out = HeldOutSets.of_model(folder)
    return () if held_out is None else held_out.test


def _options(corpus: CorpusConfig) -> list[str]:
    to = [] if corpus.target_language is None else [f"--to {corpus.target_language}"]
    return [*to, *(f"--tags {','.join(corpus.tags)}" for _ in corpus.tags[:1])]


def _describe(corpus: CorpusConfig) -> str:
    """Return the name of a set and, if its name does not contain them, of its files."""
    files = " and ".join(map(str, corpus.files))
    return str(corpus) if corpus.name is None else f"{corpus} ({files})"
