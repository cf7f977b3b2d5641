"""Cleaning: every rule, its option, and the report."""

from typing import Any

import pytest
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.rules import CleaningConfig, PairRules
from dragoman.data.corpora.items import Pair

GOOD = [(f"The dog number {number} runs.", f"Der Hund Nummer {number} läuft.") for number in range(20)]


def clean(pairs: list[tuple[str, str]], **options: Any) -> CleaningReport:
    numbered = [Pair(line, source, target) for line, (source, target) in enumerate(pairs, start=1)]
    return report_cleaning(numbered, PairRules(CleaningConfig(**options), "corpus.tsv"))


def dropped(report: CleaningReport) -> dict[str, list[int]]:
    return {rule: lines.tolist() for rule, lines in report.dropped.items()}


@pytest.mark.parametrize(
    ("rule", "pair", "off"),
    [
        ("empty", ("", "Hund"), {"empty": False}),
        ("empty", ("dog", " \t\u2028"), {"empty": False}),
        ("max_characters", ("x" * 2001, "y" * 2000), {"max_characters": None}),
        ("max_words", ("x " * 201, "y " * 200), {"max_words": None}),
        ("max_ratio", ("No.", "Das ist aber eine sehr lange Antwort auf die Frage."), {"max_ratio": None}),
        ("control_characters", ("a dog\0", "ein Hund"), {"control_characters": False}),
        ("control_characters", ("a dog", "ein \x96 Hund"), {"control_characters": False}),
        ("wrong_script", ("Собака бежит по траве.", "Der Hund läuft."), {"wrong_script": False}),
        ("wrong_script", ("The dog runs.", "犬が走る。"), {"wrong_script": False}),
        ("copied_words", ("The cat sleeps now.", "The cat sleeps now. "), {"copied_words": None}),
        ("duplicates", GOOD[3], {"duplicates": False}),
    ],
)
def test_each_rule_drops_its_pair_and_can_be_switched_off(
    rule: str, pair: tuple[str, str], off: dict[str, Any]
) -> None:
    assert dropped(clean([*GOOD, pair])) == {rule: [21]}
    assert dropped(clean([*GOOD, pair], **off)) == {}
    assert dropped(clean([*GOOD, pair], enabled=False)) == {}


@pytest.mark.parametrize(
    "pair",
    [
        ("Hi.", "Grüß Gott!"),
        ("Tom Miller", "Tom Miller"),
        ("42", "42"),
        ("a\ttab and\u2028more", "ein\tTab und\u2028mehr"),
        ("The dog 犬 runs.", "Der Hund 犬 läuft."),
        ("The dog number 1 runs.", "Ein anderer Hund läuft."),
        ("👍🏽 👨‍👩‍👧", "👍🏽 👨‍👩‍👧"),
    ],
)
def test_good_pairs_are_kept(pair: tuple[str, str]) -> None:
    assert dropped(clean([*GOOD, pair])) == {}


def test_broken_utf8_is_skipped_or_an_error() -> None:
    pairs = [*GOOD, ("a dog \udcff", "ein Hund"), ("a cat", "eine \udce4 Katze")]
    assert dropped(clean(pairs)) == {"broken_utf8": [21, 22]}
    for options in ({"broken_utf8": "error"}, {"enabled": False}):
        with pytest.raises(DataError, match=r"corpus\.tsv, line 21: the source"):
            clean(pairs, **options)


def test_duplicates_keep_the_first_and_need_both_sides() -> None:
    pairs = [("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"), ("b", "x"), ("a", "x")]
    assert dropped(clean(pairs)) == {"duplicates": [4, 5, 6]}
    assert dropped(clean([("ab", "c"), ("a", "bc")])) == {}


def test_duplicates_are_found_around_pairs_of_the_wrong_script() -> None:
    wrong = ("Собака", "Der Hund")
    report = clean([wrong, *GOOD, wrong, GOOD[0], ("", "x"), GOOD[19]])
    assert dropped(report) == {"empty": [24], "wrong_script": [1, 22], "duplicates": [23, 25]}


def test_scripts_follow_the_corpus_or_the_user() -> None:
    russian = [(f"Собака номер {number}", target) for number, (_, target) in enumerate(GOOD)]
    assert dropped(clean([*russian, GOOD[0]])) == {"wrong_script": [21]}
    mixed = [*russian[:10], *GOOD[:10]]
    assert dropped(clean(mixed)) == {}
    assert dropped(clean(mixed, source_scripts=("cyrillic",))) == {"wrong_script": list(range(11, 21))}
    japanese = [("dog", text) for text in ("犬が走っている", "日本国憲法", "コンピューター", "これはペンです")]
    assert dropped(clean(japanese)) == {}


def test_an_unknown_script_is_rejected() -> None:
    with pytest.raises(ValidationError, match="cyrilic"):
        CleaningConfig(source_scripts=("cyrilic",))


def test_the_report_has_counts_and_line_numbers() -> None:
    report = clean([*GOOD, *[("", "x")] * 7])
    assert (report.total, report.kept, report.counts) == (27, 20, {"empty": 7})
    assert "lines 21, 22, 23, 24, 25, …" in report.table()
    assert report.table(lines=None).endswith("lines 21, 22, 23, 24, 25, 26, 27")
    assert report.to_json() == {"pairs": 27, "dropped": {"empty": list(range(21, 28))}}
