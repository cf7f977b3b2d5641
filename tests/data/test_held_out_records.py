"""Whole records are held out: with all references, by their text, and stored in the form that they were read in."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.base.errors import DataError
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_references
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.sets import HeldOutSets, HeldOutUnit, hold_out, left_out_keys

SUMMARIES = {"source": "{text} TL;DR", "target": "{summary}"}
SMALL = HeldOutConfig(valid=4, test=5)


def word(number: int) -> str:
    return f"{chr(97 + number // 26)}{chr(97 + number % 26)}"


def write(path: Path, objects: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")
    return path


def choose(
    corpora: list[CorpusConfig], folder: Path, unit: HeldOutUnit, config: HeldOutConfig = SMALL, **named: Any
) -> HeldOutSets:
    return hold_out(corpora, config, lambda _: CleaningConfig(), folder, unit=unit, **named)


def test_records_keep_their_fields_and_references(tmp_path: Path) -> None:
    texts = [[f"Text {word(number)}.\nIt has\ttwo parts.", "The end."] for number in range(40)]
    objects = [{"text": text, "summary": [f"short {word(n)}", f"brief {word(n)}"]} for n, text in enumerate(texts)]
    path = write(tmp_path / "papers.jsonl", objects)
    corpus = CorpusConfig(pairs=path, template=SUMMARIES)
    sets = choose([corpus], tmp_path / "prepared", "texts")
    assert sets.sizes == Sizes(4, 5)
    (valid,), (test,) = sets.valid, sets.test
    read = read_references(test)
    assert len(read.sources) == 5
    assert len(read.references) == 2
    assert set(read.sentences) <= set(map(tuple, texts))
    lines = test.files[0].read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line) in objects for line in lines)
    assert str(test) == "5 pairs held out from " + str(path)
    assert set(read.sources).isdisjoint(read_references(valid).sources)
    assert choose([corpus], tmp_path / "prepared", "texts") == sets
    copied = sets.copy(tmp_path / "run")
    assert copied.sizes == sets.sizes
    assert read_references(copied.test[0]) == read


def test_a_summary_is_in_one_set_only_and_a_label_stays_in_training(tmp_path: Path) -> None:
    objects = [{"text": f"text {word(number)}", "summary": f"same {word(number // 2)}"} for number in range(60)]
    objects += [{"text": f"other {word(number)}", "summary": f"own {word(number)}"} for number in range(20)]
    corpus = CorpusConfig(pairs=write(tmp_path / "papers.jsonl", objects), template=SUMMARIES)
    sets = choose([corpus], tmp_path / "texts", "texts")
    keys = left_out_keys((*sets.valid, *sets.test), "texts")
    assert len(keys.targets) == 9
    targets = [target for part in (*sets.valid, *sets.test) for target in read_references(part).references[0]]
    assert all(target.startswith("own") for target in targets)

    labels = [{"text": f"text {word(number)}", "summary": "rare" if number < 2 else "often"} for number in range(60)]
    corpus = CorpusConfig(pairs=write(tmp_path / "labels.jsonl", labels), template=SUMMARIES)
    sets = choose([corpus], tmp_path / "labels", "labels", HeldOutConfig(valid=10, test=19))
    held_out = [target for part in (*sets.valid, *sets.test) for target in read_references(part).references[0]]
    assert held_out.count("rare") <= 1
    assert not left_out_keys(sets.test, "labels").targets
    with pytest.raises(DataError, match="too few records with texts of their own"):
        choose([corpus], tmp_path / "none", "texts")


def test_questions_about_one_text_are_together(tmp_path: Path) -> None:
    paragraphs = []
    for number in range(30):
        context = f"The {word(number)} was found in a long text about it."
        answers = [{"text": word(number), "answer_start": 4}]
        qas = [{"id": f"{number}-{each}", "question": f"what {each}?", "answers": answers} for each in range(2)]
        paragraphs.append({"context": context, "qas": qas})
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    corpus = CorpusConfig.model_validate({"questions": str(path)})
    sets = choose([corpus], tmp_path / "prepared", "labels")
    contents = [read_references(each[0]).contents for each in (sets.valid, sets.test)]
    contexts = [{content.partition("\n")[2] for content in part} for part in contents]
    assert [len(each) for each in contexts] == [2, 2]
    assert contexts[0].isdisjoint(contexts[1])


def test_labelled_texts_lines_and_named_sets(tmp_path: Path) -> None:
    """Corpora of different forms have files of their own, and texts of a named set are not chosen."""
    (tmp_path / "labels.tsv").write_text("".join(f"text {word(n)}\tlabel {n % 3}\n" for n in range(60)))
    for side in ("source", "target"):
        (tmp_path / side).write_text("".join(f"{side} {word(number)}\n" for number in range(60)))
    labelled = CorpusConfig.model_validate({"labelled": str(tmp_path / "labels.tsv"), "tags": ["topic"]})
    lines = CorpusConfig(source=tmp_path / "source", target=tmp_path / "target")
    known = write(tmp_path / "named.jsonl", [{"source": f"source {word(n)}", "target": "x"} for n in range(55)])
    config = HeldOutConfig(valid=1, test=30)
    named = {"named": ([CorpusConfig(pairs=known)], [])}
    sets = choose([labelled, lines], tmp_path / "prepared", "labels", config, **named)
    assert (sets.valid, sets.sizes.valid) == ((), 0)
    assert [path.name for each in sets.test for path in each.files] == ["test-1.labelled.jsonl", "test-2.records.jsonl"]
    assert sets.test[0].tags == ("topic",)
    assert str(sets.test[0]).endswith("labels.tsv (topic)")
    assert {target[:5] for target in read_references(sets.test[0]).references[0]} == {"label"}
    assert set(read_references(sets.test[1]).sources) <= {f"source {word(number)}" for number in range(55, 60)}
