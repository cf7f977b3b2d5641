"""Findings of the guard's detectors, and harmless cases."""

import pytest
from tiny_model import tiny_tokenizers

from dragoman.inference.translation.guard.copied import is_copied
from dragoman.inference.translation.guard.guard import Finding, GuardOutcome, merge_outcomes
from dragoman.inference.translation.guard.numbers import changed_numbers
from dragoman.inference.translation.guard.repetition import repeated_phrase
from dragoman.inference.translation.guard.wrong_script import foreign_letters, usual_scripts
from dragoman.text.vocabularies.character import CharacterConfig


@pytest.mark.parametrize(
    ("source", "output", "phrase"),
    [
        ("a dog runs", "ein Hund Hund Hund läuft", "Hund"),
        ("a dog runs", "der Hund , der Hund , der Hund , der", "der Hund ,"),
        ("it is the biggest of all", "es ist das größte von allen es ist das größte von allen", None),
        ("a dog", "die Elefirefirefirefirefirefiguren", "efir"),
        ("a dog runs fast", "狗跑得快狗跑得快狗跑得快", "狗跑得快"),
        ("a dog", "น้องหมาวิ่งน้องหมาวิ่งน้องหมาวิ่ง", "น้องหมาวิ่ง"),
        ("yes . . .", "ja . . . . . . . . . .", "."),
        ("a dog", "HUND hund Hund", "HUND"),
    ],
)
def test_loops(source: str, output: str, phrase: str | None) -> None:
    found = repeated_phrase(source, output)
    assert found is not None
    assert phrase is None or found == phrase


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("No, no, no!", "Nein, nein, nein!"),
        ("ha ha ha ha", "哈哈哈哈"),
        ("the men that that man saw", "die Männer, die die Frau sah"),
        ("a very very very long day", "ein sehr, sehr, sehr langer Tag"),
        ("well ... I see", "nun … … … ich sehe"),
        ("of those who were captured", "der Gefangenenen"),
        ("step by step", "一步一步"),
        ("1 000 000 000 people", "1 000 000 000 Menschen"),
    ],
)
def test_no_loops(source: str, output: str) -> None:
    assert repeated_phrase(source, output) is None


@pytest.mark.parametrize(
    ("source", "output", "lost"),
    [
        ("in 1984", "im Jahr 1948", "1984"),
        ("12 dogs", "13 Hunde", "12"),
        ("1,250 dogs", "1.205 Hunde", "1250"),
        ("45 dogs", "viele Hunde", "45"),
        ("10 of 100 and 10", "100 von 10 und 100", "10"),
        ("٤٥ كلبا", "46 dogs", "45"),
    ],
)
def test_numbers_that_changed(source: str, output: str, lost: str) -> None:
    assert changed_numbers(source, output) == lost


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("1,000.5 km", "1.000,5 km"),
        ("12 dogs", "zwölf Hunde"),
        ("twelve dogs", "12 Hunde"),
        ("at 7:30 pm", "um 19.30 Uhr"),
        ("at 7 pm", "um 19 Uhr"),
        ("the 1980s", "die 80er"),
        ("3,000 million", "3 Milliarden"),
        ("Article 81(1), 31/10/2013", "Artikel 81.1, 31.10.2013"),
        ("1,234,567", "1 234 567"),
        ("٤٥ كلبا", "45 dogs"),
    ],
)
def test_numbers_that_stayed(source: str, output: str) -> None:
    assert changed_numbers(source, output) is None


def test_copies() -> None:
    text = "the dog runs in the park"
    assert is_copied(text, text)
    assert is_copied(text, "the dog runs in the Park .")
    assert not is_copied(text, "der Hund läuft in the Park")
    assert not is_copied("see http://example.org/a/b/c/d/e", "see http://example.org/a/b/c/d/e")
    assert not is_copied("Angela Merkel and John F. Kennedy in Berlin", "Angela Merkel and John F. Kennedy in Berlin")
    assert is_copied("狗在公园里跑", "狗在公园里跑")
    assert not is_copied("hotel", "hotel")


def test_scripts() -> None:
    assert foreign_letters("a dog", "ein Hund 狗", {"Latn"}) == "狗"
    assert foreign_letters("a dog 狗", "ein Hund 狗", {"Latn"}) is None
    assert foreign_letters("собака бежит в парке", "собака бежит в парке", {"Latn"}) is not None
    assert foreign_letters("Москва", "Moskau (Москва)", {"Latn"}) is None
    assert foreign_letters("5 µm", "5 µm", {"Latn"}) is None
    assert usual_scripts(tiny_tokenizers(300).target) == {"Latn"}
    assert usual_scripts(tiny_tokenizers(261).target) <= {"Latn"}


def test_scripts_of_a_vocabulary_of_characters() -> None:
    """An alphabet of 26 letters is used, however many Chinese characters the shared vocabulary contains; a few letters
    of a third script are not.
    """
    chinese = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
    for texts, scripts in (
        (["abcdefghijklmnopqrstuvwxyz", chinese, "αβγ"], {"Latn", "Hani"}),
        ([chinese, "αβγ", "ab"], {"Hani"}),
        (["abcdefghijklmnopqrstuvwxyz", "ж"], {"Latn", "Cyrl"}),
    ):
        assert usual_scripts(CharacterConfig(size=5000, min_frequency=1).learn(texts)) == scripts


def test_findings_in_a_text_in_parts() -> None:
    loop, numbers = Finding("repetition", "a b"), Finding("numbers", "12")
    parts = [
        None,
        GuardOutcome((loop,), (), "list"),
        GuardOutcome((loop, numbers), (numbers,), "wide"),
        GuardOutcome((), ()),
    ]
    whole = merge_outcomes(parts)
    assert whole == GuardOutcome((loop, loop, numbers), (numbers,), "list, wide")
    assert whole.outcomes() == {"repeated a phrase": True, "had other numbers than their source": False}
    assert merge_outcomes([None, None]) is None
