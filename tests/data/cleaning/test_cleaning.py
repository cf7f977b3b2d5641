"""Cleaning: every rule, its option, and the report."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from dragoman.base.errors import DataError
from dragoman.data.cleaning.chunks import chunk_file, read_chunk, unpack_texts
from dragoman.data.cleaning.clean import clean as clean_into
from dragoman.data.cleaning.clean import report_cleaning
from dragoman.data.cleaning.cleaned_corpus import CleanedCorpus
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.cleaning.report import CleaningReport
from dragoman.data.cleaning.rules import PairRules
from dragoman.data.corpora.items import Pair
from dragoman.text.words import countable_words

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
        ("control_characters", ("a\0d\0o\0g\0", "ein Hund"), {"control_characters": False}),
        ("copied_words", ("人人有资格享有自由。", "人人有资格享有自由。"), {"copied_words": None}),
        ("wrong_script", ("The dog runs.", "人人有资格享有本宣言所载的一切权利和自由。"), {"wrong_script": False}),
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
    ("source", "target", "is_kept"),
    [
        ("The dog runs.", "Der Hund läuft.", True),
        ("The dog runs.", "Der Hund", False),
        ("The dog", "Der Hund läuft.", False),
        ("the dog", "der Hund", True),
        ("“Does it run?”", "« Court-il ? »", True),
        ("Does it run?", "它跑吗？", True),
        ("Does it run?", "Τρέχει;", True),
        ("It runs.", "यह दौड़ता है।", True),
        ("It runs …", "Es läuft (schnell)", False),
        ("Version 1.2", "Version 1.2", True),
    ],
)
def test_both_sides_end_a_sentence_or_neither(source: str, target: str, is_kept: bool) -> None:
    assert dropped(clean([(source, target)], final_punctuation=True)) == ({} if is_kept else {"final_punctuation": [1]})
    assert dropped(clean([(source, target)])) == {}


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
        ("a dog\0", "ein \x96 Hund\f"),
        ("東京都", "東京都"),
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


def test_control_characters_and_escapes_are_repaired_and_counted() -> None:
    pairs = [
        *GOOD,
        ("a dog\f here", "ein\xadHund"),
        ("&quot;yes&quot;", "&bdquo;ja&#8220;"),
        ("a\fb", "well @-@ known"),
    ]
    report = clean(pairs)
    assert dropped(report) == {}
    assert {(*kind[:3], tuple(lines.tolist())) for kind, lines in report.found.items()} == {
        ("control_characters", "source", "U+000C form feed", (21, 23)),
        ("control_characters", "target", "U+00AD soft hyphen", (21,)),
        ("unescape", "source", "&quot;", (22,)),
        ("unescape", "target", "&bdquo;", (22,)),
        ("unescape", "target", "&#…;", (22,)),
        ("unescape", "target", "@-@", (23,)),
    }
    table = report.table()
    assert "replaced or removed by data.cleaning.control_characters:" in table
    assert "    U+000C form feed            2   source, lines 21, 23" in table
    assert "data.cleaning.unescape=true replaces" in table
    assert {"setting": "unescape", "side": "target", "name": "@-@", "lines": [23]} in report.to_json()["found"]
    assert clean(pairs, control_characters=False, enabled=False).found == {}


def test_repaired_texts_are_stored(tmp_path: Path) -> None:
    pairs = [Pair(1, "a dog\f here", "ein &quot;Hund&quot;"), Pair(2, "a dog here", 'ein "Hund"')]
    cleaned = stored(pairs, tmp_path / "kept", CleaningConfig())
    assert texts(cleaned, "source") == ["a dog here", "a dog here"]
    assert texts(cleaned, "target") == ["ein &quot;Hund&quot;", 'ein "Hund"']
    cleaned = stored(pairs, tmp_path / "unescaped", CleaningConfig(unescape=True))
    assert texts(cleaned, "target") == ['ein "Hund"'] * 2
    assert cleaned.report.counts == {"duplicates": 1}  # only repaired pairs are equal


def stored(pairs: list[Pair], folder: Path, config: CleaningConfig) -> CleanedCorpus:
    folder.mkdir()
    return clean_into(pairs, PairRules(config), folder, workers=0)


def texts(cleaned: CleanedCorpus, side: str) -> list[str]:
    joined, ends = read_chunk(chunk_file(cleaned.folder, 0), side, f"{side}_ends")
    return unpack_texts(joined, ends, np.arange(len(ends)))


def test_scripts_of_named_languages_are_expected() -> None:
    """A corpus of two languages, of which one is named."""
    chinese = "人人有资格享有本宣言所载的一切权利和自由，不分种族、肤色、性别。"
    japanese = ["東京都庁舎", "コーヒー", "犬が走る", "iPhoneを買った", "ナマステ"]
    pairs = [*[("dog", text) for text in japanese], *[(f"word {number}", chinese) for number in range(3)]]
    numbered = [Pair(line, *sides) for line, sides in enumerate(pairs, start=1)]
    config = CleaningConfig(duplicates=False, max_ratio=None)
    report = report_cleaning(numbered, PairRules(config.with_languages("en", "ja"), "corpus.tsv"))
    assert dropped(report) == {"wrong_script": [6, 7, 8]}
    assert "expected source: Latn; target: Hani, Hrkt" in report.table()
    assert dropped(report_cleaning(numbered, PairRules(config.with_languages("en", "zh")))) == {
        "wrong_script": [2, 3, 4, 5]
    }
    assert dropped(report_cleaning(numbered, PairRules(config.with_languages(None, "xx")))) == {}
    assert config.with_languages("ja", "en").with_languages("de", "ru").source_scripts == ("Hani", "Hrkt")
    named = config.model_copy(update={"target_scripts": ("latin",)})
    assert named.with_languages("en", "ja").target_scripts == ("latin",)


def test_the_scripts_of_flores_codes_and_single_names_fit_whole_texts() -> None:
    """`kor_Hang` and `--target-script kana` mean Korean and Japanese as they are written."""
    korean, japanese = ["한국어", "大韓民國 헌법", "自由"], ["犬が走る", "コーヒー"]
    pairs = [Pair(line, f"word {line}", text) for line, text in enumerate([*korean, *japanese], start=1)]
    config = CleaningConfig(max_ratio=None)
    assert dropped(report_cleaning(pairs, PairRules(config.with_languages("en", "kor_Hang")))) == {
        "wrong_script": [4, 5]
    }
    kana = config.model_copy(update={"target_scripts": ("kana",)})
    assert dropped(report_cleaning(pairs, PairRules(kana))) == {"wrong_script": [1, 2, 3]}


def test_groups_of_scripts_are_detected() -> None:
    korean = [
        (f"word {number}", text) for number, text in enumerate(["한국어", "대한민국", "나라", "사람", "自由"] * 4)
    ]
    assert dropped(clean(korean)) == {}
    chinese = [(f"word {number}", "人人有资格享有一切权利" * (1 + number % 4)) for number in range(20)]
    assert dropped(clean(chinese)) == {}
    assert dropped(clean([*chinese, ("the dog", "犬が走っている")])) == {"wrong_script": [21]}


def test_words_are_counted_in_scripts_without_spaces() -> None:
    thai = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
    assert dropped(clean([*GOOD, ("word " * 150, thai * 5)], wrong_script=False, max_ratio=None)) == {}
    assert dropped(clean([*GOOD, ("word " * 150, thai * 20)], wrong_script=False, max_ratio=None)) == {
        "max_words": [21]
    }
    assert len(countable_words("人人有资格享有")) == 4
    assert len(countable_words("የሰው፡ልጅ፡ሁሉ")) == 3
    assert countable_words("The  dog runs.") == ["The", "dog", "runs."]
