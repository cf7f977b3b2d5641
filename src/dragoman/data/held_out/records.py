"""`hold_out_records` chooses whole records of tasks that write text: a text with its summaries, label or answers.

Unlike translations, targets may be the same in many records, such as labels, and several records may ask about the same
text. So all records with the same text are in one set. The text of a record is the longest field of its source, which
is the context of a question.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.base.errors import DataError
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.cleaning.sentence_keys import SentenceKeys, sentence_key
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.items import Pair
from dragoman.data.corpora.readers import read_pairs
from dragoman.data.corpora.records import read_records
from dragoman.data.corpora.templates import Record
from dragoman.data.files.jsonl import read_objects
from dragoman.data.files.lines import has_broken_utf8
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.example_files import stored_corpus, write_examples
from dragoman.data.held_out.split import Cleaning
from dragoman.data.held_out.texts import choose_rows
from dragoman.data.labelled.examples import Question
from dragoman.data.labelled.read import read_labelled, read_questions

Rows = Set[tuple[int, int]]
"""Records of a set, by the number of their corpus and their own."""


class _Keys(NamedTuple):
    """The keys of a record: of its text, its whole source and its targets. corpus, number: its position."""

    corpus: int
    number: int
    text: int
    source: int
    targets: tuple[int, ...]


def hold_out_records(
    corpora: Sequence[CorpusConfig],
    config: HeldOutConfig,
    cleaning: Cleaning,
    *,
    compares_targets: bool,
    named: Sizes,
    known: SentenceKeys,
) -> list[Rows]:
    """Return the records of a validation and of a test set.

    cleaning: the rules of each corpus; a record that breaks one is not chosen. compares_targets: whether a target may
    be in one set only, as a summary; otherwise every target that occurs several times, such as a label, stays in
    training. named: 0 for a set that the recipe names. known: texts of the named sets, which are not chosen. Raises
    DataError if the corpora cannot be read or are too small, and ConfigError as `HeldOutConfig.sizes` does.
    """
    records = [each for number, corpus in enumerate(corpora) for each in _keys(corpus, number, cleaning)]
    names = ", ".join(map(str, corpora))
    sizes = config.sizes(len(records), names)
    shared = _shared_targets(records)
    barred = {each.text for each in records if each.source in known.sources}
    if compares_targets:
        excluded = shared | known.targets
        barred |= {each.text for each in records if not excluded.isdisjoint(each.targets)}
    rows = [each for each in records if each.text not in barred]
    labels = [[str(key) for key in shared.intersection(each.targets)] for each in rows]
    needed = Sizes(sizes.valid * named.valid, sizes.test * named.test)
    chosen = choose_rows([each.text for each in rows], labels, needed, config.seed)
    if any(size and not part for size, part in zip(needed, chosen, strict=True)):
        raise DataError(
            f"{names}: too few records with texts of their own to hold out a validation set: give one (data.valid)"
        )
    return [{(rows[row].corpus, rows[row].number) for row in part} for part in chosen]


def _shared_targets(records: Sequence[_Keys]) -> set[int]:
    """Return the targets of records with different texts."""
    pairs = {(target, each.text) for each in records for target in each.targets}
    return {target for target, count in Counter(target for target, _ in pairs).items() if count > 1}


def _keys(corpus: CorpusConfig, number: int, cleaning: Cleaning) -> Iterator[_Keys]:
    rules = PairRules(cleaning(corpus), str(corpus), side_names=corpus.side_names)
    for row, (_, record) in enumerate(_originals(corpus)):
        if any(map(has_broken_utf8, (record.source, *record.targets))):
            continue
        if rules.check(Pair(record.line, record.source, record.targets[0])).rule is not None:
            continue
        targets = tuple(map(sentence_key, record.targets))
        yield _Keys(number, row, sentence_key(record.longest), sentence_key(record.source), targets)


def _originals(corpus: CorpusConfig) -> Iterator[tuple[Any, Record]]:
    """Yield each record of a corpus beside what it was made of. Blank lines and incomplete pairs are left out."""
    if corpus.records is None:
        for pair in read_pairs(corpus):
            if pair.complete:
                yield pair, Record(pair.line, pair.source, (pair.target,), pair.source, (), pair.source)
        return
    originals: Iterator[Any]
    if corpus.labelled is not None:
        originals = iter(read_labelled(corpus.labelled))
    elif corpus.questions is not None:
        originals = iter(read_questions(corpus.questions))
    else:
        assert corpus.pairs is not None
        originals = (entry for _, entry in read_objects(corpus.pairs))
    for original, record in zip(originals, read_records(corpus), strict=True):
        if original is not None:
            yield original, record


def write_records(folder: Path, stem: str, corpora: Sequence[CorpusConfig], rows: Rows) -> list[dict[str, Any]]:
    """Write the selected records into files, those of corpora with the same settings into one, and describe them.

    Returns the settings of each file, with a path relative to `folder`, and the number and origin of its records.
    """
    groups: dict[str, tuple[CorpusConfig, list[str], list[Any]]] = {}
    for number, corpus in enumerate(corpora):
        chosen = [each for row, (each, _) in enumerate(_originals(corpus)) if (number, row) in rows]
        if chosen:
            form = corpus.model_dump_json(include={"template", "tags", "target_language"}) + str(
                [corpus.labelled is None, corpus.questions is None, corpus.records is None]
            )
            _, names, records = groups.setdefault(form, (corpus, [], []))
            names.append(str(corpus))
            records += chosen
    entries = []
    for number, (corpus, names, records) in enumerate(groups.values(), start=1):
        stored = _write(folder, stem if len(groups) == 1 else f"{stem}-{number}", corpus, records)
        file = stored.files[0].name
        settings = stored.with_file(Path(file)).model_dump(mode="json", exclude_defaults=True)
        entries.append({"file": file, "settings": settings, "pairs": len(records), "corpora": names})
    return entries


def _write(folder: Path, stem: str, corpus: CorpusConfig, records: list[Any]) -> CorpusConfig:
    """Write records of one form, and return the settings with which they are read."""
    shared = {"name": None, "weight": 1.0}
    if corpus.labelled is not None or corpus.questions is not None:
        if isinstance(records[0], Question):
            records = [replace(each, id=str(number)) for number, each in enumerate(records, 1)]
        form = "labelled" if corpus.labelled is not None else "questions"
        path = write_examples(folder, f"{stem}.{form}", records)
        return corpus.model_copy(update={**shared, form: stored_corpus(path)})
    path = folder / f"{stem}.records.jsonl"
    if corpus.records is None:
        objects = [{"source": pair.source, "target": pair.target} for pair in records]
        corpus = CorpusConfig(
            pairs=path,
            source_column="source",
            target_column="target",
            tags=corpus.tags,
            target_language=corpus.target_language,
        )
    else:
        objects, corpus = records, corpus.model_copy(update={**shared, "pairs": path})
    path.write_text("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects), encoding="utf-8")
    return corpus.model_copy(update={"format": "jsonl"})


def stored_record_corpus(folder: Path, entry: dict[str, Any]) -> CorpusConfig:
    """Return the settings of a stored file. entry: as `write_records` describes it."""
    return CorpusConfig.model_validate(entry["settings"]).with_file(folder / entry["file"])
