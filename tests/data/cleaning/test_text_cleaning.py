"""Cleaning documents: they are kept or dropped as a whole, regardless of their division into passages and chunks."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.cleaning import chunks
from dragoman.data.cleaning.clean import clean, report_cleaning
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.cleaning.repair import is_binary
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.rules import TextRules
from dragoman.data.corpora.documents import divide_into_passages
from dragoman.data.corpora.items import Passage
from dragoman.text.scripts import dominant_system

BAD = {"broken_utf8": "\udcff", "control_characters": "\x01" * 5, "wrong_script": "собака " * 9}
WORDS = st.lists(st.sampled_from(["dog ", "cats\n", "1 2 ", "\t"]), max_size=12).map("".join)
DOCUMENTS = st.lists(
    st.one_of(
        WORDS,
        st.tuples(WORDS, st.sampled_from(list(BAD.values())), WORDS).map("".join),
        st.sampled_from(["the same one again and again", "and the other one", "", " \n "]),
    ),
    max_size=12,
)


def repaired(parts: list[Passage]) -> str:
    return "".join(part.text for part in parts).replace("\x01", "")


def expected(documents: list[list[Passage]], config: TextCleaningConfig) -> list[set[str]]:
    """Return the rules that may be named for each document, none if it is kept, by a plain second implementation."""
    found: list[set[str]] = []
    for parts in documents:
        text = repaired(parts)
        rules = set()
        if "\udcff" in text:
            rules.add("broken_utf8")
        elif not text.strip() and len(parts) == 1:
            rules.add("empty")
        if any(is_binary(part.text) for part in parts):
            rules.add("control_characters")
        found.append(rules)
    good = [
        (index, dominant_system(part.text))
        for index, parts in enumerate(documents)
        for part in parts
        if "\udcff" not in part.text and not is_binary(part.text) and "empty" not in found[index]
    ]
    counts = Counter(script for _, script in good if script)
    enough = min(config.script_fraction * counts.total(), max(counts.values(), default=0))
    for index, script in good:
        if script and counts[script] < enough:
            found[index].add("wrong_script")
    seen = set()
    for index, parts in enumerate(documents):
        text = repaired(parts)
        if not found[index] - {"wrong_script"}:
            if text in seen:
                found[index].add("duplicates")
            seen.add(text)
    return found


@given(texts=DOCUMENTS, longest=st.integers(5, 60), size=st.integers(1, 6), limit=st.integers(20, 200))
def test_whole_documents_are_dropped_and_counted_once(texts: list[str], longest: int, size: int, limit: int) -> None:
    config = TextCleaningConfig(script_fraction=0.4)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("dragoman.data.corpora.documents.LONGEST", longest)
        patch.setattr(chunks, "PAIRS", size)
        patch.setattr(chunks, "BYTES", limit)
        documents = [list(divide_into_passages(10 * index, [text])) for index, text in enumerate(texts)]
        cleaned = clean((part for parts in documents for part in parts), TextRules(config), Path(folder), workers=0)
        report = cleaned.report
        verdicts = np.concatenate([np.array(cleaned.verdicts(number)) for number in range(len(cleaned))] or [[]])
        dropped = {int(line): rule for rule, lines in report.dropped.items() for line in lines}
        counted = sum(
            len(repaired(parts).encode()) for index, parts in enumerate(documents) if 10 * index not in dropped
        )
        assert cleaned.pairs == max(1, counted // 133)
    rules = expected(documents, config)
    assert report.total == len(texts)
    assert report.kept == sum(not each for each in rules)
    assert set(dropped) == {10 * index for index, each in enumerate(rules) if each}
    assert all(rule in rules[line // 10] for line, rule in dropped.items())
    stays = [not each for each, parts in zip(rules, documents, strict=True) for _ in parts]
    assert (verdicts == 0).tolist() == stays


def judged(*texts: str, **settings: object) -> CleaningReport:
    rules = TextRules(TextCleaningConfig.model_validate(settings), "corpus.txt")
    return report_cleaning((Passage(line, text) for line, text in enumerate(texts, start=1)), rules)


def test_the_rest_of_a_dropped_document_is_not_a_duplicate() -> None:
    bad = Passage(1, "one", True, False), Passage(1, " \x01\0" * 4, False, False), Passage(1, " two", False, True)
    good = Passage(2, "one", True, False), Passage(2, " two", False, True)
    assert report_cleaning([*bad, *good], TextRules(TextCleaningConfig())).counts == {"control_characters": 1}


def test_each_rule_can_be_turned_off_alone() -> None:
    texts = ["A dog.\nTwo\tdogs.", *["the first dog of many", "two"] * 9, "собака", " ", "\x00b" * 4, "A dog.\r\nTwo"]
    assert judged(*texts).counts == {"empty": 1, "control_characters": 1, "wrong_script": 1, "duplicates": 16}
    off = dict.fromkeys(("empty", "control_characters", "wrong_script", "duplicates"), False)
    assert judged(*texts, **off).kept == len(texts)
    assert judged(*texts, enabled=False).kept == len(texts)
    assert judged(*texts, scripts=["cyrillic"]).counts["wrong_script"] == 20
    with pytest.raises(ValidationError, match="unknown script 'cyrilic'"):
        TextCleaningConfig(scripts=("cyrilic",))


@pytest.mark.parametrize("settings", [{"broken_utf8": "error"}, {"enabled": False}])
def test_broken_utf8_is_an_error_that_names_the_line(settings: dict[str, object]) -> None:
    broken = "one\ntwo\nth\udcffree"
    assert judged("good", broken, "fine").counts == {"broken_utf8": 1}
    with pytest.raises(DataError, match=r"corpus\.txt, line 4: invalid UTF-8"):
        judged("good", broken, "fine", **settings)


def test_the_report_speaks_of_documents() -> None:
    report = judged("a dog", "a dog", "", "two dogs")
    assert report.table().split("\n")[0] == "4 documents read, 2 kept (50.00 %)"
    assert "duplicate document" in report.table()
    assert "empty side" not in report.table()
    assert report.to_json() == {"documents": 4, "dropped": {"empty": [3], "duplicates": [2]}}


def test_a_form_feed_costs_itself_and_not_the_book() -> None:
    book = "The first page.\n\fThe second page,\nwith a bell\x07\x07.\nand\x07\n"
    report = judged("a dog", book, "two dogs")
    assert report.kept == 3
    assert {kind.name: lines.tolist() for kind, lines in report.found.items()} == {
        "U+000C form feed": [3],
        "U+0007 alert": [4, 5],
    }
    assert "    U+000C form feed            1   corpus.txt, lines 3" in report.table()
    assert judged(book, control_characters=False).found == {}


def test_lines_of_json_are_not_those_of_the_text() -> None:
    rules = TextRules(TextCleaningConfig(), "corpus.jsonl", single_lines=True)
    report = report_cleaning([Passage(7, "one\ntwo\nthree\f four")], rules)
    assert [lines.tolist() for lines in report.found.values()] == [[7]]
